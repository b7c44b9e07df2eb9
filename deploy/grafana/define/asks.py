"""What panels ask for, in words that every store understands; fields have the names that sinks give them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.cog.variants import Dataquery
from grafana_foundation_sdk.models.dashboard import DataSourceRef

STATUS = "burrow_code"
"""Burrow's own codes, which Prometheus has too; telegraf's `status_code` counts otherwise."""


class Level(Enum):
    """What there is a number of, and the names that tell one from another."""

    CLUSTER = ("cluster",)
    GROUP = ("cluster", "group")
    PARTITION = ("cluster", "group", "topic", "partition")
    HEAD = ("cluster", "topic", "partition")
    SINK = ("sink",)
    NOTIFIER = ("notifier", "state")


class How(Enum):
    """What becomes of the points of an interval."""

    WORST = "the highest of them"
    SUM = "the sum over partitions"
    RATE = "how much it rises in a second, never below zero"
    GROWTH = "how much it changes in a second"


@dataclass(frozen=True)
class Ask:
    """A number over time."""

    level: Level
    field: str
    by: tuple[str, ...] = ()
    """A series for each; as fine as the level goes, unless told otherwise."""
    how: How = How.WORST
    plus: str = ""
    """A field that is added to the first one."""
    above: int | None = None
    """Only what is higher."""
    legend: str = ""
    """Names in braces are put in."""
    color: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """The names that a series has."""
        return self.by or self.level.value


@dataclass(frozen=True)
class Rows:
    """A table of how things are now."""

    level: Level
    columns: Mapping[str, str]
    """Titles and fields; the first is one that every point has."""
    order: str
    """The title of the column by which the worst comes first."""
    words: Mapping[str, str] = field(default_factory=dict)
    """Titles and fields that are texts; Prometheus has none of them."""
    limit: int = 500

    @property
    def names(self) -> tuple[str, ...]:
        """The names that a row has."""
        names: tuple[str, ...] = self.level.value
        return names


MEASUREMENTS = {
    Level.CLUSTER: "warren_cluster",
    Level.GROUP: "burrow_group",
    Level.PARTITION: "burrow_partition",
    Level.HEAD: "burrow_topic",
}
"""What sinks write of each level."""
ONLY_SERVED = frozenset({"incidents"})
"""Fields that they do not write."""


def is_written(ask: Ask | Rows) -> bool:
    """Whether sinks write what is asked for."""
    return ask.level in MEASUREMENTS and not (isinstance(ask, Ask) and ask.field in ONLY_SERVED)


@dataclass(frozen=True)
class Table:
    """How a store gives rows: its requests, and what it calls the columns."""

    targets: Sequence[Builder[Dataquery]]
    titles: Mapping[str, str]
    """By the store's names, in the order in which they are shown."""
    is_merged: bool = False
    """Whether each request gives one of the columns."""


class Backend(Protocol):
    """A store that knows how to answer."""

    name: str
    title: str
    all_value: str
    """What a variable stands for when all are chosen."""
    source: DataSourceRef

    def knows(self, ask: Ask | Rows) -> bool:
        """Whether it has what is asked for."""
        ...

    def series(self, ask: Ask, held: Sequence[str], ref: str) -> list[Builder[Dataquery]]:
        """Requests for a number over time, of what the variables of the dashboard choose."""
        ...

    def table(self, rows: Rows, held: Sequence[str]) -> Table:
        """Requests for a table."""
        ...

    def values(self, name: str, level: Level, held: Sequence[str]) -> str:
        """The request for what a variable may be."""
        ...

    def label(self, name: str) -> str:
        """Where a link finds the name of a series."""
        ...

    def legend(self, ask: Ask) -> str:
        """What a series is called, where the request does not say it."""
        ...

    def note(self, rows: Rows) -> str:
        """What one should know of a table from this store."""
        ...


@dataclass(frozen=True)
class Ready(Builder[Dataquery]):
    """A request that is made already."""

    query: Dataquery

    def build(self) -> Dataquery:
        """The request."""
        return self.query


SOURCE_UID = "${datasource}"
