"""The notifiers of a configuration: their senders and deliveries, the check of their templates, and samples."""

import logging
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager

from msgspec.structs import replace

from gotemplate import TemplateError
from warren.config import Config, Notifier
from warren.errors import ConfigError, WarrenError
from warren.incidents.model import Event, Notification
from warren.incidents.routing import NotificationRouter
from warren.incidents.store.store import IncidentStore
from warren.notify.delivery import NotifierDelivery, stop_all
from warren.notify.senders.alertmanager import AlertmanagerSender
from warren.notify.senders.apprise import AppriseSender, read_service
from warren.notify.senders.email import EmailSender
from warren.notify.senders.http import HttpSender
from warren.notify.senders.sender import Sender
from warren.notify.senders.slack import SlackSender
from warren.notify.templates.render import inline_template, read_templates
from warren.notify.templates.sample import sample_notification, sample_storm

log = logging.getLogger(__name__)


@contextmanager
def delivering(
    config: Config, store: IncidentStore, may_send: Callable[[], bool] = lambda: True
) -> Iterator[tuple[NotificationRouter, Callable[[], None]]]:
    """Run one delivery per notifier; yields their router, and a function that wakes all deliveries."""
    notifiers = list(config.notifiers.values())
    with ExitStack() as parts:
        senders = [parts.enter_context(closing(_make_sender(notifier, config))) for notifier in notifiers]
        deliveries = [
            NotifierDelivery(notifier.name, store, sender.send, may_send=may_send)
            for notifier, sender in zip(notifiers, senders, strict=True)
        ]
        parts.callback(stop_all, deliveries)
        for delivery in deliveries:
            delivery.start()

        def wake() -> None:
            for delivery in deliveries:
                delivery.wake()

        yield NotificationRouter(notifiers, config.routes), wake


class NullSender(Sender):
    """Sends nothing; logs the message at level debug."""

    def send(self, notification: Notification) -> None:
        """Log a notification."""
        message = self._templates.body(notification)
        log.debug("notifier %s: %s of %s: %s", self._notifier.name, notification.event, notification.group, message)


_SENDERS: dict[str, Callable[[Notifier, str | None], Sender]] = {
    "http": HttpSender,
    "email": EmailSender,
    "slack": SlackSender,
    "alertmanager": AlertmanagerSender,
    "apprise": AppriseSender,
    "null": NullSender,
}


def _make_sender(notifier: Notifier, config: Config) -> Sender:
    return _SENDERS[notifier.class_name](notifier, config.general.external_url)


def _events(notifier: Notifier) -> list[Event]:
    """The events to try a notifier with."""
    return [Event.OPEN, Event.CLOSE] if notifier.wants_close else [Event.OPEN]


def check_templates(config: Config) -> list[str]:
    """Render all templates and URLs of a configuration with samples; returns one line per mistake."""
    mistakes = []
    for notifier in config.notifiers.values():
        try:
            _check_notifier(notifier, config.general.external_url)
        except (WarrenError, TemplateError, UnicodeDecodeError) as error:
            mistakes.append(f"notifier.{notifier.name}: {error}")
    return mistakes


def _check_notifier(notifier: Notifier, external_url: str | None) -> None:
    templates = read_templates(notifier, external_url)
    # Only the URLs of class http are templates.
    keys = ("url_open", "url_close") if notifier.class_name == "http" else ()
    urls = [inline_template(url, notifier, key) for key in keys if (url := getattr(notifier, key))]
    samples = [sample_notification, sample_storm] if notifier.storm_from else [sample_notification]
    for notification in [sample(notifier.name, event) for event in _events(notifier) for sample in samples]:
        templates.render(notification)
        for url in urls:
            url.render(notification)
    if notifier.class_name == "apprise":
        read_service(notifier)


def refuse_bad_templates(config: Config) -> None:
    """Raise a ConfigError for templates with mistakes, so that they are found at the start and not in an incident."""
    if mistakes := check_templates(config):
        raise ConfigError(mistakes)


def send_sample(config: Config, name: str) -> list[Event]:
    """Send a sample incident to one notifier, and its end if it has `send-close`; returns the events that were sent."""
    notifier = config.notifiers.get(name)
    if notifier is None:
        known = ", ".join(sorted(config.notifiers)) or "none"
        raise WarrenError(f"there is no [notifier.{name}]; configured notifiers: {known}")
    incident, receipt = str(uuid.uuid4()), ""
    with closing(_make_sender(notifier, config)) as sender:
        for event in _events(notifier):
            sample = replace(sample_notification(name, event, incident), receipt=receipt)
            try:
                receipt = sender.send(sample) or receipt
            except Exception as error:  # noqa: BLE001 - the user asked what goes wrong
                message = str(error) if isinstance(error, WarrenError) else f"{type(error).__name__}: {error}"
                raise WarrenError(f"notifier.{name}: {event}: {message}") from None
    return _events(notifier)
