"""Makes a message of a letter: by the template of its notifier, or, should that fail, in plain words of our own."""

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from warren.config import Notifier
from warren.domain.incidents import Event
from warren.domain.rules import Status
from warren.notify.gotemplate import Template, TemplateError, parse
from warren.notify.gotemplate.clock import Time
from warren.notify.gotemplate.helpers import HELPERS
from warren.notify.message import KnownLag, Message, Offset, PartitionResult, Result, StatusConstant
from warren.snapshot.letters import Letter

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Composer:
    """The templates of one notifier."""

    name: str
    when_open: Template
    when_closed: Template | None
    extras: Mapping[str, str]

    def body(self, letter: Letter) -> str:
        """What is sent."""
        try:
            return self.rendered(letter)
        except TemplateError as error:
            log.error("notifier %s: %s; a plain message goes out instead", self.name, error)
            return plain_body(letter)

    def rendered(self, letter: Letter) -> str:
        """What its template makes of a letter."""
        template = (self.when_closed if letter.event is Event.CLOSE else None) or self.when_open
        return template.render(self.message(letter))

    def message(self, letter: Letter) -> Message:
        """A letter as templates see it."""
        return Message(
            Cluster=letter.cluster,
            Group=letter.group,
            ID=letter.incident,
            Start=Time(letter.opened_ms * 1_000_000),
            Extras=self.extras,
            Result=_result(letter.result),
        )


def composer_of(notifier: Notifier) -> Composer:
    """A notifier's templates, read; a TemplateError says which of them is wrong, and where."""
    assert notifier.template_open is not None
    return Composer(
        notifier.name,
        _template(notifier.template_open.read_text(encoding="utf-8"), str(notifier.template_open)),
        None
        if notifier.template_close is None
        else _template(notifier.template_close.read_text(encoding="utf-8"), str(notifier.template_close)),
        notifier.extras,
    )


def _template(text: str, name: str) -> Template:
    return parse(text, name, HELPERS)


def line_template(text: str, what: str) -> Template:
    """A template that stands in the configuration itself, such as a URL."""
    return parse(text, what, HELPERS)


def plain_body(letter: Letter) -> str:
    """What is said when a template cannot."""
    result = letter.result
    return json.dumps(
        {
            "id": letter.incident,
            "event": str(letter.event),
            "cluster": letter.cluster,
            "group": letter.group,
            "status": result.get("status"),
            "totallag": result.get("totallag"),
            "start": letter.opened_ms,
            "why": letter.why,
        },
        ensure_ascii=False,
    )


def _result(held: Mapping[str, Any]) -> Result:
    return Result(
        Cluster=held["cluster"],
        Group=held["group"],
        Status=_status(held["status"]),
        Complete=held["complete"],
        Partitions=tuple(map(_partition, held["partitions"])),
        TotalPartitions=held["partition_count"],
        Maxlag=None if held["maxlag"] is None else _partition(held["maxlag"]),
        TotalLag=held["totallag"],
    )


def _partition(held: Mapping[str, Any]) -> PartitionResult:
    return PartitionResult(
        Topic=held["topic"],
        Partition=held["partition"],
        Owner=held["owner"],
        ClientID=held["client_id"],
        Status=_status(held["status"]),
        Start=_offset(held["start"]),
        End=_offset(held["end"]),
        CurrentLag=held["current_lag"],
        Complete=held["complete"],
    )


def _offset(held: Mapping[str, Any] | None) -> Offset | None:
    if held is None:
        return None
    return Offset(
        Offset=held["offset"],
        Timestamp=held["timestamp"],
        ObservedTimestamp=held["observedAt"],
        Lag=None if held["lag"] is None else KnownLag(held["lag"]),
    )


def _status(word: str) -> StatusConstant:
    return StatusConstant(int(Status[word]))
