"""The boundaries between the steps of the pipeline, each declared once."""

from enum import IntEnum

import pyarrow as pa
from pyspark.sql.types import BinaryType, IntegerType, LongType, StructField, StructType

RAW = StructType(
    [
        StructField("source", IntegerType(), nullable=False),
        StructField("partition", IntegerType()),
        StructField("offset", LongType()),
        StructField("key", BinaryType()),
        StructField("value", BinaryType()),
    ]
)
"""Records of the offsets topics as they were read; `source` counts the cycle's sources."""


class Piece(IntEnum):
    """What a piece on its way to a bucket holds."""

    NOTHING = 0
    COMMITS = 1
    OWNERS = 2
    REJECTS = 3
    SEEDS = 4


PIECES = StructType(
    [
        StructField("slot", IntegerType(), nullable=False),
        StructField("bucket", IntegerType(), nullable=False),
        StructField("what", IntegerType(), nullable=False),
        StructField("piece", BinaryType()),
    ]
)
"""Whole Arrow tables on their way to a bucket: columns travel through the shuffle as they are, not row by row."""

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
        ("is_tombstone", pa.bool_()),
    ]
)
"""Decoded commits; a tombstone without a topic takes the whole group."""

OWNERS = pa.schema(
    [
        ("cluster", pa.int32()),
        ("group", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("owner", pa.string()),
        ("client_id", pa.string()),
    ]
)
"""Who owns what: all rows of a group together replace what was known; one without a topic only says it changed."""

SEEDS = pa.schema(
    [
        ("cluster", pa.int32()),
        ("group", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
    ]
)
"""Offsets that brokers hold for groups whose commits were not read."""

REJECTS = pa.schema(
    [
        ("cluster", pa.int32()),
        ("reason", pa.string()),
        ("count", pa.int64()),
        ("sample", pa.string()),
    ]
)
"""Records that could not be read, counted by reason, with one sample each."""

JUDGED = StructType([StructField("bucket", IntegerType(), nullable=False), StructField("summary", BinaryType())])
"""What a bucket's task answers: its files and a summary a cluster, as JSON; never rows that grow with the groups."""
