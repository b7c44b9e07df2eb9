"""The znodes of one layout as far as they are known, and the changes that no manifest has taken up yet; no I/O."""

import uuid
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from warren.domain.compaction import keep_needed
from warren.kafka.samples import OWNERS, to_table
from warren.sources.zookeeper.layouts import (
    BadZnode,
    CommittedOffset,
    Layout,
    NodeKind,
    Path,
    ZnodeReject,
    children_of,
    decode_owner,
)
from warren.sources.zookeeper.samples import CHANGES, REJECTS, Ack

MAX_ZNODES = 2_000_000
COMPACT_AT = 100_000
"""How many changes wait for a manifest before those that no window can need are forgotten."""
MAX_REJECTS = 10_000
_SHOWN_BYTES = 32

Key = tuple[str, str, int]
"""A group, a topic and a partition."""


class _Change(NamedTuple):
    version: int
    observed_ms: int
    group: str
    topic: str
    partition: int
    offset: int
    time_ms: int
    zxid: int
    is_tombstone: int


class _Reject(NamedTuple):
    version: int
    observed_ms: int
    zxid: int
    reason: str
    sample: str


@dataclass(slots=True)
class Znode:
    """A znode: its kind, its children if it is a directory, and the last value that was read of it."""

    kind: NodeKind
    path: Path
    children: set[str] | None = None
    key: Key | None = None
    change: _Change | None = None
    zxid: int = -1


class Tree:
    """The znodes below a root; an `instance` never comes back, so that its versions cannot be taken for another's."""

    def __init__(
        self,
        layout: Layout,
        keep_groups: Callable[[Sequence[str]], Sequence[str]],
        intervals: int,
        min_distance_ms: int,
    ) -> None:
        self.instance = uuid.uuid4().hex
        self.version = 0
        self._layout = layout
        self._keep_groups = keep_groups
        self._intervals, self._min_distance_ms = intervals, min_distance_ms
        self._znodes = {layout.root: Znode(NodeKind.DIRECTORY, (), set())}
        self._changes: deque[_Change] = deque()
        self._compact_at = COMPACT_AT
        self._rejects: deque[_Reject] = deque(maxlen=MAX_REJECTS)
        self._rejected: set[str] = set()
        self._owners: dict[str, dict[tuple[str, int], str]] = {}
        self._owner_versions: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._znodes)

    def get(self, path: str) -> Znode | None:
        """The znode of a path, if it is known."""
        return self._znodes.get(path)

    def list_children(self, path: str, names: Sequence[str], now_ms: int) -> tuple[list[str], list[str]]:
        """Take up the children of a directory; gives the paths of new ones and of those that were known."""
        parent = self._znodes[path]
        if not parent.path:
            names = self._keep_groups(names)
        kinds, rejected = children_of(self._layout, parent.path, names)
        for name in rejected:
            self._reject_once(f"{_prefix(path)}{name}", ZnodeReject.BAD_NAME, now_ms)
        if parent.children is None:
            return [], []
        for name in parent.children - kinds.keys():
            self.remove(f"{_prefix(path)}{name}", now_ms)
        new, known = [], []
        for name, kind in kinds.items():
            child = f"{_prefix(path)}{name}"
            if child in self._znodes:
                known.append(child)
            elif len(self._znodes) >= MAX_ZNODES:
                self._reject_once(child, ZnodeReject.TOO_MANY, now_ms)
            else:
                children: set[str] | None = set() if kind == NodeKind.DIRECTORY else None
                self._znodes[child] = Znode(kind, (*parent.path, name), children)
                parent.children.add(name)
                new.append(child)
        return new, known

    def set_value(self, path: str, data: bytes, zxid: int, mtime_ms: int, now_ms: int) -> None:
        """Take up the value of a znode, as of the transaction that wrote it."""
        znode = self._znodes[path]
        if znode.zxid == zxid:
            return
        znode.zxid = zxid
        if znode.kind == NodeKind.OWNER:
            group, _, topic, partition = znode.path
            self._set_owner((group, topic, int(partition)), decode_owner(data))
            return
        try:
            committed = self._layout.decode_offset(znode.path, data)
        except BadZnode as error:
            self._reject(zxid, error.reject, f"{path} = {data[:_SHOWN_BYTES]!r}", now_ms)
            return
        self._set_offset(znode, committed, zxid, mtime_ms, now_ms)

    def refuse(self, path: str, reject: ZnodeReject, now_ms: int) -> None:
        """A znode cannot be read."""
        self._reject_once(path, reject, now_ms)

    def remove(self, path: str, now_ms: int) -> None:
        """A znode is gone, with all that was below it; the root itself stays known."""
        znode = self._znodes.get(path)
        if znode is None:
            return
        for name in list(znode.children or ()):
            self.remove(f"{_prefix(path)}{name}", now_ms)
        if znode.path:
            del self._znodes[path]
            siblings = self._znodes[path.rpartition("/")[0] or "/"].children
            if siblings is not None:
                siblings.discard(znode.path[-1])
        if znode.kind == NodeKind.OFFSET:
            self._delete_offset(znode, now_ms)
        elif znode.kind == NodeKind.OWNER and znode.zxid >= 0:
            group, _, topic, partition = znode.path
            self._set_owner((group, topic, int(partition)), None)

    def _set_offset(self, znode: Znode, committed: CommittedOffset, zxid: int, mtime_ms: int, now_ms: int) -> None:
        key = (committed.group, committed.topic, committed.partition)
        if znode.key not in (None, key):
            self._delete_offset(znode, now_ms)
        znode.key = key
        self.version += 1
        znode.change = _Change(self.version, now_ms, *key, committed.offset, mtime_ms, zxid, is_tombstone=0)
        self._add(znode.change)

    def _delete_offset(self, znode: Znode, now_ms: int) -> None:
        if znode.change is not None:
            self.version += 1
            # Deletes all that was read of the znode; one that is created again has a later transaction.
            self._add(znode.change._replace(version=self.version, observed_ms=now_ms, is_tombstone=1))
            znode.key = znode.change = None

    def _add(self, change: _Change) -> None:
        self._changes.append(change)
        if len(self._changes) > self._compact_at:
            changes = list(self._changes)
            codes: dict[Key, int] = {}
            code = np.array([codes.setdefault(change[2:5], len(codes)) for change in changes], np.int64)
            version, time_ms, is_tombstone = (
                np.array([getattr(change, name) for change in changes], np.int64)
                for name in ("version", "time_ms", "is_tombstone")
            )
            is_needed = keep_needed(
                code, version, time_ms, is_tombstone.astype(np.bool_), self._intervals, self._min_distance_ms
            )
            self._changes = deque(changes[index] for index in np.flatnonzero(is_needed).tolist())
            self._compact_at = max(COMPACT_AT, 2 * len(self._changes))

    def _set_owner(self, key: Key, owner: str | None) -> None:
        group, topic, partition = key
        owners = self._owners.setdefault(group, {})
        if owner is None:
            owners.pop((topic, partition), None)
        else:
            owners[topic, partition] = owner
        if not owners:
            del self._owners[group]
        self.version += 1
        self._owner_versions[group] = self.version

    def _reject(self, zxid: int, reject: ZnodeReject, sample: str, now_ms: int) -> None:
        self.version += 1
        self._rejects.append(_Reject(self.version, now_ms, zxid, reject.value, sample[:300]))

    def _reject_once(self, path: str, reject: ZnodeReject, now_ms: int) -> None:
        if path not in self._rejected and len(self._rejected) < MAX_ZNODES:
            self._rejected.add(path)
            self._reject(-1, reject, path, now_ms)

    def acknowledge(self, version: int) -> None:
        """A manifest has taken up all changes up to a version."""
        for waiting in (self._changes, self._rejects):
            while waiting and waiting[0].version <= version:
                waiting.popleft()
        self._owner_versions = {group: own for group, own in self._owner_versions.items() if own > version}

    def is_mine(self, ack: Ack | None) -> bool:
        """Whether an acknowledgement is of this instance."""
        return ack is not None and ack.instance == self.instance

    def changes(self) -> pa.Table:
        """The changes that wait for a manifest, as `CHANGES`."""
        return to_table(CHANGES, self._changes)

    def rejects(self) -> pa.Table:
        """The rejects that wait for a manifest, as `REJECTS`."""
        return to_table(REJECTS, self._rejects)

    def listing(self) -> pa.Table:
        """Every offset as it is, as `CHANGES`."""
        return to_table(CHANGES, [znode.change for znode in self._znodes.values() if znode.change is not None])

    def groups(self) -> Iterator[str]:
        """All groups that have a znode."""
        return iter(self._znodes[self._layout.root].children or ())

    def changed_owner_groups(self) -> tuple[str, ...]:
        """The groups whose owners have changed."""
        return tuple(self._owner_versions)

    def owners(self, groups: Iterable[str]) -> pa.Table:
        """The owners of some groups."""
        rows = [
            (group, topic, partition, owner, "")
            for group in groups
            for (topic, partition), owner in self._owners.get(group, {}).items()
        ]
        return to_table(OWNERS, rows)


def _prefix(path: str) -> str:
    return path if path == "/" else f"{path}/"
