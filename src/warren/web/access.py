"""Who may call an endpoint: roles, web pages that may change something, and clients where there is no `[auth]`."""

import asyncio
import math
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

from warren.config import Config
from warren.config.http import address_of, is_loopback
from warren.errors import RequestError
from warren.web.auth import Guard, Role
from warren.web.http import HOST, Handler
from warren.web.logins import Logins

Headers = Mapping[str, str]

_CHALLENGES = (("WWW-Authenticate", 'Basic realm="warren"'), ("WWW-Authenticate", 'Bearer realm="warren"'))
_PROXY_HEADERS = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via")
_OTHER_PAGE = (
    "a web page may change something only if it is Warren's own, opened at an address that Warren listens on, by the "
    "name of its machine, or at the external-url of [general]"
)
_NOT_LOCAL = (
    "without [auth] this is only for clients on Warren's own machine; add [auth] to burrow.toml, with a file of "
    "credentials, or with open = true to let everyone"
)


class Access:
    """The rules of a configuration, and the logins that have failed."""

    def __init__(self, logins: Logins) -> None:
        self._logins = logins
        # One at a time, so that wrong passwords take at most one core.
        self._login_thread = ThreadPoolExecutor(1, thread_name_prefix="login")

    def configure(self, config: Config) -> None:
        """Decide by another configuration from now on."""
        self._guard = Guard(config.auth.entries if config.auth and not config.auth.open_ else None)
        self._has_auth = config.auth is not None
        external = urlsplit(config.general.external_url or "")
        self._external_origin = f"{external.scheme}://{external.netloc}".lower()
        self._names = {HOST.lower(), *(server.host for server in config.listeners.values() if server.host)}
        if external.hostname:
            self._names.add(external.hostname)

    @property
    def is_open(self) -> bool:
        """Whether everyone may read."""
        return self._guard.is_open

    async def log_in(self, authorization: str, client: str) -> Role | None:
        """The role of a client; who has failed too often must wait, unless the credentials are known to be right."""
        guard, logins, offered = self._guard, self._logins, authorization.encode("latin-1")
        if guard.is_open or not authorization:
            return guard.role_of(None)
        if (role := guard.known_role(offered)) is not None:
            return role
        if wait_s := logins.begin(client):
            raise RequestError("too many failed logins", 429, (("Retry-After", str(math.ceil(wait_s))),))
        if guard.is_slow:
            role = await asyncio.get_running_loop().run_in_executor(self._login_thread, guard.role_of, offered)
        else:
            role = guard.role_of(offered)
        if role is None:
            logins.count_failure(client)
        else:
            logins.succeeded(client)
        return role

    def check(self, handler: Handler, role: Role | None, headers: Headers, scope: Mapping[str, Any]) -> None:
        """Raise a RequestError for a client that may not call a handler."""
        if handler.is_admin and self._is_other_page(headers, scope["server"][0]):
            raise RequestError(_OTHER_PAGE, 403)
        if role is None and not handler.is_public:
            raise RequestError("authentication required: a bearer token, or a name and password", 401, _CHALLENGES)
        if handler.is_admin and role is not Role.ADMIN:
            raise RequestError("the admin role is required", 403)
        if handler.is_local and not self._has_auth and not _is_local(headers, scope["client"][0]):
            raise RequestError(_NOT_LOCAL, 403)

    def _is_other_page(self, headers: Headers, server: str) -> bool:
        """Whether a browser sends this for a page of another origin; `server` is the address that it is connected to.

        The name in Host counts too: to a browser, a page of any name that is made to lead here has Warren's origin.
        """
        origin, host = headers.get("origin", "").lower(), headers.get("host", "")
        site = headers.get("sec-fetch-site", "")
        if not origin and not site:
            return False
        if site not in ("", "same-origin"):
            return True
        if origin and origin == self._external_origin:
            return False
        is_same = not origin or origin in (f"http://{host}".lower(), f"https://{host}".lower())
        return not is_same or not self._is_own_name(_name_of(host), server)

    def _is_own_name(self, name: str, server: str) -> bool:
        if name in self._names:
            return True
        return is_loopback(server) if is_loopback(name) else address_of(name) == address_of(server) is not None


def _is_local(headers: Headers, client: str) -> bool:
    """Whether a client is on this machine, and not only a proxy between them."""
    is_forwarded = any(name in headers for name in _PROXY_HEADERS)
    named = [_name_of(headers.get("host", "")), _name_of(headers.get("origin", "").partition("//")[2])]
    is_local_name = all(not name or is_loopback(name) or name == HOST.lower() for name in named)
    return is_loopback(client) and not is_forwarded and is_local_name


def _name_of(host: str) -> str:
    """The name or address in a Host header, without the port; "" if it has none."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""
