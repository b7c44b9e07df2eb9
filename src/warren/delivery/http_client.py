"""The HTTP client of notifiers and sinks, and what each answer means for the request: taken, try again, or refused.

A request that was taken returns its answer, `BusyError` says to try again, `RefusedError` that no attempt will succeed.
"""

import logging
import ssl
import time
from collections.abc import Collection, Mapping, Sequence
from email.utils import parsedate_to_datetime

import httpx

from warren.config import Notifier
from warren.config.sinks import HttpSink
from warren.delivery.tls import tls_context
from warren.errors import BusyError, RefusedError

TRANSIENT = frozenset({408, 425, 429})
"""Client errors that pass by themselves; so do all errors of the server."""
MENDABLE = frozenset({401, 403, 404})
"""Client errors that somebody may mend on the server: an account, a permission, a missing index."""
WITH_RETRY_AFTER = frozenset({429, 503})
MAX_REDIRECTS = 4
MAX_QUOTED_CHARS = 200
MAX_WORD_CHARS = 60

# It would log every URL, and those of webhooks are secret.
logging.getLogger("httpx").setLevel(logging.WARNING)

HttpResponse = httpx.Response


class HttpClient:
    """Sends requests over one connection, to the first of several servers that answers."""

    def __init__(
        self,
        *,
        tls: ssl.SSLContext,
        timeout_s: float,
        headers: Mapping[str, str],
        username: str | None = None,
        password: str | None = None,
        keepalive_s: float = 5.0,
        servers: Sequence[str] = ("",),
        retries_mendable: bool,
        quotes_answers: bool,
    ) -> None:
        """Set up a client; without `servers`, each request names its whole URL.

        `retries_mendable` retries what needs somebody to mend an account, an address or a setting. `quotes_answers`
        shows the beginning of an answer that is an error; without it only a single word, as the rest may be secret.
        """
        self._servers = [server.rstrip("/") for server in servers]
        self._headers = dict(headers)
        self._retries_mendable = retries_mendable
        self._quotes_answers = quotes_answers
        self._client = httpx.Client(
            verify=tls,
            timeout=timeout_s,
            limits=httpx.Limits(
                max_connections=1, max_keepalive_connections=1 if keepalive_s else 0, keepalive_expiry=keepalive_s
            ),
            auth=httpx.BasicAuth(username, password or "") if username else None,
        )

    @classmethod
    def for_notifier(cls, notifier: Notifier) -> "HttpClient":
        """A client whose URLs and answers may be secret; a notification that is refused is given up at once."""
        return cls(
            tls=tls_context(extra_ca=notifier.extra_ca, is_verified=not notifier.noverify),
            timeout_s=float(notifier.timeout),
            headers={"Content-Type": "application/json", **notifier.headers},
            username=notifier.username,
            password=notifier.password,
            keepalive_s=0.0 if notifier.disable_http_keepalive else float(notifier.keepalive),
            retries_mendable=False,
            quotes_answers=False,
        )

    @classmethod
    def for_sink(cls, sink: HttpSink, headers: Mapping[str, str]) -> "HttpClient":
        """A client that fails over between servers; requests wait on disk until a wrong password is mended."""
        return cls(
            tls=tls_context(
                ca=sink.tls_ca, certificate=sink.tls_cert, key=sink.tls_key, is_verified=not sink.insecure_skip_verify
            ),
            timeout_s=sink.timeout,
            headers={**headers, **sink.headers},
            username=sink.username,
            password=sink.password,
            servers=sink.urls,
            retries_mendable=True,
            quotes_answers=True,
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
        params = {name: value for name, value in query.items() if value is not None} if query else None
        try:
            answer = self._request(
                method, f"{self._servers[0]}{url}", body, {**self._headers, **(headers or {})}, params
            )
        except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
            # The URL itself may hold a secret.
            raise self._misconfigured(f"the URL is not valid: {type(error).__name__}") from None
        except (httpx.LocalProtocolError, UnicodeError):
            # So may a header, which the error would show.
            raise self._misconfigured("a header, or the method, cannot be sent as it is configured") from None
        except httpx.TransportError as error:
            self._fail_over()
            raise BusyError(f"{type(error).__name__}: {error}") from None
        if answer.is_success or answer.status_code in accepted:
            return answer
        raise self._failure(answer)

    def _request(
        self, method: str, url: str, body: bytes, headers: Mapping[str, str], params: Mapping[str, str] | None
    ) -> httpx.Response:
        """Send a request and follow redirects within the same server; another must see neither secrets nor content."""
        answer = self._client.request(method, url, content=body, headers=headers, params=params)
        for _ in range(MAX_REDIRECTS):
            to = answer.next_request
            is_same = to is not None and (to.url.scheme, to.url.netloc) == (answer.url.scheme, answer.url.netloc)
            if answer.status_code not in (307, 308) or to is None or not is_same:
                break
            answer = self._client.request(method, to.url, content=body, headers=headers)
        return answer

    def _failure(self, answer: httpx.Response) -> BusyError | RefusedError:
        """What an answer that is no success means for its request."""
        message = f"the server answered {answer.status_code}{self._quote(answer)}"
        if answer.is_redirect:
            return self._misconfigured(f"{message}: its URL redirects elsewhere")
        is_transient = answer.status_code in TRANSIENT or not answer.is_client_error
        if is_transient or (self._retries_mendable and answer.status_code in MENDABLE):
            self._fail_over()
            asked_s = None
            if answer.status_code in WITH_RETRY_AFTER:
                asked_s = parse_retry_after(answer.headers.get("Retry-After"), time.time())
            return BusyError(message, asked_s or 0.0)
        return RefusedError(message)

    def _misconfigured(self, message: str) -> BusyError | RefusedError:
        if not self._retries_mendable:
            return RefusedError(message)
        self._fail_over()
        return BusyError(message)

    def _fail_over(self) -> None:
        """Let the next request try the next server."""
        self._servers.append(self._servers.pop(0))

    def _quote(self, answer: httpx.Response) -> str:
        """The server's own words; only a single word, such as Slack's error codes, where answers may be secret."""
        if self._quotes_answers:
            return f": {answer.text[:MAX_QUOTED_CHARS]}"
        word = answer.text[:MAX_WORD_CHARS].strip()
        return f" {word}" if word.replace("_", "").isalnum() and word.isascii() else ""

    def close(self) -> None:
        """Close the connection."""
        self._client.close()


def parse_retry_after(value: str | None, now_s: float) -> float | None:
    """The seconds that a `Retry-After` header asks to wait, given as a number or a date; None when it is neither."""
    value = (value or "").strip()
    if value.isascii() and value.isdigit():
        return float(value)
    try:
        return max(parsedate_to_datetime(value).timestamp() - now_s, 0.0)
    except (ValueError, OverflowError):
        return None
