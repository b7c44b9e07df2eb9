"""The apprise notifier: any service that Apprise supports, named by a URL."""

import logging
from typing import TYPE_CHECKING

from warren.config import Notifier
from warren.domain.printable import printable
from warren.errors import BusyError, WarrenError
from warren.incidents.model import Event, Notification
from warren.notify.names import with_names
from warren.notify.senders.sender import Sender
from warren.notify.summary import link_to, one_line, summarize

if TYPE_CHECKING:
    import apprise

# Group names come from Kafka: in no service may one become a mention or a tag.
_DEFUSED = str.maketrans({"@": "@\u200b", "<": "\u2039", ">": "\u203a"})
_TYPES = {"ERR": "failure", "WARN": "warning"}


class AppriseSender(Sender):
    """Sends messages to the services of one Apprise URL."""

    def __init__(self, notifier: Notifier, external_url: str | None) -> None:
        super().__init__(notifier, external_url)
        self._service = read_service(notifier)

    def send(self, notification: Notification) -> None:
        """Send a notification as a message; failures are tried again, as Apprise does not say why a service refuses."""
        title = summarize(notification).headline.translate(_DEFUSED)
        body = self._templates.try_render(with_names(notification, _defuse)) or _body(
            notification, link_to(notification, self._external_url)
        )
        is_close = notification.event is Event.CLOSE
        notify_type = "success" if is_close else _TYPES.get(notification.result.status, "info")
        if not self._service.notify(body=body, title=title, notify_type=notify_type, body_format="text"):
            raise BusyError("the service did not take the message")


def _defuse(name: str) -> str:
    return printable(name).translate(_DEFUSED)


def read_service(notifier: Notifier) -> "apprise.Apprise":
    """The services of a notifier's URL; a WarrenError if Apprise is not installed or does not know the URL."""
    assert notifier.url_open is not None
    try:
        import apprise
    except ImportError:
        raise WarrenError("class apprise needs a package: pip install 'warren[apprise]'") from None
    # Both would log URLs, which contain tokens.
    logging.getLogger("apprise").setLevel(logging.CRITICAL + 1)
    logging.getLogger("urllib3").setLevel(logging.ERROR)
    asset = apprise.AppriseAsset(app_id="Warren", app_desc="Kafka consumer lag")
    services = apprise.Apprise(asset=asset)
    if not services.add(notifier.url_open) or not len(services):
        raise WarrenError("`url-open` is not a URL that Apprise knows")
    for service in services:
        # A message that is too long is sent in parts; otherwise every attempt would be refused.
        service.overflow_mode = apprise.OverflowMode.SPLIT
    return services


def _body(notification: Notification, link: str) -> str:
    summary = summarize(notification)
    lines = [summary.reason, f"Lag: {summary.lag}"]
    if notification.event is not Event.CLOSE:
        lines.append(f"In trouble: {summary.affected}")
    if notification.team:
        lines.append(f"Team: {one_line(notification.team)}")
    lines += summary.list_lines("- ")
    return "\n".join([*(line.translate(_DEFUSED) for line in lines), *([link] if link else [])])
