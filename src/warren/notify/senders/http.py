"""The http notifier: each message is a request, as Burrow makes it, and can be told from the same one sent again."""

from gotemplate import TemplateError
from warren.config import Notifier
from warren.delivery.http_client import HttpClient
from warren.errors import RefusedError
from warren.incidents.model import Event, Notification
from warren.notify.links import Links
from warren.notify.templates.render import MessageTemplates, line_template, templates_of

KEY_HEADER = "Idempotency-Key"
EVENT_HEADER = "X-Warren-Event"


class HttpSender:
    """Sends one notifier's letters over connections that it keeps."""

    def __init__(self, notifier: Notifier, links: Links | None = None) -> None:
        assert notifier.url_open is not None
        self._notifier = notifier
        self._composer: MessageTemplates = templates_of(notifier, links)
        self._url_open = line_template(notifier.url_open, notifier, "url-open")
        self._url_close = line_template(notifier.url_close or notifier.url_open, notifier, "url-close")
        self._client = HttpClient.for_notifier(notifier)

    def __call__(self, letter: Notification) -> None:
        """Send a letter; RefusedError when the receiver will never take it."""
        is_close = letter.event is Event.CLOSE
        try:
            url = (self._url_close if is_close else self._url_open).render(letter)
        except TemplateError as error:
            raise RefusedError(str(error)) from None
        method = self._notifier.method_close if is_close else self._notifier.method_open
        headers = {KEY_HEADER: letter.token, EVENT_HEADER: str(letter.event)}
        self._client.send(method.upper(), url, self._composer.body(letter).encode(), headers)

    def close(self) -> None:
        """Give the connections back."""
        self._client.close()
