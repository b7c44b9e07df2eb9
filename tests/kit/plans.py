"""Cycles without Spark and Kafka: plans, raw records and commits made by hand, and buckets judged in-process."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from msgspec import structs

from warren.domain.buckets import bucket_of
from warren.domain.matching import GroupFilter
from warren.domain.rules import Limits
from warren.domain.windows import UNKNOWN
from warren.kafka.samples import ClusterSample, Topic
from warren.pipeline.bucket_result import BucketResult, decode_result
from warren.pipeline.flow import judge_buckets, map_records
from warren.pipeline.head_files import HeadFiles, thin_history
from warren.pipeline.plan import CyclePlan, PlannedCluster, PlannedSource
from warren.pipeline.schemas import COMMITS, LISTED, LISTED_PARTITIONS, OWNERS, RAW_RECORDS, SEEDS, TableKind
from warren.pipeline.shuffle import address_tables, call_buckets
from warren.snapshot.manifest import ClusterState, HeadSample, Manifest
from warren.snapshot.store import Store

NOW = 1_700_000_000_000


@dataclass(frozen=True)
class Record:
    """One record of an offsets topic as Spark hands it over."""

    offset: int
    key: bytes | None
    value: bytes | None
    source: int = 0
    partition: int = 0


def raw(records: Iterable[Record]) -> pa.RecordBatch:
    """Records as a batch of Spark's."""
    rows = [{name: getattr(record, name) for name in RAW_RECORDS.names} for record in records]
    return pa.RecordBatch.from_pylist(rows, schema=RAW_RECORDS)


def plan(root: Path, **changes: Any) -> CyclePlan:
    """A plan for one cluster with one offsets topic and a single bucket, with some things changed."""
    made = CyclePlan(
        root=str(root),
        sequence=1,
        now_ms=NOW,
        intervals=10,
        min_distance_ms=0,
        expire_ms=604_800_000,
        limits=Limits(),
        clusters=(PlannedCluster("local", is_judged=True),),
        sources=(PlannedSource(0, (GroupFilter(),)),),
        slots=(0,),
        state=(),
        heads=(),
    )
    return replace(made, **changes)


def addressed_rows(batches: Iterable[pa.RecordBatch]) -> dict[TableKind, dict[int, list[dict[str, Any]]]]:
    """What addressed tables hold: by kind and bucket, rows as dictionaries."""
    rows_of: dict[TableKind, dict[int, list[dict[str, Any]]]] = {kind: {} for kind in TableKind}
    for row in (row for batch in batches for row in batch.to_pylist()):
        table = pa.ipc.open_stream(row["table"]).read_all()
        rows_of[TableKind(row["kind"])].setdefault(row["bucket"], []).extend(table.to_pylist())
    return rows_of


def mapped(made: CyclePlan, *batches: Sequence[Record]) -> dict[TableKind, list[dict[str, Any]]]:
    """Records after the map steps, as rows by kind; every group must be in its own bucket."""
    rows_of = addressed_rows(map_records(made)(raw(records) for records in batches))
    for kind in (TableKind.COMMITS, TableKind.OWNERS):
        for bucket, rows in rows_of[kind].items():
            for row in rows:
                cluster = made.clusters[row["cluster"]].name
                assert bucket_of(cluster, pa.array([row["group"]]), made.buckets).tolist() == [bucket]
    return {kind: [row for rows in by_bucket.values() for row in rows] for kind, by_bucket in rows_of.items()}


@dataclass(frozen=True)
class Commit:
    """A decoded commit; without an offset a tombstone, without a topic that of a whole group."""

    group: str
    topic: str | None
    partition: int
    offset: int | None
    time_ms: int
    order: int
    cluster: int = 0
    log: int = 0


def commits_table(commits: Iterable[Commit]) -> pa.Table:
    """Commits as the map side hands them over."""
    rows = [
        {
            "cluster": c.cluster,
            "group": c.group,
            "topic": c.topic,
            "partition": c.partition,
            "offset": c.offset or 0,
            "time_ms": c.time_ms,
            "order": c.order,
            "log": c.log,
            "is_tombstone": c.offset is None,
        }
        for c in commits
    ]
    return pa.Table.from_pylist(rows, schema=COMMITS)


def judge_in_process(made: CyclePlan, batches: Iterable[pa.RecordBatch]) -> list[BucketResult]:
    """The tasks of all buckets, one after the other; their results in the order of the buckets."""
    rows = [row for batch in judge_buckets(made)(batches) for row in batch.to_pylist()]
    return [decode_result(row["result"]) for row in sorted(rows, key=lambda row: int(row["bucket"]))]


@dataclass
class Rehearsal:
    """Cycles in a row on one data directory: the driver's part by hand, the tasks' part as it is."""

    root: Path
    plan: CyclePlan
    heads: list[HeadSample] = field(default_factory=list)
    head_files: HeadFiles = field(init=False)
    store: Store = field(init=False)
    results: dict[int, BucketResult] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.store = Store(self.root)
        self.store.create()
        self.head_files = HeadFiles(self.store, None)

    def sample(
        self,
        now_ms: int,
        heads: Mapping[str, Mapping[str, Sequence[int]]],
        ids: Mapping[str, str] = {},
        log_start: int = 0,
    ) -> None:
        """Sample heads: cluster, topic, the head of each partition; all logs start at one offset."""
        samples = {}
        for cluster, topics in heads.items():
            held = tuple(Topic(name, ids.get(name, name), len(topics[name])) for name in sorted(topics))
            values = np.array([head for topic in held for head in topics[topic.name]], np.int64)
            samples[cluster] = ClusterSample(
                cluster,
                heads_at_ms=(now_ms, now_ms),
                topics=held,
                heads=values,
                log_starts=np.where(values == UNKNOWN, UNKNOWN, log_start),
            )
        names = [cluster.name for cluster in self.plan.clusters]
        self.heads.append(self.head_files.write(self.plan.sequence, names, samples))
        self.head_files.published()

    def cycle(
        self,
        now_ms: int,
        commits: Iterable[Commit] = (),
        owners: Sequence[Mapping[str, Any]] = (),
        seeds: Sequence[Mapping[str, Any]] = (),
        listed: Sequence[Mapping[str, Any]] = (),
        listed_partitions: Sequence[Mapping[str, Any]] = (),
        **changes: Any,
    ) -> dict[tuple[str, str, str, int], dict[str, Any]]:
        """Judge all buckets once and give the partitions by name."""
        made = replace(
            self.plan, sequence=self.plan.sequence + 1, now_ms=now_ms, heads=thin_history(self.heads, now_ms), **changes
        )
        tables = {
            TableKind.COMMITS: commits_table(commits),
            TableKind.OWNERS: pa.Table.from_pylist(list(owners), schema=OWNERS),
            TableKind.SEEDS: pa.Table.from_pylist(list(seeds), schema=SEEDS),
            TableKind.LISTED: pa.Table.from_pylist(list(listed), schema=LISTED),
            TableKind.LISTED_PARTITIONS: pa.Table.from_pylist(list(listed_partitions), schema=LISTED_PARTITIONS),
        }
        batches = [call_buckets(made), *address_tables(tables, made)]
        self.results = dict(enumerate(judge_in_process(made, batches)))
        self.plan = replace(made, state=tuple(result.bucket for result in self.results.values()))
        return self.partitions()

    def partitions(self) -> dict[tuple[str, str, str, int], dict[str, Any]]:
        """The partitions as they were judged last."""
        rows = [row for bucket in self.plan.state for row in self.store.read_parquet(bucket.partitions).to_pylist()]
        found = {(row["cluster"], row["group"], row["topic"], row["partition"]): row for row in rows}
        assert len(found) == len(rows), "a partition has two rows"
        return found

    def groups(self) -> dict[tuple[str, str], dict[str, Any]]:
        """The groups as they were judged last."""
        rows = [row for bucket in self.plan.state for row in self.store.read_parquet(bucket.groups).to_pylist()]
        found = {(row["cluster"], row["group"]): row for row in rows}
        assert len(found) == len(rows), "a group has two rows"
        return found

    def manifest(self, **changes: Any) -> Manifest:
        """A manifest of what was judged last."""
        return manifest(self.plan, heads=tuple(self.heads), **changes)


def cluster_state(**changes: Any) -> ClusterState:
    """A cluster in good health."""
    made = ClusterState(None, None, False, {}, False, 0, {}, {}, 0, "OK")
    return structs.replace(made, **changes)


def manifest(made: CyclePlan, **changes: Any) -> Manifest:
    """The manifest of a plan that was carried out."""
    result = Manifest(
        sequence=made.sequence,
        predecessor=None,
        epoch=1,
        now_ms=made.now_ms,
        intervals=made.intervals,
        minimum_complete=made.limits.minimum_complete,
        allowed_lag=made.limits.allowed_lag,
        trigger_ms=10_000,
        buckets=made.state,
        heads=made.heads,
        clusters={cluster.name: cluster_state() for cluster in made.clusters},
    )
    return structs.replace(result, **changes)
