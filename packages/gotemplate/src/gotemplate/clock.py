"""Go's time.Time and time.Duration, as far as templates use them."""
# ruff: noqa: N802 - the methods have Go's names

import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import ClassVar

from gotemplate.errors import CallError
from gotemplate.layout import DAYS, MONTHS, Moment, format_time
from gotemplate.types import Int64, Integer, Kind, Struct, wrap

_SECOND = 1_000_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ZERO_SECONDS = -62_135_596_800  # the start of the year 1, which is no time to Go


class MonthOfYear(Integer):
    """A month of the year."""

    go_name: ClassVar[str] = "time.Month"

    def String(self) -> str:
        return MONTHS[self - 1]


class DayOfWeek(Integer):
    """A day of the week, from Sunday."""

    go_name: ClassVar[str] = "time.Weekday"

    def String(self) -> str:
        return DAYS[self]


class Duration(Integer):
    """A time between times, in nanoseconds."""

    go_name: ClassVar[str] = "time.Duration"
    kind: ClassVar[Kind] = Kind.INT64

    def Nanoseconds(self) -> Int64:
        return int(self)

    def Microseconds(self) -> Int64:
        return quotient(self, 1_000)

    def Milliseconds(self) -> Int64:
        return quotient(self, 1_000_000)

    def Seconds(self) -> float:
        return self / _SECOND

    def Minutes(self) -> float:
        return self / (60 * _SECOND)

    def Hours(self) -> float:
        return self / (3600 * _SECOND)

    def Abs(self) -> "Duration":
        return Duration(min(abs(self), (1 << 63) - 1))

    def Truncate(self, unit: "Duration") -> "Duration":
        return Duration(quotient(self, unit) * unit) if unit > 0 else self

    def Round(self, unit: "Duration") -> "Duration":
        if unit <= 0:
            return self
        rounded = (abs(self) + unit // 2) // unit * unit
        return Duration(-rounded if self < 0 else rounded)

    def String(self) -> str:
        nanoseconds, sign = abs(self), "-" if self < 0 else ""
        if nanoseconds == 0:
            return "0s"
        if nanoseconds < _SECOND:
            unit, size = next(pair for pair in (("ms", 1_000_000), ("µs", 1_000), ("ns", 1)) if nanoseconds >= pair[1])
            return f"{sign}{_decimal(nanoseconds, size)}{unit}"
        minutes, rest = divmod(nanoseconds, 60 * _SECOND)
        hours, minutes = divmod(minutes, 60)
        text = f"{_decimal(rest, _SECOND)}s"
        if hours or minutes:
            text = f"{minutes}m{text}"
        return sign + (f"{hours}h{text}" if hours else text)


def quotient(number: int, divisor: int) -> int:
    """A division towards zero, as Go's is."""
    quotient = abs(number) // abs(divisor)
    return -quotient if (number < 0) != (divisor < 0) else quotient


def _decimal(number: int, unit: int) -> str:
    whole, rest = divmod(number, unit)
    fraction = f"{rest:0{len(str(unit)) - 1}d}".rstrip("0") if rest else ""
    return f"{whole}.{fraction}" if fraction else str(whole)


@dataclass(frozen=True, slots=True)
class Time(Struct):
    """A moment, and the zone it is shown in; without a zone it is shown in the machine's own."""

    nanoseconds: int
    zone: str | None = None
    offset: int = 0

    go_name: ClassVar[str] = "time.Time"

    @classmethod
    def from_datetime(cls, moment: datetime) -> "Time":
        """A time that knows its zone."""
        since = moment - _EPOCH
        nanoseconds = (since.days * 86_400 + since.seconds) * _SECOND + since.microseconds * 1_000
        offset = moment.utcoffset() or timedelta()
        return cls(nanoseconds, moment.tzname() or "", int(offset.total_seconds()))

    def _moment(self) -> Moment:
        try:
            return self._on_calendar()
        except (OverflowError, ValueError, OSError):
            raise CallError(f"a time beyond the calendar: {self.nanoseconds} ns") from None

    def _on_calendar(self) -> Moment:
        seconds, nanosecond = divmod(self.nanoseconds, _SECOND)
        zone, offset = self.zone, self.offset
        if zone is None:
            local = time.localtime(seconds)
            zone, offset = local.tm_zone, local.tm_gmtoff
        at = _EPOCH + timedelta(seconds=seconds + offset)
        return Moment(
            *(at.year, at.month, at.day, at.hour, at.minute, at.second, nanosecond),
            day_of_week=at.isoweekday() % 7,
            day_of_year=at.timetuple().tm_yday,
            zone=zone,
            offset=offset,
        )

    def json_value(self) -> str:
        """How Go writes a time in JSON."""
        return self.Format("2006-01-02T15:04:05.999999999Z07:00")

    def Format(self, layout: str) -> str:
        return format_time(self._moment(), layout)

    def String(self) -> str:
        return self.Format("2006-01-02 15:04:05.999999999 -0700 MST")

    def UTC(self) -> "Time":
        return Time(self.nanoseconds, "UTC")

    def Local(self) -> "Time":
        return Time(self.nanoseconds)

    def Unix(self) -> Int64:
        return self.nanoseconds // _SECOND

    def UnixMilli(self) -> Int64:
        return self.nanoseconds // 1_000_000

    def UnixMicro(self) -> Int64:
        return self.nanoseconds // 1_000

    def UnixNano(self) -> Int64:
        return wrap(Kind.INT64, self.nanoseconds)

    def Year(self) -> int:
        return self._moment().year

    def Month(self) -> MonthOfYear:
        return MonthOfYear(self._moment().month)

    def Day(self) -> int:
        return self._moment().day

    def Hour(self) -> int:
        return self._moment().hour

    def Minute(self) -> int:
        return self._moment().minute

    def Second(self) -> int:
        return self._moment().second

    def Nanosecond(self) -> int:
        return self.nanoseconds % _SECOND

    def Weekday(self) -> DayOfWeek:
        return DayOfWeek(self._moment().day_of_week)

    def YearDay(self) -> int:
        return self._moment().day_of_year

    def IsZero(self) -> bool:
        return self.nanoseconds == _ZERO_SECONDS * _SECOND

    def Before(self, other: "Time") -> bool:
        return self.nanoseconds < other.nanoseconds

    def After(self, other: "Time") -> bool:
        return self.nanoseconds > other.nanoseconds

    def Equal(self, other: "Time") -> bool:
        return self.nanoseconds == other.nanoseconds

    def Compare(self, other: "Time") -> int:
        return (self.nanoseconds > other.nanoseconds) - (self.nanoseconds < other.nanoseconds)

    def Sub(self, other: "Time") -> Duration:
        longest = (1 << 63) - 1
        return Duration(max(-longest - 1, min(longest, self.nanoseconds - other.nanoseconds)))

    def Add(self, duration: Duration) -> "Time":
        return Time(self.nanoseconds + duration, self.zone, self.offset)


# What Go has where no time was set.
ZERO_TIME = Time(_ZERO_SECONDS * _SECOND, "UTC")
