"""All notifiers of a configuration: who listens, and who delivers."""

import contextlib
import logging
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from warren.config import Config, Notifier
from warren.domain.incidents import Event
from warren.errors import ConfigError, WarrenError
from warren.notify.book import Book
from warren.notify.compose import composer_of, line_template
from warren.notify.email import EmailSender
from warren.notify.gotemplate import TemplateError
from warren.notify.http import HttpSender
from warren.notify.listeners import Audiences, to_audience
from warren.notify.postman import Postman, Send, close_all
from warren.notify.sample import sample_letter
from warren.snapshot.letters import Letter

log = logging.getLogger(__name__)


@contextmanager
def office(
    config: Config, book: Book, may_send: Callable[[], bool] = lambda: True
) -> Iterator[tuple[Audiences, Callable[[], None]]]:
    """Postmen at work for every notifier, and who listens; the call wakes them all."""
    notifiers = list(config.notifiers.values())
    with ExitStack() as parts:
        postmen = [Postman(one.name, book, _sender(one, parts), may_send=may_send) for one in notifiers]
        parts.callback(close_all, postmen)
        for postman in postmen:
            postman.start()

        def wake() -> None:
            for postman in postmen:
                postman.wake()

        yield Audiences(map(to_audience, notifiers), config.routes), wake


def _sender(notifier: Notifier, parts: contextlib.ExitStack) -> Send:
    if notifier.class_name == "null":
        return _to_nobody(notifier)
    sender = EmailSender(notifier) if notifier.class_name == "email" else HttpSender(notifier)
    parts.callback(sender.close)
    return sender


def _to_nobody(notifier: Notifier) -> Send:
    composer = composer_of(notifier)

    def send(letter: Letter) -> None:
        log.debug("notifier %s: %s of %s: %s", notifier.name, letter.event, letter.group, composer.body(letter))

    return send


def check_templates(config: Config) -> list[str]:
    """What is wrong with the templates of a configuration, tried on an invented incident; a line each."""
    mistakes = []
    for notifier in config.notifiers.values():
        try:
            composer = composer_of(notifier)
            for event in (Event.OPEN, Event.CLOSE) if notifier.wants_close else (Event.OPEN,):
                letter = sample_letter(notifier.name, event)
                composer.rendered(letter)
                for key in ("url_open", "url_close"):
                    if url := getattr(notifier, key):
                        line_template(url, f"notifier.{notifier.name}.{key}").render(composer.message(letter))
        except (TemplateError, UnicodeDecodeError) as error:
            mistakes.append(f"notifier.{notifier.name}: {error}")
    return mistakes


def send_sample(config: Config, name: str) -> list[Event]:
    """Send an invented incident to one notifier, and its end if it wants to hear that; raises what goes wrong."""
    notifier = config.notifiers.get(name)
    if notifier is None:
        known = ", ".join(sorted(config.notifiers)) or "none"
        raise WarrenError(f"there is no [notifier.{name}]; there are: {known}")
    events = [Event.OPEN, Event.CLOSE] if notifier.wants_close else [Event.OPEN]
    incident = str(uuid.uuid4())
    with ExitStack() as parts:
        send = _sender(notifier, parts)
        for event in events:
            try:
                send(sample_letter(name, event, incident))
            except Exception as error:  # noqa: BLE001 - whatever it is, that is the answer
                raise WarrenError(f"notifier.{name}: {event}: {type(error).__name__}: {error}") from None
    return events


def refuse_bad_templates(config: Config) -> None:
    """A ConfigError for templates that cannot be read: it should not be found out at night."""
    mistakes = check_templates(config)
    if mistakes:
        raise ConfigError(mistakes)
