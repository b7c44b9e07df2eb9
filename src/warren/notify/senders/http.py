"""The http notifier: each notification is a request as in Burrow, with a key that stays the same if it is repeated."""

from gotemplate import TemplateError
from warren.config import Notifier
from warren.errors import RefusedError
from warren.incidents.model import Event, Notification
from warren.notify.senders.sender import HttpClientSender
from warren.notify.templates.render import url_template

KEY_HEADER = "Idempotency-Key"
EVENT_HEADER = "X-Warren-Event"


class HttpSender(HttpClientSender):
    """Sends HTTP requests whose URL and body are templates."""

    def __init__(self, notifier: Notifier, external_url: str | None = None) -> None:
        super().__init__(notifier, external_url)
        self._url_open = url_template(self._url, notifier, "url-open")
        self._url_close = url_template(notifier.url_close or self._url, notifier, "url-close")

    def send(self, notification: Notification) -> None:
        """Send a notification as a request."""
        is_close = notification.event is Event.CLOSE
        try:
            url = (self._url_close if is_close else self._url_open).render(notification)
        except TemplateError as error:
            raise RefusedError(str(error)) from None
        method = self._notifier.method_close if is_close else self._notifier.method_open
        headers = {KEY_HEADER: notification.token, EVENT_HEADER: str(notification.event)}
        self._client.send(method.upper(), url, self._templates.body(notification).encode(), headers)
