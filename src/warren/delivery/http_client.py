"""HTTP as notifiers speak it: one client for a notifier's settings, and what each answer means for a letter."""

import logging
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

import httpx

from warren.config import Notifier
from warren.delivery.tls import tls_of
from warren.errors import BusyError, RefusedError

TRY_AGAIN = frozenset({408, 425, 429})
"""Refusals of the moment; others of their kind are for good."""
REDIRECTS_MOST = 4

# It would log every URL, and those of webhooks are secret.
logging.getLogger("httpx").setLevel(logging.WARNING)


class HttpClient:
    """Sends requests over a connection that it keeps, as a notifier's section says."""

    def __init__(self, notifier: Notifier) -> None:
        limits = httpx.Limits(
            max_connections=1,
            max_keepalive_connections=0 if notifier.disable_http_keepalive else 1,
            keepalive_expiry=float(notifier.keepalive),
        )
        self._client = httpx.Client(
            verify=tls_of(notifier),
            timeout=float(notifier.timeout),
            limits=limits,
            auth=httpx.BasicAuth(notifier.username, notifier.password or "") if notifier.username else None,
        )
        self._headers = {"Content-Type": "application/json", **notifier.headers}

    def send(self, method: str, url: str, body: bytes, headers: Mapping[str, str] | None = None) -> httpx.Response:
        """Send a request and give its answer; where that is no good one, an error says what it means for a letter."""
        try:
            answer = self._asked(method, url, body, {**self._headers, **(headers or {})})
        except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
            # The URL itself may hold a secret.
            raise RefusedError(f"its URL is none: {type(error).__name__}") from None
        except (httpx.LocalProtocolError, UnicodeError):
            # So may a header, which the error would show.
            raise RefusedError("a header, or the method, cannot be sent as it is configured") from None
        if answer.is_success:
            return answer
        if answer.is_redirect:
            raise RefusedError(f"the receiver answered {answer.status_code}: its URL leads elsewhere")
        said = f"the receiver answered {answer.status_code}{_word(answer)}"
        wait_s = wait_asked_for(answer.headers.get("Retry-After"), time.time())
        if answer.status_code in (429, 503) and wait_s is not None:
            raise BusyError(said, wait_s)
        if answer.is_client_error and answer.status_code not in TRY_AGAIN:
            raise RefusedError(said)
        raise ConnectionError(said)

    def _asked(self, method: str, url: str, body: bytes, headers: Mapping[str, str]) -> httpx.Response:
        """The answer, also from another path of the same server; secrets and letters are for no other."""
        answer = self._client.request(method, url, content=body, headers=headers)
        for _ in range(REDIRECTS_MOST):
            to = answer.next_request
            is_same = to is not None and (to.url.scheme, to.url.netloc) == (answer.url.scheme, answer.url.netloc)
            if answer.status_code not in (307, 308) or to is None or not is_same:
                break
            answer = self._client.request(method, to.url, content=body, headers=headers)
        return answer

    def close(self) -> None:
        """Give the connection back."""
        self._client.close()


def wait_asked_for(retry_after: str | None, now_s: float) -> float | None:
    """The seconds that a `Retry-After` asks for, which may also be a date; None when it says nothing."""
    said = (retry_after or "").strip()
    if said.isascii() and said.isdigit():
        return float(said)
    try:
        return max(parsedate_to_datetime(said).timestamp() - now_s, 0.0)
    except (ValueError, OverflowError):
        return None


def _word(answer: httpx.Response) -> str:
    """What is wrong, where the receiver says it in one word, as Slack does."""
    word = answer.text[:60].strip()
    return f" {word}" if word.replace("_", "").isalnum() and word.isascii() else ""
