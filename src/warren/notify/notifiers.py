"""All notifiers of a configuration: who listens, and who delivers."""

import contextlib
import logging
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Protocol

from gotemplate import TemplateError
from warren.config import Config, Notifier
from warren.errors import ConfigError, WarrenError
from warren.incidents.model import Event, Notification
from warren.incidents.routing import NotificationRouter, NotifierFilter
from warren.incidents.store.store import IncidentStore
from warren.notify.delivery import NotifierDelivery, Send, close_all
from warren.notify.links import Links
from warren.notify.senders.alertmanager import AlertmanagerSender
from warren.notify.senders.apprise import AppriseSender, service_of
from warren.notify.senders.email import EmailSender
from warren.notify.senders.http import HttpSender
from warren.notify.senders.slack import slack_sender
from warren.notify.templates.render import line_template, templates_of
from warren.notify.templates.sample import sample_notification, sample_storm

log = logging.getLogger(__name__)


class Sender(Protocol):
    """Sends letters, and gives back in the end what it holds."""

    def __call__(self, letter: Notification) -> str | None:
        """Send a letter as `Send` says."""

    def close(self) -> None:
        """No more letters come."""


@contextmanager
def office(
    config: Config, book: IncidentStore, may_send: Callable[[], bool] = lambda: True
) -> Iterator[tuple[NotificationRouter, Callable[[], None]]]:
    """Postmen at work for every notifier, and who listens; the call wakes them all."""
    notifiers = list(config.notifiers.values())
    with ExitStack() as parts:
        postmen = [
            NotifierDelivery(one.name, book, _sender(one, config, parts), may_send=may_send) for one in notifiers
        ]
        parts.callback(close_all, postmen)
        for postman in postmen:
            postman.start()

        def wake() -> None:
            for postman in postmen:
                postman.wake()

        yield NotificationRouter(map(NotifierFilter.of, notifiers), config.routes), wake


def _sender(notifier: Notifier, config: Config, parts: contextlib.ExitStack) -> Send:
    sender = _SENDERS[notifier.class_name](notifier, Links(config.general.external_url))
    parts.callback(sender.close)
    return sender


class _Nobody:
    """Sends nothing; the log shows what it would have been."""

    def __init__(self, notifier: Notifier, links: Links) -> None:
        self._name = notifier.name
        self._composer = templates_of(notifier, links)

    def __call__(self, letter: Notification) -> None:
        log.debug("notifier %s: %s of %s: %s", self._name, letter.event, letter.group, self._composer.body(letter))

    def close(self) -> None:
        pass


_SENDERS: Mapping[str, Callable[[Notifier, Links], Sender]] = {
    "http": HttpSender,
    "email": EmailSender,
    "slack": slack_sender,
    "alertmanager": AlertmanagerSender,
    "apprise": AppriseSender,
    "null": _Nobody,
}


def check_templates(config: Config) -> list[str]:
    """What is wrong with the templates and URLs of a configuration, tried on invented incidents; a line each."""
    links = Links(config.general.external_url)
    mistakes = []
    for notifier in config.notifiers.values():
        try:
            _try(notifier, links)
        except (WarrenError, TemplateError, UnicodeDecodeError) as error:
            mistakes.append(f"notifier.{notifier.name}: {error}")
    return mistakes


def _try(notifier: Notifier, links: Links) -> None:
    composer = templates_of(notifier, links)
    # Only those of http are templates.
    urls = {key: getattr(notifier, key) for key in ("url_open", "url_close")} if notifier.class_name == "http" else {}
    lines = [line_template(url, notifier, key) for key, url in urls.items() if url]
    samples = [sample_notification, sample_storm] if notifier.storm_from else [sample_notification]
    for event in (Event.OPEN, Event.CLOSE) if notifier.wants_close else (Event.OPEN,):
        for sample in samples:
            letter = sample(notifier.name, event)
            composer.rendered(letter)
            for line in lines:
                line.render(letter)
    if notifier.class_name == "apprise":
        service_of(notifier)


def send_sample(config: Config, name: str) -> list[Event]:
    """Send an invented incident to one notifier, and its end if it wants to hear that; raises what goes wrong."""
    notifier = config.notifiers.get(name)
    if notifier is None:
        known = ", ".join(sorted(config.notifiers)) or "none"
        raise WarrenError(f"there is no [notifier.{name}]; there are: {known}")
    events = [Event.OPEN, Event.CLOSE] if notifier.wants_close else [Event.OPEN]
    incident, receipt = str(uuid.uuid4()), ""
    with ExitStack() as parts:
        send = _sender(notifier, config, parts)
        for event in events:
            try:
                receipt = send(replace(sample_notification(name, event, incident), receipt=receipt)) or receipt
            except Exception as error:  # noqa: BLE001 - whatever it is, that is the answer
                raise WarrenError(f"notifier.{name}: {event}: {type(error).__name__}: {error}") from None
    return events


def refuse_bad_templates(config: Config) -> None:
    """A ConfigError for templates that cannot be read: it should not be found out at night."""
    mistakes = check_templates(config)
    if mistakes:
        raise ConfigError(mistakes)
