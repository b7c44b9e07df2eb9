"""The tables of a snapshot, declared once. An unknown number is UNKNOWN (-1)."""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

Row = Mapping[str, Any]
"""A row of the snapshot's table of groups or of partitions."""

_NAME = pa.dictionary(pa.int32(), pa.string())
_SLOTS = pa.list_(pa.field("item", pa.int64(), nullable=False))

RATES = ("produced_1m", "produced_10m", "consumed_1m", "consumed_10m")
"""Messages per second, averaged over about one and ten minutes."""

WINDOW_COLUMNS = ("offsets", "times_ms", "orders", "lags", "lags_low", "lags_high")

PARTITIONS = pa.schema(
    [
        ("cluster", _NAME),
        ("group", _NAME),
        ("topic", _NAME),
        ("partition", pa.int32()),
        ("owner", _NAME),
        ("client_id", _NAME),
        ("status", pa.int8()),
        ("reason", pa.int8()),
        ("since_ms", pa.int64()),
        ("complete", pa.float32()),
        ("current_lag", pa.int64()),
        ("committed_offset", pa.int64()),
        ("head", pa.int64()),
        ("head_ms", pa.int64()),
        ("log_start", pa.int64()),
        ("offsets_log", pa.int32()),
        ("trend_floor", pa.float64()),
        ("unread_offset", pa.int64()),
        ("unread_since_ms", pa.int64()),
        ("unread_error_ms", pa.int64()),
        ("behind_method", pa.int8()),
        ("seconds_behind", pa.float64()),
        ("unread_record_ms", pa.int64()),
        ("oldest_unread_age_s", pa.float64()),
        ("rates_since_ms", pa.int64()),
        *((name, pa.float32()) for name in RATES),
        *((name, pa.float32()) for name in ("catch_up_low_s", "catch_up_high_s", "retention_left_s")),
        ("lost", pa.int64()),
        *((f"{edge}_{column}", pa.int64()) for edge in ("start", "end") for column in ("offset", "ms", "lag")),
        *((name, _SLOTS) for name in WINDOW_COLUMNS),
    ]
)
"""One row per partition of a group, sorted by cluster, group, topic, partition; the window's slots oldest first.

`head_ms` is when the head was sampled; `offsets_log` numbers the offsets partition that its commits come from.
`unread_since_ms` is since when the message at `unread_offset`, the first unread one, has been there, give or take
`unread_error_ms`; `behind_method` says how that is known (`domain/time_lag.py`), and `seconds_behind` is what follows.
With AT_LEAST, `unread_error_ms` is how much longer it can have been there at most.
`unread_record_ms` is the timestamp of that message itself, and `oldest_unread_age_s` its age.
`lost` messages were deleted before they were read.
"""

GROUPS = pa.schema(
    [
        ("cluster", _NAME),
        ("group", pa.string()),
        ("status", pa.int8()),
        ("worst_status", pa.int8()),
        ("since_ms", pa.int64()),
        ("complete", pa.float32()),
        ("totallag", pa.int64()),
        ("maxlag", pa.int64()),
        ("maxlag_row", pa.int64()),
        ("worst_row", pa.int64()),
        ("first_row", pa.int64()),
        ("partitions", pa.int32()),
        *((f"count_{status}", pa.int32()) for status in ("ok", "warn", "stop", "stall", "rewind")),
        ("newest_commit_ms", pa.int64()),
        ("unknown_since_ms", pa.int64()),
        ("seconds_behind", pa.float64()),
        ("behind_method", pa.int8()),
        ("behind_row", pa.int64()),
        ("oldest_unread_age_s", pa.float64()),
        *((name, pa.float32()) for name in RATES),
        *((name, pa.float32()) for name in ("catch_up_low_s", "catch_up_high_s", "retention_left_s")),
        ("lost", pa.int64()),
    ]
)
"""One row per group, in the order of the partitions file of the same bucket; `*_row` are rows of that file.

`seconds_behind` is the largest of its partitions, that of `behind_row`; with the method AT_LEAST there may be larger
ones. `oldest_unread_age_s` is the largest that is known. Rates and `lost` are sums; `catch_up_*` are of the slowest
partition, `retention_left_s` of the first that loses data.
"""

LAYOUT = pa.schema(
    [
        ("cluster", pa.string()),
        ("topic", pa.string()),
        ("topic_id", pa.string()),
        ("partitions", pa.int32()),
        ("first_row", pa.int64()),
    ]
)
"""The rows of each topic's partitions in the head files that have this layout."""

HEADS = pa.schema([("head", pa.int64()), ("log_start", pa.int64())])
"""One sample of all heads and log starts, in the order of its layout."""
PAST_HEADS = HEADS.append(pa.field("lowest_head", pa.int64()))
"""The same by the timestamps of records: `head` is the highest that a head can have been."""
