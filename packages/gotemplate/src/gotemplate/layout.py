"""Go's time layouts: the reference time, written in the format that is wanted."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
DAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")

# In the order in which Go tries them at each place of a layout.
_ELEMENT = re.compile(
    r"January|Jan(?![a-z])|Monday|Mon(?![a-z])|MST"
    r"|0[1-6]|002|15|1|2006|2|_2(?!006)|__2|3|4|5|PM|pm"
    r"|-070000|-07:00:00|-0700|-07:00|-07|Z070000|Z07:00:00|Z0700|Z07:00|Z07"
    r"|[.,](?:0+|9+)(?![0-9])"
)


@dataclass(frozen=True, slots=True)
class Moment:
    """A time taken apart, in a zone."""

    year: int
    month: int
    day: int
    hour: int
    minute: int
    second: int
    nanosecond: int
    day_of_week: int
    day_of_year: int
    zone: str
    offset: int

    @property
    def hour_of_half_day(self) -> int:
        return self.hour % 12 or 12


_WRITERS: Mapping[str, Callable[[Moment], str]] = {
    "2006": lambda moment: f"{moment.year:04d}",
    "06": lambda moment: f"{moment.year % 100:02d}",
    "January": lambda moment: MONTHS[moment.month - 1],
    "Jan": lambda moment: MONTHS[moment.month - 1][:3],
    "01": lambda moment: f"{moment.month:02d}",
    "1": lambda moment: str(moment.month),
    "Monday": lambda moment: DAYS[moment.day_of_week],
    "Mon": lambda moment: DAYS[moment.day_of_week][:3],
    "02": lambda moment: f"{moment.day:02d}",
    "_2": lambda moment: f"{moment.day:2d}",
    "2": lambda moment: str(moment.day),
    "002": lambda moment: f"{moment.day_of_year:03d}",
    "__2": lambda moment: f"{moment.day_of_year:3d}",
    "15": lambda moment: f"{moment.hour:02d}",
    "03": lambda moment: f"{moment.hour_of_half_day:02d}",
    "3": lambda moment: str(moment.hour_of_half_day),
    "04": lambda moment: f"{moment.minute:02d}",
    "4": lambda moment: str(moment.minute),
    "05": lambda moment: f"{moment.second:02d}",
    "5": lambda moment: str(moment.second),
    "PM": lambda moment: "PM" if moment.hour >= 12 else "AM",
    "pm": lambda moment: "pm" if moment.hour >= 12 else "am",
    "MST": lambda moment: moment.zone or _offset("-0700", moment.offset),
}


def format_time(moment: Moment, layout: str) -> str:
    """A time in a layout."""
    return _ELEMENT.sub(lambda element: _written(element[0], moment), layout)


def _written(element: str, moment: Moment) -> str:
    if element in _WRITERS:
        return _WRITERS[element](moment)
    if element[0] in ".,":
        return _fraction(element, moment.nanosecond)
    return "Z" if element[0] == "Z" and moment.offset == 0 else _offset(element, moment.offset)


def _fraction(element: str, nanosecond: int) -> str:
    digits = f"{nanosecond:09d}"[: len(element) - 1]
    if element[1] == "9":
        digits = digits.rstrip("0")
        return element[0] + digits if digits else ""
    return element[0] + digits


def _offset(element: str, seconds: int) -> str:
    minutes = int(seconds / 60)
    colon = ":" if ":" in element else ""
    text = f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02d}"
    length = len(element.replace(":", ""))
    if length >= 5:
        text += f"{colon}{abs(minutes) % 60:02d}"
    if length >= 7:
        text += f"{colon}{abs(seconds) % 60:02d}"
    return text
