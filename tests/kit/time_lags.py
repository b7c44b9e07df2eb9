"""Lags in time for which a made-up past is too short."""

import uuid
from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa
from msgspec import structs

from tests.kit.plans import Rehearsal
from warren.snapshot.schemas import GROUPS


def set_time_lags(cycles: Rehearsal, time_lags: Mapping[str, Mapping[str, float]]) -> None:
    """Change columns of groups, given by their names, in what was judged last."""
    buckets = []
    for number, bucket in enumerate(cycles.plan.state):
        rows = [row | time_lags.get(row["group"], {}) for row in cycles.store.read_parquet(bucket.groups).to_pylist()]
        stem = f"{cycles.plan.sequence:012d}-{number:04d}-{uuid.uuid4().hex[:8]}"
        groups = cycles.store.write_table("groups", stem, pa.Table.from_pylist(rows, schema=GROUPS))
        buckets.append(structs.replace(bucket, groups=groups))
    cycles.plan = replace(cycles.plan, state=tuple(buckets))
