"""The http notifier: each message is a request, as Burrow makes it, and can be told from the same one sent again."""

import httpx

from warren.config import Notifier
from warren.domain.incidents import Event
from warren.notify.compose import Composer, composer_of, line_template
from warren.notify.gotemplate import Template, TemplateError
from warren.notify.postman import RefusedError
from warren.notify.tls import tls_of
from warren.snapshot.letters import Letter

KEY_HEADER = "Idempotency-Key"
EVENT_HEADER = "X-Warren-Event"
TRY_AGAIN = frozenset({408, 425, 429})
"""Refusals of the moment; others of their kind are for good."""


class HttpSender:
    """Sends one notifier's letters over connections that it keeps."""

    def __init__(self, notifier: Notifier) -> None:
        assert notifier.url_open is not None
        self._notifier = notifier
        self._composer: Composer = composer_of(notifier)
        self._url_open = _url(notifier.url_open, notifier, "url-open")
        self._url_close = _url(notifier.url_close or notifier.url_open, notifier, "url-close")
        limits = httpx.Limits(
            max_connections=1,
            max_keepalive_connections=0 if notifier.disable_http_keepalive else 1,
            keepalive_expiry=float(notifier.keepalive),
        )
        auth = httpx.BasicAuth(notifier.username, notifier.password or "") if notifier.username else None
        self._client = httpx.Client(
            verify=tls_of(notifier),
            timeout=float(notifier.timeout),
            limits=limits,
            auth=auth,
            follow_redirects=True,
        )

    def __call__(self, letter: Letter) -> None:
        """Send a letter; RefusedError when the receiver will never take it."""
        is_close = letter.event is Event.CLOSE
        try:
            url = (self._url_close if is_close else self._url_open).render(self._composer.message(letter))
        except TemplateError as error:
            raise RefusedError(str(error)) from None
        headers = {"Content-Type": "application/json", **self._notifier.headers}
        headers |= {KEY_HEADER: letter.token, EVENT_HEADER: str(letter.event)}
        method = self._notifier.method_close if is_close else self._notifier.method_open
        body = self._composer.body(letter).encode()
        try:
            answer = self._client.request(method.upper(), url, content=body, headers=headers)
        except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
            # The URL itself may hold a secret.
            raise RefusedError(f"its URL is none: {type(error).__name__}") from None
        except httpx.LocalProtocolError:
            # So may a header, which the error would show.
            raise RefusedError("a header, or the method, cannot be sent as it is configured") from None
        if answer.is_success:
            return
        said = f"the receiver answered {answer.status_code}"
        if answer.is_client_error and answer.status_code not in TRY_AGAIN:
            raise RefusedError(said)
        raise ConnectionError(said)

    def close(self) -> None:
        """Give the connections back."""
        self._client.close()


def _url(text: str, notifier: Notifier, key: str) -> Template:
    return line_template(text, f"notifier.{notifier.name}.{key}")
