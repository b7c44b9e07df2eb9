"""Snapshots of any size, made by the reduce side of the pipeline without Spark or a broker, to be served or read."""

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.load import PARTITIONS_PER_GROUP, group_name, topic_name
from warren.domain.offsets_logs import NO_LOG
from warren.domain.rules import Limits
from warren.kafka.samples import ClusterSample, Topic
from warren.pipeline.bucket_result import decode_result
from warren.pipeline.flow import judge_buckets
from warren.pipeline.head_files import HeadFiles, thin_history
from warren.pipeline.plan import CyclePlan, PlannedCluster
from warren.pipeline.schemas import COMMITS, OWNERS, TableKind
from warren.pipeline.shuffle import address_tables, call_buckets
from warren.snapshot.manifest import ClusterState, HeadSample, Manifest
from warren.snapshot.store import Store

BUCKETS = 8
INTERVALS = 10
GROUPS_PER_TOPIC = 4


def record(
    root: Path,
    partitions: int,
    cycles: int = INTERVALS,
    cluster: str = "local",
    per_group: int = PARTITIONS_PER_GROUP,
) -> Iterator[Manifest]:
    """Publish a snapshot after each of some cycles in which every partition commits; one group in ten lags more."""
    store = Store(root)
    store.create()
    head_files = HeadFiles(store, None)
    groups = partitions // per_group
    now_ms = time.time_ns() // 1_000_000 - cycles * 10_000
    planned = PlannedCluster(cluster, is_judged=True)
    plan = CyclePlan(
        root=str(root), sequence=0, now_ms=now_ms, intervals=INTERVALS, min_distance_ms=0, expire_ms=604_800_000,
        limits=Limits(), clusters=(planned,), sources=(), slots=tuple(range(BUCKETS)), state=(), heads=(),
    )  # fmt: skip
    heads: tuple[HeadSample, ...] = ()
    for cycle in range(cycles):
        now_ms += 10_000
        sample = _heads(cluster, groups, per_group, cycle, now_ms)
        heads = (*heads, head_files.write(plan.sequence + 1, [cluster], {cluster: sample}))
        head_files.published()
        plan = replace(plan, sequence=plan.sequence + 1, now_ms=now_ms, heads=thin_history(heads, now_ms))
        tables = {TableKind.COMMITS: _commits(groups, per_group, cycle, now_ms - 1_000)}
        if cycle == 0:
            tables[TableKind.OWNERS] = _owners(groups, per_group)
        batches = [call_buckets(plan), *address_tables(tables, plan)]
        results = {row["bucket"]: row["result"] for b in judge_buckets(plan)(batches) for row in b.to_pylist()}
        plan = replace(plan, state=tuple(decode_result(results[bucket]).bucket for bucket in range(BUCKETS)))
        state = ClusterState(None, None, False, {}, False, now_ms, {}, {}, 0, "OK")
        manifest = Manifest(
            plan.sequence, None, 1, now_ms, INTERVALS, 0.0, 0, 10_000, plan.state, plan.heads, {cluster: state}
        )
        store.publish(manifest)
        yield manifest


def _heads(cluster: str, groups: int, per_group: int, cycle: int, now_ms: int) -> ClusterSample:
    names = sorted({topic_name(group) for group in range(groups)})
    topics = tuple(Topic(name, name, per_group) for name in names)
    heads = np.full(len(names) * per_group, 1_000_000 + 500 * cycle, dtype=np.int64)
    return ClusterSample(
        cluster, heads_at_ms=(now_ms, now_ms), topics=topics, heads=heads, log_starts=np.zeros_like(heads)
    )


def _named(
    groups: int, per_group: int
) -> tuple[pa.DictionaryArray, pa.DictionaryArray, np.ndarray[tuple[int], np.dtype[np.int32]]]:
    rows = np.arange(groups * per_group, dtype=np.int32)
    group = rows // per_group
    topics = sorted({topic_name(number) for number in range(groups)})
    return (
        pa.DictionaryArray.from_arrays(group, pa.array([group_name(number) for number in range(groups)])),
        pa.DictionaryArray.from_arrays(group // GROUPS_PER_TOPIC, pa.array(topics)),
        rows % per_group,
    )


def _commits(groups: int, per_group: int, cycle: int, time_ms: int) -> pa.Table:
    group, topic, partition = _named(groups, per_group)
    rows = partition.size
    number = np.arange(rows) // per_group
    behind = np.where(number % 10 == 0, 1_000 + 300 * cycle, 0)
    columns = {
        "cluster": np.zeros(rows, dtype=np.int32),
        "group": group,
        "topic": topic,
        "partition": partition,
        "offset": 1_000_000 + 500 * cycle - behind,
        "time_ms": np.full(rows, time_ms),
        "order": np.full(rows, cycle),
        "log": np.zeros(rows, dtype=np.int32),
        "is_tombstone": pa.array(np.zeros(rows, dtype=np.bool_)),
    }
    return pa.table(columns, schema=COMMITS)


def _owners(groups: int, per_group: int) -> pa.Table:
    group, topic, partition = _named(groups, per_group)
    member = np.arange(partition.size) // per_group * 10 + partition % 10
    columns = {
        "cluster": np.zeros(partition.size, dtype=np.int32),
        "group": group.cast(pa.string()),
        "topic": topic.cast(pa.string()),
        "partition": partition,
        "owner": pa.array([f"/10.{m >> 16 & 255}.{m >> 8 & 255}.{m & 255}" for m in member.tolist()]),
        "client_id": pa.array([f"billing-{m}" for m in member.tolist()]),
        "log": np.full(partition.size, NO_LOG, dtype=np.int32),
    }
    return pa.table(columns, schema=OWNERS)


def main() -> None:
    """python -m benchmarks.snapshots DIRECTORY PARTITIONS: record some, and say what was made."""
    import sys

    for manifest in record(Path(sys.argv[1]), int(sys.argv[2])):
        size = sum(file.size for file in manifest.files())
        print(json.dumps({"sequence": manifest.sequence, "megabytes": round(size / 1e6, 1)}), flush=True)


if __name__ == "__main__":
    main()
