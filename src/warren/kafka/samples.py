"""What one look at a cluster gives, and what is asked for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Offsets = npt.NDArray[np.int64]
Partition = tuple[str, int]
"""A topic and a partition of it."""

OWNERS = pa.schema(
    [
        ("group", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("owner", pa.string()),
        ("client_id", pa.string()),
    ]
)
COMMITTED = pa.schema(
    [("group", pa.string()), ("topic", pa.string()), ("partition", pa.int32()), ("offset", pa.int64())]
)


def to_table(schema: pa.Schema, columns: Sequence[Sequence[str] | Sequence[int]]) -> pa.Table:
    """Makes a table of plain lists of strings and integers."""
    return pa.Table.from_arrays(
        [_to_array(field.type, column) for field, column in zip(schema, columns, strict=True)], schema=schema
    )


def _to_array(kind: pa.DataType, values: Sequence[str] | Sequence[int]) -> pa.Array:
    # From buffers, as pa.array imports pandas first: a second or more, and memory, in every process.
    if not pa.types.is_string(kind):
        return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(np.array(values, kind.to_pandas_dtype()))])
    encoded = [str(value).encode() for value in values]
    ends = np.cumsum([0, *map(len, encoded)], dtype=np.int32)
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(ends), pa.py_buffer(b"".join(encoded))])


@dataclass(frozen=True, slots=True)
class SamplingTarget:
    """A cluster to watch: how to reach it, its offsets topics, how often to look for topics."""

    cluster: str
    client_config: Mapping[str, str]
    offsets_topics: tuple[str, ...] = ("__consumer_offsets",)
    topic_refresh_s: float = 60.0


@dataclass(frozen=True, slots=True)
class PartitionEnds:
    """Where a partition starts, where its last stable offset is, and its high watermark.

    `is_held_back` while a broker in sync with it does not answer: commits are made that nobody can see yet.
    """

    log_start: int
    stable_end: int
    end: int
    is_held_back: bool = False


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic as it exists now; one that is deleted and made again has another id."""

    name: str
    id: str
    partitions: int


def _no_offsets() -> Offsets:
    return np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class ClusterSample:
    """One look at a cluster; with an `error` there is nothing else in it.

    `ends` are fixed before heads are asked for. A partition of an offsets topic that did not answer is left
    out of them, a topic that does not exist (yet) has none and no id.
    `topics` are those that were there at `topics_at_ms`, which may be long before the look.
    `heads` and `log_starts` follow `topics` x partitions and hold UNKNOWN where nobody answered.
    `heads` of `verified_tails` end with the data: markers of transactions after it are left out.
    `owners` and `consumer_groups` (of the "consumer" protocol) are None when nothing new is known of them.
    """

    cluster: str
    error: str | None = None
    ends_at_ms: int = 0
    ends: dict[str, dict[int, PartitionEnds]] = field(default_factory=dict)
    offsets_topic_ids: dict[str, str] = field(default_factory=dict)
    heads_at_ms: tuple[int, int] = (0, 0)
    topics: tuple[Topic, ...] = ()
    heads: Offsets = field(default_factory=_no_offsets)
    log_starts: Offsets = field(default_factory=_no_offsets)
    verified_tails: tuple[Partition, ...] = ()
    owners: pa.Table | None = None
    consumer_groups: tuple[str, ...] | None = None
    topics_at_ms: int = 0
