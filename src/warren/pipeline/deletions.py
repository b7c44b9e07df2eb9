"""What was deleted on request: of those groups, or topics of groups, nothing counts that was committed before."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from warren.domain.windows import NEVER, drop_until
from warren.pipeline.plan import CyclePlan
from warren.pipeline.shuffle import flags, numbers
from warren.pipeline.state import State, select
from warren.snapshot.requests import PipelineRequest

Ints = NDArray[np.int64]


def drop_deleted_commits(state: State, commits: pa.Table, placed: Ints, plan: CyclePlan) -> tuple[State, Ints]:
    """Windows without the slots, and new commits without a row, that are older than the deletion of their group."""
    meant = _meant(state, plan)
    if meant is None:
        return state, placed
    until_ms = np.full(len(state.rows), NEVER, dtype=np.int64)
    until_ms[meant.rows] = meant.until_ms
    # Before the new commits come: one of them must not be merged into a slot that goes.
    state.rows.windows = drop_until(state.rows.windows, until_ms)
    is_old = ~flags(commits["is_tombstone"]) & (numbers(commits["time_ms"]) <= until_ms[placed])
    return state, np.where(is_old, -1, placed)


def drop_deleted(state: State, plan: CyclePlan) -> tuple[State, list[str]]:
    """Drop partitions that are deleted and have not been committed to since, with all that was known of them.

    Gives also the ids of the deletions whose groups have committed again.
    """
    meant = _meant(state, plan)
    if meant is None:
        return state, []
    is_heard = state.rows.windows.count[meant.rows] > 0
    heard = [plan.deletions[number].id for number in meant.deletions_of(is_heard)]
    if not is_heard.all():
        is_kept = np.ones(len(state.rows), dtype=np.bool_)
        is_kept[meant.rows[~is_heard]] = False
        state.rows = select(state.rows, is_kept)
    return state, heard


@dataclass(frozen=True, slots=True)
class _Meant:
    """The rows that deletions mean, with the number of the deletion of their group and that of their topic, or -1."""

    rows: Ints
    by_group: Ints
    by_topic: Ints
    until_ms: Ints
    """Up to when their commits are deleted, by the brokers' clock."""

    def deletions_of(self, which: NDArray[np.bool_]) -> list[int]:
        numbers = np.unique(np.concatenate([self.by_group[which], self.by_topic[which]]))
        return [int(number) for number in numbers if number >= 0]


def _meant(state: State, plan: CyclePlan) -> _Meant | None:
    """Rows of deleted groups, found without a look at the names of the others; None when there are none."""
    rows = state.rows
    if not plan.deletions or len(rows) == 0:
        return None
    number_of = {cluster.name: number for number, cluster in enumerate(plan.clusters)}
    cluster = np.array([number_of.get(deletion.cluster, -1) for deletion in plan.deletions])
    group = _codes(plan.deletions, lambda deletion: deletion.group, state.groups.values)
    topic = _codes(plan.deletions, lambda deletion: deletion.topic, state.topics.values)
    is_whole = np.array([deletion.topic is None for deletion in plan.deletions])
    is_here = (cluster >= 0) & (group >= 0)
    is_named = np.zeros(len(state.groups.values) + 1, dtype=np.bool_)
    is_named[group[is_here]] = True
    found = np.flatnonzero(is_named[rows.group])
    if len(found) == 0:
        return None
    skew_ms = np.array([planned.skew_ms for planned in plan.clusters])[cluster]
    asked_at_ms = np.array([deletion.asked_at_ms for deletion in plan.deletions]) + skew_ms

    wide, high = len(state.groups.values) + 1, len(state.topics.values) + 1
    of_group = rows.cluster[found].astype(np.int64) * wide + rows.group[found]
    of_topic = of_group * high + rows.topic[found]
    keys = cluster * wide + group
    by_group = _newest(of_group, keys, asked_at_ms, is_here & is_whole)
    by_topic = _newest(of_topic, keys * high + topic, asked_at_ms, is_here & ~is_whole & (topic >= 0))
    until_ms = np.maximum(
        np.where(by_group >= 0, asked_at_ms[by_group], NEVER), np.where(by_topic >= 0, asked_at_ms[by_topic], NEVER)
    )
    is_meant = until_ms != NEVER
    return _Meant(found[is_meant], by_group[is_meant], by_topic[is_meant], until_ms[is_meant])


def _codes(
    deletions: Sequence[PipelineRequest], name: Callable[[PipelineRequest], str | None], held: pa.StringArray
) -> Ints:
    """The codes of what deletions name; -1 for a name that nobody has here."""
    wanted = pa.array([name(deletion) for deletion in deletions], pa.string())
    distinct = wanted.drop_null().unique()
    place = pc.index_in(held, value_set=distinct)
    codes = np.full(len(distinct) + 1, -1, dtype=np.int64)
    is_wanted = pc.is_valid(place).to_numpy(zero_copy_only=False)
    codes[place.drop_null().to_numpy()] = np.flatnonzero(is_wanted)
    of_each: Ints = pc.fill_null(pc.index_in(wanted, value_set=distinct), -1).to_numpy()
    return codes[of_each]


def _newest(of_rows: Ints, keys: Ints, asked_at_ms: Ints, is_wanted: NDArray[np.bool_]) -> Ints:
    """For each row the number of the last deletion with its key, -1 without one."""
    numbers = np.flatnonzero(is_wanted)
    numbers = numbers[np.lexsort((asked_at_ms[numbers], keys[numbers]))]
    if len(numbers) == 0:
        return np.full(len(of_rows), -1, dtype=np.int64)
    place = np.searchsorted(keys[numbers], of_rows, side="right") - 1
    found = numbers[np.maximum(place, 0)]
    return np.where((place >= 0) & (keys[found] == of_rows), found, -1)
