"""Go templates, with the message that Burrow gives to them."""
# ruff: noqa: N802 - the methods have Go's names

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, TypeVar

import msgspec

import gotemplate
from gotemplate import Foreign, Part
from gotemplate.burrow import KnownLag, Message, Offset, PartitionResult, Result, StatusConstant
from gotemplate.burrow_functions import HELPERS
from gotemplate.clock import Time
from gotemplate.functions import functions_of
from gotemplate.nodes import Field, Variable
from warren.domain.status import Status
from warren.incidents.model import Notification
from warren.notify.slack_markup import escape_markup_once
from warren.notify.summary import time_lag_words

Built = TypeVar("Built", Result, PartitionResult, Offset)
_FUNCTIONS = HELPERS | functions_of({"slackescape": escape_markup_once})
"""Burrow's functions, and Warren's own."""
_STRUCTS = {"maxlag": PartitionResult, "start": Offset, "end": Offset}


@dataclass(frozen=True, slots=True, kw_only=True)
class WarrenMessage(Message):
    """Burrow's message, of which templates may also ask `.Id` and the lag in time.

    These are methods, as functions that write the whole message show its fields only.
    """

    time_lag: str
    lost_messages: int

    def Id(self) -> str:
        """The field `.ID`, by the name that Burrow's own template for closed incidents has for it."""
        return self.ID

    def TimeLag(self) -> str:
        """The lag in time in words; empty if it is unknown."""
        return self.time_lag

    def LostMessages(self) -> int:
        """How many messages were deleted before they were read."""
        return self.lost_messages


@dataclass(frozen=True, slots=True)
class GoTemplate:
    """A parsed Go template."""

    template: gotemplate.Template
    extras: Mapping[str, str]

    @property
    def has_old_id(self) -> bool:
        """Whether it asks for `.Id`."""
        return _reads_id(self.template.definitions)

    @property
    def name(self) -> str:
        """Its file, or the key that it is the value of."""
        return self.template.name

    def render(self, notification: Notification) -> str:
        """Render a notification; a TemplateError says why it fails."""
        return self.template.render(self._message(notification))

    def render_parts(self, notification: Notification) -> tuple[Part, ...]:
        """The parts of what it renders: names from Kafka are foreign, `.Extras` and clusters are not."""
        return self.template.render_parts(self._message(notification))

    def _message(self, notification: Notification) -> WarrenMessage:
        return WarrenMessage(
            Cluster=notification.cluster,
            Group=Foreign(notification.group),
            ID=notification.incident,
            Start=Time(notification.opened_ms * 1_000_000),
            Extras=self.extras,
            Result=_build(Result, msgspec.to_builtins(notification.result)),
            time_lag=time_lag_words(notification),
            lost_messages=notification.result.lost_messages,
        )


def parse(text: str, name: str, extras: Mapping[str, str]) -> GoTemplate:
    """Parse a template; a TemplateError names the mistake and its line."""
    return GoTemplate(gotemplate.parse(text, name, _FUNCTIONS), extras)


def _reads_id(node: object) -> bool:
    """Whether a part of a template reads `.Id`."""
    if isinstance(node, Field | Variable):
        return node.names[:1] == ("Id",)
    if isinstance(node, Mapping):
        node = tuple(node.values())
    elif is_dataclass(node):
        node = tuple(getattr(node, each.name) for each in fields(node))
    return isinstance(node, tuple) and any(map(_reads_id, node))


def _build(struct: type[Built], values: Mapping[str, Any]) -> Built:
    """A struct of Burrow from its values by their names in JSON; others are left out."""
    names = {each.metadata["json"]: each.name for each in fields(struct)}
    return struct(**{names[key]: _convert(key, value) for key, value in values.items() if key in names})


def _convert(key: str, value: Any) -> Any:  # noqa: ANN401 - of any field
    if key == "partitions":
        return tuple(_build(PartitionResult, partition) for partition in value)
    if key == "status":
        return StatusConstant(int(Status[value]))
    if isinstance(value, str):
        return value if key == "cluster" else Foreign(value)
    if key in _STRUCTS and value is not None:
        return _build(_STRUCTS[key], value)
    return KnownLag(value) if key == "lag" and value is not None else value
