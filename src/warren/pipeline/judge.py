"""The reduce side of a cycle, a bucket at a time: the state before and the new commits in, the judged state out."""

import json
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from warren.domain.lag import SHORT_LAG, current_lag
from warren.domain.offsets_outages import observed_until
from warren.domain.rules import Evidence, Reason, judge
from warren.domain.status import Status
from warren.domain.windows import UNKNOWN, Commits, append, drop_before
from warren.pipeline.deletions import drop_deleted, drop_deleted_commits
from warren.pipeline.groups import cluster_summaries, to_groups
from warren.pipeline.heads import HeadHistory
from warren.pipeline.owners import with_owners
from warren.pipeline.plan import CyclePlan, PlannedCluster
from warren.pipeline.schemas import COMMITS, OWNERS, REJECTS, SEEDS, Piece
from warren.pipeline.shuffle import flags, numbers, whole
from warren.pipeline.state import (
    ENCODING,
    Names,
    State,
    empty_state,
    from_table,
    select,
    sorted_by_name,
    to_table,
)
from warren.snapshot.manifest import Bucket
from warren.snapshot.store import Store
from warren.spark.worker import prepare_worker

Ints = NDArray[np.int64]
Batches = Iterable[pa.RecordBatch]

_ANSWER = pa.schema([("bucket", pa.int32()), ("summary", pa.binary())])
_SCHEMAS = {Piece.COMMITS: COMMITS, Piece.OWNERS: OWNERS, Piece.SEEDS: SEEDS, Piece.REJECTS: REJECTS}


LOOK_AT = 100
"""How many tails a bucket asks for in a cycle."""


def judge_buckets(plan: CyclePlan) -> Callable[[Batches], Batches]:
    """The task of a cycle's second half: every bucket that is addressed in a partition is judged and written."""

    def run(batches: Batches) -> Batches:
        prepare_worker()
        for bucket, pieces in _gathered(batches).items():
            summary = _judge_bucket(plan, bucket, pieces)
            answer = [pa.array([bucket], pa.int32()), pa.array([json.dumps(summary).encode()], pa.binary())]
            yield pa.RecordBatch.from_arrays(answer, schema=_ANSWER)

    return run


def _gathered(batches: Batches) -> dict[int, dict[Piece, pa.Table]]:
    found: dict[int, dict[Piece, list[pa.Table]]] = {}
    for batch in batches:
        for row in range(batch.num_rows):
            pieces = found.setdefault(batch["bucket"][row].as_py(), {})
            what = Piece(batch["what"][row].as_py())
            if what != Piece.NOTHING:
                pieces.setdefault(what, []).append(pa.ipc.open_stream(batch["piece"][row].as_buffer()).read_all())
    return {
        bucket: {what: pa.concat_tables(tables).unify_dictionaries() for what, tables in pieces.items()}
        for bucket, pieces in found.items()
    }


def _judge_bucket(plan: CyclePlan, bucket: int, pieces: dict[Piece, pa.Table]) -> dict[str, object]:
    """The whole way of a bucket, step by step."""
    store = Store(Path(plan.root))
    names = [cluster.name for cluster in plan.clusters]
    tables = {what: pieces.get(what, _SCHEMAS[what].empty_table()) for what in _SCHEMAS}

    state, groups_before = _load(store, plan, bucket, names)
    commits = tables[Piece.COMMITS]
    rows_before = len(state.rows)
    state, placed = with_rows_for(state, commits)
    state, placed = drop_deleted_commits(state, commits, placed, plan)
    state = with_commits(state, commits, placed, plan)
    state = with_seeds(state, tables[Piece.SEEDS])
    state = with_owners(state, tables[Piece.OWNERS])
    if len(state.rows) > rows_before:
        state = sorted_by_name(state)
    state, heard = drop_deleted(state, plan)
    state = keep_living(state, plan)
    state, doubted = with_verdicts(state, plan)
    groups = to_groups(state, groups_before, plan)

    stem = f"{plan.sequence:012d}-{bucket:04d}"
    partitions_file = store.write_table("partitions", stem, to_table(state, names), ENCODING)
    groups_file = store.write_table("groups", stem, groups)
    made = Bucket(partitions_file, groups_file, len(state.rows), groups.num_rows)
    return {
        "bucket": asdict(made),
        "clusters": cluster_summaries(state, groups, commits, names),
        "rejects": tables[Piece.REJECTS].to_pylist(),
        "doubted": _to_look_at(state, doubted, names),
        "heard": heard,
    }


def _load(store: Store, plan: CyclePlan, bucket: int, names: list[str]) -> tuple[State, pa.Table | None]:
    if not plan.state:
        return empty_state(plan.intervals), None
    before = plan.state[bucket]
    state = from_table(store.read_parquet(before.partitions), names, plan.intervals)
    anew = [number for number, cluster in enumerate(plan.clusters) if cluster.is_read_anew]
    if anew:
        state.rows = select(state.rows, ~np.isin(state.rows.cluster, anew))
    return state, store.read_parquet(before.groups)


def with_rows_for(state: State, commits: pa.Table) -> tuple[State, Ints]:
    """A row for every partition that is committed to; and the row of each commit (-1 for a tombstone of a group)."""
    if commits.num_rows == 0:
        return state, np.zeros(0, dtype=np.int64)
    cluster = numbers(commits["cluster"]).astype(np.int32)
    group = state.groups.codes_of_dictionary(whole(commits["group"]))
    topic = state.topics.codes_of_dictionary(whole(commits["topic"]))
    partition = numbers(commits["partition"]).astype(np.int32)
    may_add = (topic >= 0) & ~flags(commits["is_tombstone"])
    placed = state.place(cluster, group, topic, partition, may_add)
    return state, placed


def with_commits(state: State, commits: pa.Table, placed: Ints, plan: CyclePlan) -> State:
    """Windows with the new commits at their end, less what tombstones have taken."""
    if placed.size == 0 or len(state.rows) == 0:
        return state
    rows = state.rows
    order = numbers(commits["order"])
    is_tombstone = flags(commits["is_tombstone"])
    barrier = _barriers(state, commits, placed, order, is_tombstone)
    if is_tombstone.any():
        rows.windows = drop_before(rows.windows, barrier)
        rows.committed_offset[barrier > 0] = UNKNOWN

    time_ms = numbers(commits["time_ms"])
    is_kept = ~is_tombstone & (placed >= 0) & (time_ms >= plan.now_ms - plan.expire_ms)
    is_kept &= order >= barrier[np.maximum(placed, 0)]
    kept = np.flatnonzero(is_kept)
    kept = kept[np.lexsort((order[kept], placed[kept]))]
    row, offset, time_ms, order = placed[kept], numbers(commits["offset"])[kept], time_ms[kept], order[kept]

    lag, low, high = (np.full(kept.size, UNKNOWN, dtype=np.int64) for _ in range(3))
    if plan.heads and kept.size:
        history = HeadHistory(plan, state)
        for number, cluster in enumerate(plan.clusters):
            own = np.flatnonzero(rows.cluster[row] == number)
            if own.size:
                times = time_ms[own] - cluster.skew_ms
                lag[own], low[own], high[own] = history.lags(row[own], cluster.name, offset[own], times)
    rows.windows = append(rows.windows, Commits(row, offset, time_ms, order, lag, low, high), plan.min_distance_ms)
    has_commit = rows.windows.count > 0
    rows.committed_offset[has_commit] = rows.windows.offset[has_commit, -1]
    return state


def with_seeds(state: State, seeds: pa.Table) -> State:
    """Partitions of groups that stay silent, known by the offset the brokers hold for them."""
    if seeds.num_rows == 0:
        return state
    names = {"group": state.groups, "topic": state.topics}
    group, topic = (held.codes(seeds[name].combine_chunks()) for name, held in names.items())
    cluster, partition = (numbers(seeds[name]).astype(np.int32) for name in ("cluster", "partition"))
    placed = state.place(cluster, group, topic, partition, np.ones(seeds.num_rows, dtype=np.bool_))
    is_silent = state.rows.windows.count[placed] == 0
    state.rows.committed_offset[placed[is_silent]] = numbers(seeds["offset"])[is_silent]
    return state


def _barriers(state: State, commits: pa.Table, placed: Ints, order: Ints, is_tombstone: NDArray[np.bool_]) -> Ints:
    """For each row the order below which nothing counts any more: the newest tombstone of it or of its group."""
    rows = state.rows
    barrier = np.zeros(len(rows), dtype=np.int64)
    of_partition = is_tombstone & (placed >= 0)
    np.maximum.at(barrier, placed[of_partition], order[of_partition] + 1)
    of_group = is_tombstone & (numbers(commits["partition"]) < 0)
    if of_group.any():
        group = state.groups.codes_of_dictionary(whole(commits["group"]))[of_group]
        cluster = numbers(commits["cluster"])[of_group]
        wide = len(state.groups.values) + 1
        gone = np.zeros((int(rows.cluster.max(initial=0)) + 1) * wide, dtype=np.int64)
        is_known = cluster <= rows.cluster.max(initial=0)
        np.maximum.at(gone, (cluster * wide + group)[is_known], (order[of_group] + 1)[is_known])
        barrier = np.maximum(barrier, gone[rows.cluster.astype(np.int64) * wide + rows.group])
    return barrier


def keep_living(state: State, plan: CyclePlan) -> State:
    """Drop partitions that were taken by a tombstone, whose topic is gone, or that are silent for `expire-group`."""
    rows = state.rows
    has_commit = rows.windows.count > 0
    is_expired = has_commit & (rows.windows.time_ms[:, -1] < plan.now_ms - plan.expire_ms)
    is_empty = ~has_commit & (rows.committed_offset == UNKNOWN) & (rows.owner <= 0)
    is_gone = np.zeros(len(rows), dtype=np.bool_)
    for number, cluster in enumerate(plan.clusters):
        for topic, lost_at_ms in cluster.lost_topics:
            at_ms = lost_at_ms + cluster.skew_ms
            code = Names(state.topics.values).codes(pa.array([topic]))[0]
            is_gone |= (rows.cluster == number) & (rows.topic == code) & (rows.windows.time_ms[:, -1] <= at_ms)
    is_living = ~(is_expired | is_empty | is_gone)
    if not is_living.all():
        state.rows = select(rows, is_living)
    return state


def with_verdicts(state: State, plan: CyclePlan) -> tuple[State, Ints]:
    """Current lag and verdict of every partition of every cluster that can be judged; the others keep what they had.

    Gives also the rows whose verdict waits until the tail of their partition has been looked at.
    """
    rows = state.rows
    history = HeadHistory(plan, state)
    waiting = [np.zeros(0, dtype=np.int64)]
    for number, cluster in enumerate(plan.clusters):
        own = np.flatnonzero(rows.cluster == number)
        if own.size == 0 or not cluster.is_judged:
            continue
        rows.head[own] = history.newest(own)
        rows.log_start[own] = history.newest(own, "log_start")
        rows.current_lag[own] = current_lag(rows.committed_offset[own], rows.head[own])
        recent, is_whole = history.recent(own, cluster.name, plan.now_ms - cluster.ring_ms)
        evidence = Evidence(
            rows.current_lag[own],
            recent,
            is_whole,
            rows.trend_floor[own],
            plan.elapsed_ms,
        )
        whole = own.size == len(rows)
        windows = rows.windows if whole else select(rows, own).windows
        # Commits are known up to when the ends were fixed, which can be long before now when brokers are slow.
        heard_ms = plan.now_ms if cluster.heard_at_ms is None else cluster.heard_at_ms
        last_ms = windows.time_ms[:, -1] - cluster.skew_ms
        until_ms = observed_until(heard_ms, last_ms, state.groups.values, rows.group[own], cluster.away)
        verdicts = judge(windows, evidence, until_ms + cluster.skew_ms, plan.limits)
        waits = is_doubtful(state, own, verdicts.status, cluster)
        waiting.append(own[waits])
        was = rows.status[own[waits]]
        verdicts.status[waits] = was
        verdicts.reason[waits] = np.where(was == Status.OK, Reason.TAIL_IN_DOUBT, rows.reason[own[waits]])
        has_changed = (rows.status[own] != verdicts.status) | (rows.reason[own] == Reason.NOT_JUDGED)
        rows.since_ms[own] = np.where(has_changed, plan.now_ms, rows.since_ms[own])
        rows.status[own], rows.reason[own] = verdicts.status, verdicts.reason
        rows.complete[own], rows.trend_floor[own] = verdicts.complete, verdicts.trend_floor
    is_fresh = rows.since_ms == 0
    rows.since_ms[is_fresh] = plan.now_ms
    rows.status[rows.status == Status.NOTFOUND] = Status.OK
    return state, np.concatenate(waiting)


def is_doubtful(state: State, own: Ints, status: NDArray[np.int8], cluster: PlannedCluster) -> Ints:
    """Which of a cluster's rows are bad for a lag that may be markers of transactions alone, not looked at yet."""
    rows = state.rows
    doubtful = np.flatnonzero((status != Status.OK) & (rows.current_lag[own] <= SHORT_LAG))
    if doubtful.size == 0 or not cluster.tails_known:
        return doubtful
    topics, partitions = zip(*cluster.tails_known, strict=True)
    topic = Names(state.topics.values).codes(pa.array(topics, pa.string())).astype(np.int64)
    is_known = np.isin(
        rows.topic[own[doubtful]].astype(np.int64) << 32 | rows.partition[own[doubtful]],
        topic << 32 | np.array(partitions, dtype=np.int64),
    )
    return doubtful[~is_known]


def _to_look_at(state: State, waiting: Ints, names: list[str]) -> list[tuple[str, str, int]]:
    """The partitions of some of the waiting rows; the others have their turn when these are known."""
    some = waiting[:LOOK_AT]
    rows = state.rows
    topics = state.topics.values.take(pa.array(rows.topic[some])).to_pylist()
    clusters = [names[number] for number in rows.cluster[some].tolist()]
    return list(zip(clusters, topics, rows.partition[some].tolist(), strict=True))
