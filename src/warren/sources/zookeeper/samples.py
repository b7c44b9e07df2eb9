"""What to read of ZooKeeper, and what the cycle is given of it."""

from dataclasses import dataclass, field
from typing import NamedTuple

import pyarrow as pa

from warren.config.secrets import Secret
from warren.config.security import Tls
from warren.domain.matching import GroupFilter
from warren.kafka.samples import OWNERS
from warren.sources.zookeeper.layouts import Layout

CHANGES = pa.schema(
    [
        ("version", pa.int64()),
        ("observed_ms", pa.int64()),
        ("group", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("time_ms", pa.int64()),
        ("zxid", pa.int64()),
        ("is_tombstone", pa.int8()),
    ]
)
"""Values of znodes that were seen, and znodes that were seen to be gone; `zxid` is of the transaction that wrote it.

`observed_ms` is of the steady clock, `time_ms` is the znode's mtime. `version` rises from change to change.
"""

REJECTS = pa.schema(
    [("version", pa.int64()), ("observed_ms", pa.int64()), ("zxid", pa.int64()), ("reason", pa.string()),
     ("sample", pa.string())]
)  # fmt: skip
"""Znodes that cannot be used; `zxid` is -1 if it is not known."""


class Seen(NamedTuple):
    """All changes up to a transaction have been seen, and all that were made before a time of the steady clock."""

    zxid: int
    ms: int


NOTHING_SEEN = Seen(-1, 0)


class Ack(NamedTuple):
    """The last change of a reader that a manifest has taken up."""

    instance: str
    version: int


@dataclass(frozen=True, slots=True)
class ReadTarget:
    """A consumer section to read: the ensemble, what is kept where, which groups, and how fast.

    `intervals` and `min_distance_ms` tell how many changes of a znode a window can need at most.
    """

    section: str
    cluster: str
    servers: tuple[str, ...]
    layout: Layout
    timeout_s: float = 30.0
    max_rate: float = 1000.0
    tls: Tls | None = None
    username: str | None = None
    password: Secret | None = None
    filter: GroupFilter = field(default_factory=GroupFilter)
    storage_filter: GroupFilter = field(default_factory=GroupFilter)
    intervals: int = 10
    min_distance_ms: int = 0


@dataclass(frozen=True, slots=True)
class ZooKeeperSample:
    """What a reader has seen since a version that the cycle has; `is_listed` once it has seen every znode.

    `changes` and `rejects` are newer than that version; `owners` are those of groups whose owners have changed since.
    `listing` has every znode as it is, if the cycle has nothing of this reader yet. `error` says why the ensemble
    cannot be read, if it cannot.
    """

    section: str
    instance: str = ""
    error: str | None = None
    is_listed: bool = False
    tree_id: str = ""
    seen: Seen = NOTHING_SEEN
    changes: pa.Table = field(default_factory=CHANGES.empty_table)
    rejects: pa.Table = field(default_factory=REJECTS.empty_table)
    owners: pa.Table = field(default_factory=OWNERS.empty_table)
    owner_groups: tuple[str, ...] = ()
    listing: pa.Table | None = None
    version: int = 0
    znodes: int = 0
    pending: int = 0
    requests: int = 0
