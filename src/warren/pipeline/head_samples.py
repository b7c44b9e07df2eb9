"""The head samples of a plan, mapped into memory."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from warren.pipeline.plan import CyclePlan
from warren.snapshot.store import Store


@dataclass(frozen=True, slots=True)
class MappedSample:
    """One head sample; `heads` has the columns `head` and `log_start`, `layout` says which rows a topic has."""

    heads: pa.Table
    layout: pa.Table
    layout_path: str
    taken_ms: Mapping[str, tuple[int, int]]
    by_record_time: bool = False


@dataclass(frozen=True, slots=True)
class HeadHistory:
    """The head samples of a plan, oldest first."""

    samples: Sequence[MappedSample]
    clusters: Sequence[str]


_mapped: dict[Path, pa.Table] = {}


def load_head_history(store: Store, plan: CyclePlan) -> HeadHistory:
    """Map the samples of a plan into memory; a Python worker keeps the mappings for its next bucket."""
    paths = {store.path(file) for sample in plan.heads for file in (sample.heads, sample.layout)}
    for path in _mapped.keys() - paths:
        del _mapped[path]
    for path in paths - _mapped.keys():
        with pa.memory_map(str(path)) as source:
            _mapped[path] = pa.ipc.open_file(source).read_all()
    samples = [
        MappedSample(
            _mapped[store.path(sample.heads)],
            _mapped[store.path(sample.layout)],
            sample.layout.path,
            sample.taken_ms,
            sample.by_record_time,
        )
        for sample in plan.heads
    ]
    return HeadHistory(samples, [cluster.name for cluster in plan.clusters])
