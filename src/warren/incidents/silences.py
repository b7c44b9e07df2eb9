"""What operators can do about incidents: acknowledge one, or silence the notifications of matching groups."""

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated

import numpy as np
from msgspec import Meta, Struct

from warren.domain.matching import MAX_PATTERN_CHARS, MAX_STARS, matches_wildcards
from warren.incidents.model import Id, Time, to_columns
from warren.snapshot.status import GroupName

MAX_SILENCES = 1_000
"""How many silences count at a time: each is matched against every incident."""
MAX_HOURS = 24 * 365
"""How long a silence may last."""
MAX_SILENCE_MS = MAX_HOURS * 3_600_000
MAX_BY_CHARS, MAX_WHY_CHARS = 100, 500
MAX_CLOCK_DIFFERENCE_MS = 86_400_000
"""By how much the clock of the broker and that of a Warren may differ."""
NOT_ON_A_LINE = ("Cc", "Cs", "Zl", "Zp")
"""Unicode categories that must not occur: control characters, surrogates, line and paragraph separators."""

NameWildcards = Annotated[str, Meta(min_length=1, max_length=MAX_PATTERN_CHARS)]
By = Annotated[str, Meta(max_length=MAX_BY_CHARS)]
Why = Annotated[str, Meta(max_length=MAX_WHY_CHARS)]


def is_line(text: str) -> bool:
    """Whether a text has no line breaks and no control characters."""
    return not any(unicodedata.category(character) in NOT_ON_A_LINE for character in text)


class Acknowledgement(Struct, frozen=True):
    """Somebody takes care of an incident, so it needs no reminders; withdrawn by another one of a later time."""

    incident: Id
    at_ms: Time
    by: By
    why: Why
    withdrawn_ms: Time | None = None


class Silence(Struct, frozen=True):
    """No notifications for the groups that match both patterns, from one time until another."""

    id: Id
    cluster: NameWildcards
    group: NameWildcards
    from_ms: Time
    until_ms: Time
    by: By
    why: Why

    def is_active(self, now_ms: int) -> bool:
        """Whether it is in force at a time."""
        return self.from_ms <= now_ms < self.until_ms


OperatorAction = Acknowledgement | Silence


def why_refused(action: OperatorAction, written_ms: int | None = None) -> str | None:
    """Why the API would not have taken an action, None if it would; `written_ms` is when others got to know of it."""
    texts = {"by": action.by, "why": action.why}
    if isinstance(action, Silence):
        texts |= {"cluster": action.cluster, "group": action.group}
    for name, text in texts.items():
        if not is_line(text):
            return f"{name} is not a single line of text"
    if not action.by.strip():
        return "by is blank"
    if isinstance(action, Acknowledgement):
        return None
    if not action.why.strip():
        return "why is blank"
    if max(action.cluster.count("*"), action.group.count("*")) > MAX_STARS:
        return f"a pattern has more than {MAX_STARS} *"
    if not 0 <= action.until_ms - action.from_ms <= MAX_SILENCE_MS:
        return "it lasts longer than a year, or ends before it starts"
    if written_ms is not None and action.from_ms > written_ms + MAX_CLOCK_DIFFERENCE_MS:
        return "it starts more than a day after it was written"
    return None


class OperatorActions(Struct, frozen=True):
    """The silences that have not ended, and the acknowledgement of each open incident that has one."""

    silences: Sequence[Silence] = ()
    acknowledgements: Mapping[str, Acknowledgement] = {}


def find_silenced(silences: Iterable[Silence], now_ms: int, names: Sequence[GroupName]) -> set[GroupName]:
    """The groups that a silence matches which is in force at a time."""
    active = [silence for silence in silences if silence.is_active(now_ms)]
    if not active:
        return set()
    clusters, groups = to_columns(names)
    silenced = np.zeros(len(names), dtype=np.bool_)
    for silence in active:
        silenced |= matches_wildcards(clusters, silence.cluster) & matches_wildcards(groups, silence.group)
    return {names[index] for index in np.flatnonzero(silenced).tolist()}
