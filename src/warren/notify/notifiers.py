"""The notifiers of a configuration: their senders and deliveries, the check of their templates, and samples."""

import logging
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from gotemplate import TemplateError
from warren.config import Config, Notifier
from warren.config.findings import Findings
from warren.config.load import accepted
from warren.errors import WarrenError
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
from warren.notify.templates.go import GoTemplate
from warren.notify.templates.render import MessageTemplates, read_templates, url_template
from warren.notify.templates.sample import sample_notification, sample_storm
from warren.notify.templates.url import NameInServerError, UrlTemplate

log = logging.getLogger(__name__)


class NotifierDeliveries:
    """One delivery per notifier of a configuration."""

    def __init__(self, store: IncidentStore, may_send: Callable[[], bool] = lambda: True) -> None:
        self._store = store
        self._may_send = may_send
        self._deliveries: dict[str, NotifierDelivery] = {}

    def configure(self, config: Config) -> NotificationRouter:
        """Deliver to the notifiers of a configuration from now on; returns their router.

        A notifier that stays keeps its delivery. What waits for one that is gone is given up.
        """
        senders = {name: _make_sender(notifier, config) for name, notifier in config.notifiers.items()}
        removed = [self._deliveries.pop(name) for name in [*self._deliveries] if name not in senders]
        stop_all(removed)
        for name, sender in senders.items():
            if name in self._deliveries:
                self._deliveries[name].replace_sender(sender.send, sender.close)
                continue
            delivery = NotifierDelivery(
                name, self._store, sender.send, may_send=self._may_send, close_sender=sender.close
            )
            self._deliveries[name] = delivery
            delivery.start()
        self._store.give_up_all_but(senders, time.time_ns() // 1_000_000)
        return NotificationRouter(config.notifiers.values(), config.routes)

    def wake(self) -> None:
        """Check for new notifications now."""
        for delivery in self._deliveries.values():
            delivery.wake()

    def close(self) -> None:
        """Send no more; what waits stays."""
        stop_all([*self._deliveries.values()])
        self._deliveries = {}


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


def check_templates(config: Config, findings: Findings) -> None:
    """Parse all templates and URLs of a configuration and render samples: what cannot be parsed is a mistake.

    What fails on a sample is a warning, as it may work with real incidents and has a fallback if it does not. A URL
    whose server would be chosen by a name is a mistake.
    """
    for notifier in config.notifiers.values():
        name = f"notifier.{notifier.name}"
        try:
            templates, urls = _parse_templates(notifier, config.general.external_url)
        except (WarrenError, TemplateError, UnicodeDecodeError) as error:
            findings.mistakes.append(f"{name}: {error}")
            continue
        for template in (templates.template_open, templates.template_close, *(url.template for url in urls)):
            if isinstance(template, GoTemplate) and template.has_old_id:
                findings.notes.append(f"{name}: template {template.template.name} has .Id, which is read as .ID")
        # Most templates fail on all samples alike.
        for failure in dict.fromkeys(_failures(notifier, templates, urls)):
            (findings.mistakes if failure.is_mistake else findings.warnings).append(f"{name}: {failure.message}")


def _parse_templates(notifier: Notifier, external_url: str | None) -> tuple[MessageTemplates, list[UrlTemplate]]:
    """The templates of a notifier's messages and of its URLs."""
    if notifier.class_name == "apprise":
        read_service(notifier)
    # Only the URLs of class http are templates.
    keys = ("url_open", "url_close") if notifier.class_name == "http" else ()
    urls = [url_template(url, notifier, key) for key in keys if (url := getattr(notifier, key))]
    return read_templates(notifier, external_url), urls


class _TemplateFailure(NamedTuple):
    message: str
    is_mistake: bool


def _failures(
    notifier: Notifier, templates: MessageTemplates, urls: Sequence[UrlTemplate]
) -> Iterator[_TemplateFailure]:
    """How each template that fails on a sample fails, and what happens if it fails on an incident."""
    samples = [sample_notification, sample_storm] if notifier.storm_from else [sample_notification]
    renders: list[tuple[Callable[[Notification], object], str]] = [
        (templates.render, "a plain message is sent instead"),
        *((url.render, "the notification is given up") for url in urls),
    ]
    for notification in [sample(notifier.name, event) for event in _events(notifier) for sample in samples]:
        for render, fallback in renders:
            try:
                render(notification)
            except NameInServerError as error:
                yield _TemplateFailure(str(error), is_mistake=True)
            except TemplateError as error:
                yield _TemplateFailure(f"{error}; if that happens on an incident, {fallback}", is_mistake=False)


def refuse_bad_templates(config: Config) -> None:
    """Log what the check of the templates finds; raise a ConfigError for mistakes, so that they prevent the start."""
    findings = Findings(Path())
    check_templates(config, findings)
    accepted(None if findings.mistakes else config, findings)


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
