"""Lag in time as all readers of a snapshot show it: typed, without the files' marks for unknown, and in words."""

import math
from typing import Annotated

import msgspec
from msgspec import Meta

from warren.domain.reasons import format_duration
from warren.domain.time_lag import TimeLagMethod
from warren.domain.windows import UNKNOWN
from warren.snapshot.schemas import RATES, Row

MethodName = Annotated[
    str, Meta(title="TimeLagMethod", extra_json_schema={"enum": [method.name.lower() for method in TimeLagMethod]})
]


class MessageRates(msgspec.Struct, frozen=True):
    """Messages per second, averaged over about one and ten minutes; null if not measured yet."""

    produced_1m: float | None
    produced_10m: float | None
    consumed_1m: float | None
    consumed_10m: float | None


class TimeLag(msgspec.Struct, frozen=True):
    """How far a group or a partition is behind in time, and how that goes on at present rates."""

    seconds_behind: Annotated[
        float | None, Meta(description="How long the first unread message has been waiting; 0 if none is")
    ]
    seconds_behind_method: Annotated[
        MethodName, Meta(description="How it is known; with at_least the true value may be larger")
    ]
    catch_up_seconds: Annotated[
        float | None, Meta(description="How long until nothing is unread, at least; null if never or unknown")
    ]
    catch_up_seconds_at_most: Annotated[float | None, Meta(description="The same at most; null if never or unknown")]
    is_falling_behind: Annotated[bool, Meta(description="Whether it does not catch up at present rates")]
    retention_left_seconds: Annotated[
        float | None, Meta(description="How long until unread messages are deleted; null if never or unknown")
    ]
    lost_messages: Annotated[int, Meta(description="Messages that were deleted before they were read")]
    rates: MessageRates

    @property
    def is_at_least(self) -> bool:
        """Whether it may be further behind."""
        return self.seconds_behind_method == TimeLagMethod.AT_LEAST.name.lower()


def to_time_lag(row: Row) -> TimeLag:
    """The time lag of a row of the snapshot's table of groups or of partitions."""
    return TimeLag(
        _finite(row["seconds_behind"]),
        TimeLagMethod(row["behind_method"]).name.lower(),
        _finite(row["catch_up_low_s"]),
        _finite(row["catch_up_high_s"]),
        row["catch_up_low_s"] == math.inf,
        _finite(row["retention_left_s"]),
        max(row["lost"], 0),
        MessageRates(*(_finite(row[name]) for name in RATES)),
    )


def _finite(value: float) -> float | None:
    return None if value == UNKNOWN or not math.isfinite(value) else round(value, 3)


def describe_time_lag(lag: TimeLag) -> str:
    """The time lag in words, such as "41 min behind, catches up in about 12 min"; empty if nothing is known."""
    parts = []
    if lag.seconds_behind is not None and lag.seconds_behind > 0:
        parts.append(f"{'at least ' if lag.is_at_least else ''}{_duration(lag.seconds_behind)} behind")
        if forecast := describe_catch_up(lag):
            parts.append(forecast)
    if lag.retention_left_seconds is not None:
        parts.append(f"loses data in {_duration(lag.retention_left_seconds)}")
    if lag.lost_messages:
        parts.append(f"{lag.lost_messages:,} messages lost")
    return ", ".join(parts)


def describe_catch_up(lag: TimeLag) -> str:
    """When it is caught up, in words; empty if that is unknown."""
    if lag.is_falling_behind:
        return "not catching up"
    if lag.catch_up_seconds is None:
        return ""
    soonest = _duration(lag.catch_up_seconds)
    if lag.catch_up_seconds_at_most is None:
        return f"catches up in {soonest} or later"
    latest = _duration(lag.catch_up_seconds_at_most)
    return f"catches up in about {soonest}" if soonest == latest else f"catches up in {soonest} to {latest}"


def _duration(seconds: float) -> str:
    return format_duration(round(seconds * 1000))
