"""What to sample of a cluster, and what a sample contains."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from warren.config.kafka import Connection
from warren.domain.arrays import Ints

NO_OFFSETS: Ints = np.empty(0, np.int64)
Partition = tuple[str, int]
"""A topic and a partition of it."""
VerifiedTail = tuple[str, int, int]
"""A topic, a partition of it, and an offset: right before it there is data, not a transaction marker."""

UnreadOffset = tuple[str, int, int]
"""A topic, a partition of it, and the offset of its first unread message."""
KnownTime = tuple[int, int, bool]
"""The time of a record, how far off it may be (both in ms), and whether it is when the broker appended the record."""
RecordTime = tuple[str, int, int, int, int, bool]
"""A topic, a partition of it, an offset, and the KnownTime of the record there."""

TOPIC_GRACE_MS = 5_000
"""How long lists of topics must lack a topic that does not exist until it counts as deleted."""

OWNERS = pa.schema(
    [
        ("group", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("owner", pa.string()),
        ("client_id", pa.string()),
    ]
)
TOPIC_CONFIGS = pa.schema(
    [
        ("topic", pa.string()),
        ("is_append_time", pa.int8()),
        ("is_deleting", pa.int8()),
        ("retention_ms", pa.int64()),
        ("retention_bytes", pa.int64()),
    ]
)
"""How topics are configured: whether brokers stamp the records, and whether old ones are deleted; -1 is no limit."""
COMMITTED = pa.schema(
    [("group", pa.string()), ("topic", pa.string()), ("partition", pa.int32()), ("offset", pa.int64())]
)


def to_table(schema: pa.Schema, rows: Sequence[tuple[str | int, ...]]) -> pa.Table:
    """A table of rows of strings and integers."""
    columns = [[row[i] for row in rows] for i in range(len(schema))]
    return pa.Table.from_arrays(
        [_to_array(field.type, column) for field, column in zip(schema, columns, strict=True)], schema=schema
    )


def _to_array(arrow_type: pa.DataType, values: Sequence[str | int]) -> pa.Array:
    # From buffers: pa.array imports pandas first, which costs every process a second and memory.
    if not pa.types.is_string(arrow_type):
        data = pa.py_buffer(np.array(values, arrow_type.to_pandas_dtype()))
        return pa.Array.from_buffers(arrow_type, len(values), [None, data])
    encoded = [str(value).encode() for value in values]
    ends = np.cumsum([0, *map(len, encoded)], dtype=np.int32)
    return pa.Array.from_buffers(arrow_type, len(values), [None, pa.py_buffer(ends), pa.py_buffer(b"".join(encoded))])


@dataclass(frozen=True, slots=True)
class SamplingTarget:
    """A cluster to sample: how to connect, its offsets topics, how often to list its topics.

    `own_topics` are those that Warren itself writes. It may see them even if it may see no other.
    `readers` are the consumer sections that connect in another way, by which Spark reads the offsets topics.
    """

    cluster: str
    connection: Connection
    offsets_topics: tuple[str, ...] = ("__consumer_offsets",)
    topic_refresh_s: float = 60.0
    own_topics: frozenset[str] = field(default=frozenset(), compare=False)
    readers: tuple[tuple[str, Connection], ...] = ()


@dataclass(frozen=True, slots=True)
class PartitionEnds:
    """The log start, last stable offset and high watermark of a partition.

    `is_held_back` while a broker in its ISR does not answer: commits may have been written that nobody can read yet.
    """

    log_start: int
    stable_end: int
    end: int
    is_held_back: bool = False


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic as it exists now; a topic that is deleted and created again has another id."""

    name: str
    id: str
    partitions: int


def missing_topics(before: Sequence[Topic], now: Sequence[Topic]) -> list[Topic]:
    """The topics whose names are not there any more."""
    names = {topic.name for topic in now}
    return [topic for topic in before if topic.name not in names]


@dataclass(frozen=True, slots=True)
class SampleQuestions:
    """What a sample of a cluster is to find out besides.

    Which tails end in data, what became of some topics, when the records at some offsets were made, and how some topics
    are configured.
    """

    unverified_tails: Sequence[Partition] = ()
    missing_topics: Sequence[str] = ()
    unread_offsets: Sequence[UnreadOffset] = ()
    unread_records: Collection[UnreadOffset] = ()
    """Those of `unread_offsets` whose records are to be read."""
    lagging_topics: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class SampleVersions:
    """The versions of the parts of a sample that change rarely and are sent only when they are new."""

    layout: int = 0
    owners: int = 0


@dataclass(frozen=True, slots=True)
class ClusterSample:
    """The state of a cluster at one time; a sample with an `error`, or that is late, contains nothing else.

    Times are of the steady clock (`warren.clock`); spans are from the request to its last answer.
    `ends` are fixed before the heads are requested. They leave out the offsets partitions that did not answer; an
    offsets topic that does not exist yet has no ends and no id.
    `topics` are those that existed at `topics_at_ms`, which may be long before the sample.
    `hidden_topics` and `absent_topics` are those in question that Warren may not see, or that do not exist.
    `heads` and `log_starts` have one value per topic and partition, UNKNOWN where no broker answered.
    `heads` that have not moved since their tail was read are the end of the data, without the transaction markers.
    `owners` and `consumer_groups` (those of the "consumer" protocol, now or at the last refresh) are None unless new.
    """

    cluster: str
    error: str | None = None
    ends_at_ms: tuple[int, int] = (0, 0)
    ends: dict[str, dict[int, PartitionEnds]] = field(default_factory=dict)
    offsets_topic_ids: dict[str, str] = field(default_factory=dict)
    heads_at_ms: tuple[int, int] = (0, 0)
    topics: tuple[Topic, ...] = ()
    heads: Ints = field(default_factory=NO_OFFSETS.copy)
    log_starts: Ints = field(default_factory=NO_OFFSETS.copy)
    verified_tails: tuple[VerifiedTail, ...] = ()
    record_times: tuple[RecordTime, ...] = ()
    topic_configs: pa.Table = field(default_factory=TOPIC_CONFIGS.empty_table)
    owners: pa.Table | None = None
    consumer_groups: tuple[str, ...] | None = None
    topics_at_ms: int = 0
    hidden_topics: tuple[str, ...] = ()
    absent_topics: tuple[str, ...] = ()
    versions: SampleVersions = SampleVersions()
    is_late: bool = False
    """Whether the cluster has not answered yet, but still may."""

    @property
    def is_answer(self) -> bool:
        """Whether it contains the state of the cluster."""
        return self.error is None and not self.is_late
