"""What every class of notifier implements."""

from abc import ABC, abstractmethod

from warren.config import Notifier
from warren.delivery.http_client import HttpClient
from warren.incidents.model import Notification
from warren.notify.templates.render import read_templates


class Sender(ABC):
    """Sends the notifications of one notifier."""

    def __init__(self, notifier: Notifier, external_url: str | None = None) -> None:
        self._notifier = notifier
        self._external_url = external_url
        self._templates = read_templates(notifier, external_url)

    @abstractmethod
    def send(self, notification: Notification) -> str | None:
        """Send a notification; returns its receipt if later notifications of the incident need one.

        Raises RefusedError if the receiver will never take it, BusyError if another attempt may succeed.
        """

    def close(self) -> None:  # noqa: B027 - most senders keep no connection
        """Close the connections that are kept open."""


class HttpClientSender(Sender):
    """A sender that uses HTTP."""

    def __init__(self, notifier: Notifier, external_url: str | None = None) -> None:
        super().__init__(notifier, external_url)
        self._url = notifier.url_open or ""
        self._client = HttpClient(notifier, {"Content-Type": "application/json"})

    def close(self) -> None:
        """Close the connection."""
        self._client.close()
