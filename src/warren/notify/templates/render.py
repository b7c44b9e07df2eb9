"""Makes a message of a letter: by the template of its notifier, or, should that fail, in plain words of our own."""

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import gotemplate
from gotemplate import TemplateError
from gotemplate.burrow import KnownLag, Message, Offset, PartitionResult, Result, StatusConstant
from gotemplate.burrow_functions import HELPERS
from gotemplate.clock import Time
from warren.config import Notifier
from warren.domain.status import Status
from warren.incidents.model import Event, Notification
from warren.notify.links import Links
from warren.notify.templates import jinja
from warren.snapshot.status import GroupStatus, PartitionStatus, Slot

log = logging.getLogger(__name__)


class Template(Protocol):
    """A template in any language, ready to speak of letters."""

    def render(self, letter: Notification) -> str:
        """What it says of a letter; a TemplateError says why it cannot."""


@dataclass(frozen=True, slots=True)
class GoTemplate:
    """One as Burrow has them."""

    template: gotemplate.Template
    extras: Mapping[str, str]

    def render(self, letter: Notification) -> str:
        """What it says of a letter."""
        return self.template.render(_message(letter, self.extras))


@dataclass(frozen=True, slots=True)
class MessageTemplates:
    """The templates of one notifier."""

    name: str
    when_open: Template | None
    when_closed: Template | None

    def body(self, letter: Notification) -> str:
        """What is sent: what a template makes, or plain words."""
        said = self.made(letter)
        return plain_body(letter) if said is None else said

    def made(self, letter: Notification) -> str | None:
        """What its template makes of a letter; None when it has none, or one that fails."""
        try:
            return self.rendered(letter)
        except TemplateError as error:
            log.error("notifier %s: %s; a plain message goes out instead", self.name, error)
            return None

    def rendered(self, letter: Notification) -> str | None:
        """What its template makes of a letter, if it has one for it."""
        template = self.when_closed if letter.event is Event.CLOSE else self.when_open
        return None if template is None else template.render(letter)


def templates_of(notifier: Notifier, links: Links | None = None) -> MessageTemplates:
    """A notifier's templates, read; a TemplateError says which of them is wrong, and where."""

    def read(path: Path | None) -> Template | None:
        return None if path is None else _template(path, notifier.extras, links or Links())

    return MessageTemplates(notifier.name, read(notifier.template_open), read(notifier.template_close))


def _template(path: Path, extras: Mapping[str, str], links: Links) -> Template:
    text = path.read_text(encoding="utf-8")
    if path.suffix in jinja.SUFFIXES:
        return jinja.parse(text, str(path), extras, links)
    return GoTemplate(gotemplate.parse(text, str(path), HELPERS), extras)


def line_template(text: str, notifier: Notifier, key: str) -> Template:
    """A template that stands in the configuration itself, such as a URL."""
    return GoTemplate(gotemplate.parse(text, f"notifier.{notifier.name}.{key}", HELPERS), notifier.extras)


def _message(letter: Notification, extras: Mapping[str, str]) -> Message:
    return Message(
        Cluster=letter.cluster,
        Group=letter.group,
        ID=letter.incident,
        Start=Time(letter.opened_ms * 1_000_000),
        Extras=extras,
        Result=_result(letter.result),
    )


def plain_body(letter: Notification) -> str:
    """What is said when a template cannot."""
    result = letter.result
    return json.dumps(
        {
            "id": letter.incident,
            "event": str(letter.event),
            "cluster": letter.cluster,
            "group": letter.group,
            "status": result.status,
            "totallag": result.totallag,
            "start": letter.opened_ms,
            "why": letter.reason,
        },
        ensure_ascii=False,
    )


def _result(held: GroupStatus) -> Result:
    return Result(
        Cluster=held.cluster,
        Group=held.group,
        Status=_status(held.status),
        Complete=held.complete,
        Partitions=tuple(map(_partition, held.partitions)),
        TotalPartitions=held.partition_count,
        Maxlag=None if held.maxlag is None else _partition(held.maxlag),
        TotalLag=held.totallag,
    )


def _partition(held: PartitionStatus) -> PartitionResult:
    return PartitionResult(
        Topic=held.topic,
        Partition=held.partition,
        Owner=held.owner,
        ClientID=held.client_id,
        Status=_status(held.status),
        Start=_offset(held.start),
        End=_offset(held.end),
        CurrentLag=held.current_lag,
        Complete=held.complete,
    )


def _offset(held: Slot | None) -> Offset | None:
    if held is None:
        return None
    return Offset(
        Offset=held.offset,
        Timestamp=held.timestamp,
        ObservedTimestamp=held.observed_at,
        Lag=None if held.lag is None else KnownLag(held.lag),
    )


def _status(word: str) -> StatusConstant:
    return StatusConstant(int(Status[word]))
