"""Lag in time as all readers of a snapshot show it: typed, without the files' marks for unknown, and in words."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

import msgspec
import numpy as np
import pyarrow as pa
from msgspec import Meta
from numpy.typing import NDArray

from warren.domain.arrays import Bools, Floats, Ints, SmallInts
from warren.domain.reasons import format_duration
from warren.domain.time_lag import TimeLagMethod
from warren.domain.windows import UNKNOWN
from warren.snapshot.schemas import RATES, Row

METHOD_NAMES = tuple(method.name.lower() for method in TimeLagMethod)
"""The names of the methods; that of UNKNOWN is the first."""
_COLUMNS = (
    "seconds_behind", "behind_method", "oldest_unread_age_s", "catch_up_low_s", "catch_up_high_s", "retention_left_s",
    "lost",
)  # fmt: skip
_DIGITS = 3
"""Seconds are given to the millisecond."""

MethodName = Annotated[str, Meta(title="TimeLagMethod", extra_json_schema={"enum": list(METHOD_NAMES)})]
SecondsBehind = Annotated[
    float | None, Meta(description="How long the first unread message has been waiting; 0 if none is, null if unknown")
]
BehindMethod = Annotated[MethodName, Meta(description="How it is known; with at_least the true value may be larger")]
OldestUnreadAge = Annotated[
    float | None,
    Meta(description="Age of the first unread message by its own timestamp; null if none is unread or it is unknown"),
]
CatchUpSeconds = Annotated[
    float | None, Meta(description="How long until nothing is unread, at least; null if never or unknown")
]
CatchUpAtMost = Annotated[float | None, Meta(description="The same at most; null if never or unknown")]
IsFallingBehind = Annotated[bool, Meta(description="Whether it does not catch up at present rates")]
RetentionLeft = Annotated[
    float | None, Meta(description="How long until unread messages are deleted; null if never or unknown")
]
LostMessages = Annotated[int, Meta(description="Messages that were deleted before they were read")]


class MessageRates(msgspec.Struct, frozen=True):
    """Messages per second, averaged over about one and ten minutes; null if not measured yet."""

    produced_1m: float | None
    produced_10m: float | None
    consumed_1m: float | None
    consumed_10m: float | None


class TimeLag(msgspec.Struct, frozen=True):
    """How far a group or a partition is behind in time, and how that goes on at present rates."""

    seconds_behind: SecondsBehind
    seconds_behind_method: BehindMethod
    oldest_unread_age_seconds: OldestUnreadAge
    catch_up_seconds: CatchUpSeconds
    catch_up_seconds_at_most: CatchUpAtMost
    is_falling_behind: IsFallingBehind
    retention_left_seconds: RetentionLeft
    lost_messages: LostMessages
    rates: MessageRates

    @property
    def is_at_least(self) -> bool:
        """Whether it may be further behind."""
        return self.seconds_behind_method == TimeLagMethod.AT_LEAST.name.lower()


@dataclass(frozen=True, slots=True)
class TimeLagColumns:
    """The time lags of many rows, one array per field of TimeLag; NaN where the field is null."""

    seconds_behind: Floats
    method: SmallInts
    oldest_unread_age_seconds: Floats
    catch_up_seconds: Floats
    catch_up_seconds_at_most: Floats
    is_falling_behind: Bools
    retention_left_seconds: Floats
    lost_messages: Ints
    rates: Mapping[str, Floats]

    def method_names(self, rows: Ints) -> list[str]:
        """The names of the methods of some rows."""
        return [METHOD_NAMES[code] for code in (self.method[rows] - int(TimeLagMethod.UNKNOWN)).tolist()]

    def at(self, row: int) -> TimeLag:
        """The time lag of one row."""
        return TimeLag(
            _or_none(self.seconds_behind[row]),
            TimeLagMethod(self.method[row]).name.lower(),
            _or_none(self.oldest_unread_age_seconds[row]),
            _or_none(self.catch_up_seconds[row]),
            _or_none(self.catch_up_seconds_at_most[row]),
            bool(self.is_falling_behind[row]),
            _or_none(self.retention_left_seconds[row]),
            int(self.lost_messages[row]),
            MessageRates(*(_or_none(self.rates[name][row]) for name in RATES)),
        )


def to_time_lags(table: pa.Table) -> TimeLagColumns:
    """The time lags of the snapshot's table of groups or of partitions."""
    column = {name: table[name].to_numpy() for name in (*_COLUMNS, *RATES)}
    return TimeLagColumns(
        known_values(column["seconds_behind"]),
        column["behind_method"],
        known_values(column["oldest_unread_age_s"]),
        known_values(column["catch_up_low_s"]),
        known_values(column["catch_up_high_s"]),
        np.isposinf(column["catch_up_low_s"]),
        known_values(column["retention_left_s"]),
        np.maximum(column["lost"], 0),
        {name: known_values(column[name]) for name in RATES},
    )


def known_values(values: NDArray[np.generic]) -> Floats:
    """The values of a column of the snapshot, rounded; NaN where they are unknown or infinite."""
    exact = values.astype(np.float64)
    known: Floats = np.where((exact == UNKNOWN) | np.isinf(exact), np.nan, exact)
    return known.round(_DIGITS)


def to_time_lag(row: Row) -> TimeLag:
    """The time lag of a row of the snapshot's table of groups or of partitions."""
    return TimeLag(
        known_or_none(row["seconds_behind"]),
        TimeLagMethod(row["behind_method"]).name.lower(),
        known_or_none(row["oldest_unread_age_s"]),
        known_or_none(row["catch_up_low_s"]),
        known_or_none(row["catch_up_high_s"]),
        row["catch_up_low_s"] == math.inf,
        known_or_none(row["retention_left_s"]),
        max(row["lost"], 0),
        MessageRates(*(known_or_none(row[name]) for name in RATES)),
    )


def known_or_none(value: float) -> float | None:
    """A number of the snapshot, rounded; None if it is unknown or infinite."""
    return None if value == UNKNOWN or not math.isfinite(value) else round(value, _DIGITS)


def _or_none(value: np.float64) -> float | None:
    return None if np.isnan(value) else float(value)


def describe_time_lag(lag: TimeLag) -> str:
    """The time lag in words, such as "41 min behind, catches up in about 12 min"; empty if nothing is known."""
    parts = []
    if lag.seconds_behind:
        parts += [f"{describe_seconds_behind(lag)} behind", describe_catch_up(lag)]
    if lag.retention_left_seconds is not None:
        parts.append(f"loses data in {_duration(lag.retention_left_seconds)}")
    if lag.lost_messages:
        parts.append(f"{lag.lost_messages:,} messages lost")
    return ", ".join(filter(None, parts))


def describe_seconds_behind(lag: TimeLag) -> str:
    """How far it is behind, such as "41 min" or "at least 41 min"; "?" if that is unknown."""
    if lag.seconds_behind is None:
        return "?"
    return f"{'at least ' if lag.is_at_least else ''}{_duration(lag.seconds_behind)}"


def describe_catch_up(lag: TimeLag) -> str:
    """When it is caught up, in words; empty if that is unknown, or if it keeps up."""
    if lag.is_falling_behind:
        return "not catching up"
    if lag.catch_up_seconds is None or lag.catch_up_seconds_at_most == 0:
        return ""
    soonest = _duration(lag.catch_up_seconds)
    if lag.catch_up_seconds_at_most is None:
        return f"catches up in {soonest} or later"
    latest = _duration(lag.catch_up_seconds_at_most)
    return f"catches up in about {soonest}" if soonest == latest else f"catches up in {soonest} to {latest}"


def _duration(seconds: float) -> str:
    return format_duration(round(seconds * 1000))
