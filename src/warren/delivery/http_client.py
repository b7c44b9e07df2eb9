"""The HTTP client of notifiers and sinks, and what each answer means for the request: taken, try again, or refused.

A request that was taken returns its answer, `BusyError` says to try again, `RefusedError` that no attempt will succeed.
"""

import base64
import logging
import re
import ssl
import time
from collections.abc import Collection, Mapping
from email.utils import parsedate_to_datetime

import httpx

from warren.config import Notifier
from warren.config.secrets import Secret, revealed
from warren.config.sinks import HttpSink
from warren.errors import BusyError, RefusedError

TRANSIENT = frozenset({408, 425, 429})
"""Client errors that pass by themselves; so do all errors of the server."""
MENDABLE = frozenset({401, 403, 404})
"""Client errors that somebody may mend on the server: an account, a permission, a missing index."""
WITH_RETRY_AFTER = frozenset({429, 503})
MAX_REDIRECTS = 4
MAX_ANSWER_BYTES = 8 << 20
"""How much of an answer is read; Elasticsearch's answer to a request in which every document failed is shorter."""
MAX_ANSWER_S = 60.0
"""How long an answer may take, however steadily it comes."""
MAX_QUOTED_CHARS = 200
MAX_WORD_CHARS = 60

# It would log every URL, and those of webhooks are secret.
logging.getLogger("httpx").setLevel(logging.WARNING)

HttpResponse = httpx.Response


class HttpClient:
    """Sends requests over one connection, for a sink to the first of its servers that answers.

    The requests of a sink wait on disk, so it also retries what needs somebody to mend an account or a setting. Those
    of a notifier name their whole URL. Its URLs and answers may be secret, and what is refused is given up at once.
    """

    def __init__(
        self, section: Notifier | HttpSink, headers: Mapping[str, str], token: tuple[str, Secret] | None = None
    ) -> None:
        """Set up a client for a section; its own headers take precedence. `token` is a scheme and its secret."""
        self._section = section
        self._token = token
        self._is_sink = isinstance(section, HttpSink)
        self._servers, keepalive_s = [""], 5.0
        if isinstance(section, HttpSink):
            self._servers = [server.rstrip("/") for server in section.urls]
        else:
            keepalive_s = 0.0 if section.disable_http_keepalive else float(section.keepalive)
        self._headers = headers
        self._client = httpx.Client(
            verify=tls_context(section),
            # A short compressed answer may be a very long one.
            headers={"Accept-Encoding": "identity"},
            timeout=float(section.timeout),
            limits=httpx.Limits(
                max_connections=1, max_keepalive_connections=1 if keepalive_s else 0, keepalive_expiry=keepalive_s
            ),
        )

    def send(
        self,
        method: str,
        url: str,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
        *,
        query: Mapping[str, str | None] | None = None,
        accepted: Collection[int] = (),
    ) -> httpx.Response:
        """Send a request and return its answer, if it is a success or its status is among `accepted`."""
        params = {name: value for name, value in (query or {}).items() if value is not None}
        try:
            # Read for each request, because the file of a secret may have changed.
            all_headers = {**self._headers, **self._authorization(), **self._section.headers, **(headers or {})}
            answer = self._request(method, f"{self._servers[0]}{url}", body, all_headers, params or None)
            for _ in range(MAX_REDIRECTS):
                to = answer.next_request
                if to is None or answer.status_code not in (307, 308) or not _is_same_server(to.url, answer.url):
                    break
                answer = self._request(method, to.url, body, all_headers)
        except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
            # The URL itself may hold a secret.
            raise self._misconfigured(f"the URL is not valid: {type(error).__name__}") from None
        except (httpx.LocalProtocolError, UnicodeError):
            # So may a header, which the error would show.
            raise self._misconfigured("a header, or the method, cannot be sent as it is configured") from None
        except httpx.TransportError as error:
            self._fail_over()
            raise BusyError(without_credentials(f"{type(error).__name__}: {error}")) from None
        if answer.is_success or answer.status_code in accepted:
            return answer
        raise self._failure(answer)

    def _request(
        self,
        method: str,
        url: str | httpx.URL,
        body: bytes,
        headers: Mapping[str, str],
        params: Mapping[str, str] | None = None,
    ) -> httpx.Response:
        """Send one request, and read its answer up to the limits; the rest is cut off."""
        until = time.monotonic() + MAX_ANSWER_S
        content = bytearray()
        with self._client.stream(method, url, content=body, headers=headers, params=params) as stream:
            for part in stream.iter_raw():
                content += part
                if len(content) >= MAX_ANSWER_BYTES or time.monotonic() > until:
                    break
        plain = [(name, value) for name, value in stream.headers.multi_items() if name != "content-encoding"]
        answer = httpx.Response(
            stream.status_code, headers=plain, content=bytes(content[:MAX_ANSWER_BYTES]), request=stream.request
        )
        answer.next_request = stream.next_request
        return answer

    def _authorization(self) -> dict[str, str]:
        if self._token is not None:
            return {"Authorization": f"{self._token[0]} {self._token[1].reveal()}"}
        if not self._section.username:
            return {}
        credentials = f"{self._section.username}:{revealed(self._section.password)}"
        return {"Authorization": f"Basic {base64.b64encode(credentials.encode()).decode()}"}

    def _failure(self, answer: httpx.Response) -> BusyError | RefusedError:
        """What an answer that is no success means for its request."""
        message = f"the server answered {answer.status_code}{self._quote(answer)}"
        if answer.is_redirect:
            return self._misconfigured(f"{message}: its URL redirects elsewhere")
        is_transient = answer.status_code in TRANSIENT or not answer.is_client_error
        if is_transient or (self._is_sink and answer.status_code in MENDABLE):
            self._fail_over()
            asked = answer.headers.get("Retry-After") if answer.status_code in WITH_RETRY_AFTER else None
            return BusyError(message, parse_retry_after(asked, time.time()) or 0.0)
        return RefusedError(message)

    def _misconfigured(self, message: str) -> BusyError | RefusedError:
        if not self._is_sink:
            return RefusedError(message)
        self._fail_over()
        return BusyError(message)

    def _fail_over(self) -> None:
        """Let the next request try the next server."""
        self._servers.append(self._servers.pop(0))

    def _quote(self, answer: httpx.Response) -> str:
        """The server's own words; only a single word, such as Slack's error codes, where answers may be secret."""
        if self._is_sink:
            return f": {without_credentials(answer.text[:MAX_QUOTED_CHARS])}"
        word = answer.text[:MAX_WORD_CHARS].strip()
        return f" {word}" if word.replace("_", "").isalnum() and word.isascii() else ""

    def close(self) -> None:
        """Close the connection."""
        self._client.close()


def without_credentials(text: str) -> str:
    """A text in which URLs have no user and no password."""
    return re.sub(r"(?<=://)[^\s/?#]*@", "…@", text)


def _is_same_server(url: httpx.URL, other: httpx.URL) -> bool:
    """Whether a redirect may be followed; another server must see neither secrets nor content."""
    return (url.scheme, url.netloc) == (other.scheme, other.netloc)


def tls_context(section: Notifier | HttpSink) -> ssl.SSLContext:
    """The TLS settings of a section: `tls-ca` replaces the authorities of the system, `extra-ca` adds to them."""
    if isinstance(section, HttpSink):
        context, is_verified = ssl.create_default_context(cafile=section.tls_ca), not section.insecure_skip_verify
        if section.tls_cert is not None:
            context.load_cert_chain(section.tls_cert, section.tls_key)
    else:
        context, is_verified = ssl.create_default_context(), not section.noverify
        if section.extra_ca is not None:
            context.load_verify_locations(section.extra_ca)
    if not is_verified:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def parse_retry_after(value: str | None, now_s: float) -> float | None:
    """The seconds that a `Retry-After` header asks to wait, given as a number or a date; None when it is neither."""
    value = (value or "").strip()
    if value.isascii() and value.isdigit():
        return float(value)
    try:
        return max(parsedate_to_datetime(value).timestamp() - now_s, 0.0)
    except (ValueError, OverflowError):
        return None
