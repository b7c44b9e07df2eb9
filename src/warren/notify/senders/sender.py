"""What every class of notifier implements."""

from abc import ABC, abstractmethod

from warren.config import Notifier
from warren.delivery.http_client import HttpClient
from warren.incidents.model import Notification
from warren.notify.links import Links
from warren.notify.templates.render import read_templates


class Sender(ABC):
    """Sends the notifications of one notifier."""

    def __init__(self, notifier: Notifier, links: Links | None = None) -> None:
        self._notifier = notifier
        self._links = links or Links()
        self._templates = read_templates(notifier, self._links)

    @abstractmethod
    def send(self, notification: Notification) -> str | None:
        """Send a notification; returns its receipt if later notifications of the incident need one.

        Raises RefusedError if the receiver will never take it, BusyError if another attempt may succeed.
        """

    def close(self) -> None:  # noqa: B027 - most senders keep no connection
        """Close the connections that are kept open."""


class HttpClientSender(Sender):
    """A sender that uses HTTP."""

    def __init__(self, notifier: Notifier, links: Links | None = None) -> None:
        super().__init__(notifier, links)
        self._client = HttpClient.for_notifier(notifier)

    def close(self) -> None:
        """Close the connection."""
        self._client.close()
