"""The boundaries between the steps of the pipeline, each declared once."""

from enum import IntEnum

import pyarrow as pa

from warren.kafka import samples

RAW_RECORDS = pa.schema(
    [
        ("source", pa.int32()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("key", pa.binary()),
        ("value", pa.binary()),
    ]
)
"""Records of offsets topics; `source` is an index into the plan's sources."""

TASK_RECORDS = RAW_RECORDS.set(0, pa.field("task", pa.int32()))
"""Records as they were read: with the number of the task that has read them."""


class TableKind(IntEnum):
    """What a table on its way to a bucket holds; NONE only makes sure that every bucket is judged."""

    NONE = 0
    COMMITS = 1
    OWNERS = 2
    REJECTS = 3
    SEEDS = 4
    LISTED = 5


_NAME = pa.dictionary(pa.int32(), pa.string())

COMMITS = pa.schema(
    [
        ("cluster", pa.int32()),
        ("group", _NAME),
        ("topic", _NAME),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("time_ms", pa.int64()),
        ("order", pa.int64()),
        ("log", pa.int32()),
        ("is_tombstone", pa.bool_()),
    ]
)
"""Decoded commits; a tombstone without a topic deletes the whole group.

`order` is the offset of the record in the offsets partition `log` (its number within the cluster).
"""

OWNERS = samples.OWNERS.insert(0, pa.field("cluster", pa.int32()))
"""The rows of a group replace all owners that were known of it; a row without a topic only says that they changed."""

SEEDS = samples.COMMITTED.insert(0, pa.field("cluster", pa.int32()))
"""Offsets that brokers hold for groups whose commits were not read."""

LISTED = pa.schema([("cluster", pa.int32()), ("group", pa.string()), ("is_deleted", pa.bool_())])
"""The groups that the brokers of a cluster know, and those that they said they do not know."""

REJECTS = pa.schema([("cluster", pa.int32()), ("reason", pa.string()), ("count", pa.int64()), ("sample", pa.string())])
"""Records that cannot be decoded, counted by reason, with one sample each."""

TABLES = {
    TableKind.COMMITS: COMMITS,
    TableKind.OWNERS: OWNERS,
    TableKind.REJECTS: REJECTS,
    TableKind.SEEDS: SEEDS,
    TableKind.LISTED: LISTED,
}

ADDRESSED = pa.schema([("slot", pa.int32()), ("bucket", pa.int32()), ("kind", pa.int32()), ("table", pa.binary())])
"""Whole Arrow tables on their way to a bucket: columns travel through the shuffle as they are, not row by row."""

RESULTS = pa.schema([("bucket", pa.int32()), ("result", pa.binary())])
"""What the tasks of buckets return: a `BucketResult` each, never rows that grow with the groups."""
