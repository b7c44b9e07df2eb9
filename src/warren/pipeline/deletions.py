"""What was deleted on request: of those groups, or topics of groups, nothing counts that was committed before."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from warren.domain.windows import NEVER, drop_until
from warren.pipeline.pieces import flags, numbers
from warren.pipeline.plan import CyclePlan
from warren.pipeline.state import State, select

Ints = NDArray[np.int64]


def drop_deleted_commits(state: State, commits: pa.Table, placed: Ints, plan: CyclePlan) -> tuple[State, Ints]:
    """Windows without the slots, and new commits without a row, that are older than the deletion of their group."""
    if not plan.deletions or len(state.rows) == 0:
        return state, placed
    until_ms = _deleted_until(state, plan)
    # Before the new commits come: one of them must not be merged into a slot that goes.
    state.rows.windows = drop_until(state.rows.windows, until_ms)
    is_old = ~flags(commits["is_tombstone"]) & (numbers(commits["time_ms"]) <= until_ms[placed])
    return state, np.where(is_old, -1, placed)


def drop_deleted(state: State, plan: CyclePlan) -> State:
    """Drop partitions that are deleted and have not been committed to since, with all that was known of them."""
    if not plan.deletions or len(state.rows) == 0:
        return state
    is_deleted = (_deleted_until(state, plan) != NEVER) & (state.rows.windows.count == 0)
    if is_deleted.any():
        state.rows = select(state.rows, ~is_deleted)
    return state


def _deleted_until(state: State, plan: CyclePlan) -> Ints:
    """For each row the time, by the brokers' clock, up to which its commits are deleted; NEVER for most."""
    rows = state.rows
    until_ms = np.full(len(rows), NEVER, dtype=np.int64)
    clusters = {cluster.name: number for number, cluster in enumerate(plan.clusters)}
    groups, topics = (
        pc.fill_null(pc.index_in(pa.array(wanted, pa.string()), value_set=held.values), -1).to_pylist()
        for wanted, held in (
            ([deletion.group for deletion in plan.deletions], state.groups),
            ([deletion.topic for deletion in plan.deletions], state.topics),
        )
    )
    for deletion, group, topic in zip(plan.deletions, groups, topics, strict=True):
        number = clusters.get(deletion.cluster)
        if number is None or group < 0:
            continue
        is_meant = (rows.cluster == number) & (rows.group == group)
        if deletion.topic is not None:
            is_meant &= rows.topic == topic
        asked_at_ms = deletion.asked_at_ms + plan.clusters[number].skew_ms
        until_ms[is_meant] = np.maximum(until_ms[is_meant], asked_at_ms)
    return until_ms
