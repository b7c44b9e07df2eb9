"""What operators can do about incidents: acknowledge one, or silence the notifications of matching groups."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from msgspec import Struct

from warren.domain.matching import matches_wildcards
from warren.incidents.model import to_columns
from warren.snapshot.status import GroupName


class Acknowledgement(Struct, frozen=True):
    """Somebody takes care of an incident, so it needs no reminders; withdrawn by another one of a later time."""

    incident: str
    at_ms: int
    by: str
    why: str
    withdrawn_ms: int | None = None


class Silence(Struct, frozen=True):
    """No notifications for the groups that match both patterns, from one time until another."""

    id: str
    cluster: str
    group: str
    from_ms: int
    until_ms: int
    by: str
    why: str

    def is_active(self, now_ms: int) -> bool:
        """Whether it is in force at a time."""
        return self.from_ms <= now_ms < self.until_ms


OperatorAction = Acknowledgement | Silence


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
