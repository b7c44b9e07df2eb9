"""What dashboards are made of, before anybody knows which store answers."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from deploy.grafana.define.asks import Ask, Level, Rows

MESSAGES, PER_SECOND, SECONDS, MILLISECONDS, COUNT = "short", "mps", "s", "ms", "none"
GREEN, ORANGE, RED, PURPLE, GREY = "green", "orange", "red", "purple", "text"


class Kind(Enum):
    """How a panel looks."""

    TIMELINE = "bars of states over time"
    STAT = "large numbers"
    SERIES = "lines"
    STACK = "areas on each other"
    BARS = "the longest bars"
    TABLE = "rows"


@dataclass(frozen=True)
class Panel:
    """What one panel shows."""

    title: str
    kind: Kind
    asks: Sequence[Ask] | Rows
    unit: str = MESSAGES
    description: str = ""
    width: int = 12
    height: int = 8
    no_value: str = "No data"
    colors: Sequence[tuple[float, str]] = ()
    """From which value on which colour."""
    words: str = ""
    """Which words stand for numbers: those of a verdict, or of a switch."""
    leads_to: str = ""
    """The dashboard that tells more of a series or a row."""


@dataclass(frozen=True)
class Row:
    """A heading above panels."""

    title: str


@dataclass(frozen=True)
class Variable:
    """A choice above a dashboard."""

    name: str
    level: Level
    has_all: bool = False


@dataclass(frozen=True)
class Board:
    """One dashboard."""

    name: str
    title: str
    description: str
    variables: Sequence[Variable]
    panels: Sequence[Panel | Row]

    @property
    def held(self) -> list[str]:
        """The names of its variables."""
        return [variable.name for variable in self.variables]


CLUSTERS = Variable("cluster", Level.CLUSTER, has_all=True)
"""Every dashboard has it first."""
