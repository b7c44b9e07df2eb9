"""Where consumers keep their offsets in ZooKeeper: which znodes there are, and what they hold.

class kafka_zk   ROOT/consumers/GROUP/offsets/TOPIC/PARTITION   the offset in decimal digits
                 ROOT/consumers/GROUP/owners/TOPIC/PARTITION    the id of the consumer that owns the partition
class storm_zk   ROOT/SPOUT/partition_N                         JSON with topic, partition and offset
                 ROOT/SPOUT/TOPIC/partition_N                   the same, if the spout uses the topic in its paths
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Protocol

import msgspec

MAX_SPOUT_BYTES = 4096
MAX_OWNER_CHARS = 255
_MAX_OFFSET = 2**63 - 1
_MAX_PARTITION = 2**31 - 1
_NUMBER = re.compile(r"0|[1-9][0-9]{0,18}", re.ASCII)
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}", re.ASCII)
_PARTITION = "partition_"

Path = tuple[str, ...]
"""The names from below the root down to a znode."""


class NodeKind(Enum):
    """What a znode is: one whose children matter, or one whose value does."""

    DIRECTORY = auto()
    OFFSET = auto()
    OWNER = auto()


class ZnodeReject(Enum):
    """Why a znode cannot be used; the values are the reasons in words."""

    BAD_NAME = "the name of a znode is not that of a topic or of a partition"
    BAD_OFFSET = "a znode does not hold an offset in decimal digits"
    BAD_JSON = "a znode of a spout does not hold JSON with topic, partition and offset"
    TOO_LONG = "a znode of a spout holds more than 4096 bytes"
    OTHER_NAME = "a znode of a spout holds another topic or partition than its path"
    NO_RIGHT = "a znode may not be read"
    UNREADABLE = "a znode cannot be read"
    TOO_MANY = "there are more znodes than are read"


class BadZnode(Exception):  # noqa: N818 - says what happened
    """A znode that cannot be used."""

    def __init__(self, reject: ZnodeReject) -> None:
        super().__init__(reject.value)
        self.reject = reject


@dataclass(frozen=True, slots=True)
class CommittedOffset:
    """What a znode says: the offset of a group in a partition."""

    group: str
    topic: str
    partition: int
    offset: int


class Layout(Protocol):
    """One way to keep offsets in ZooKeeper."""

    @property
    def root(self) -> str:
        """The path below which everything is."""

    def kind_of(self, path: Path) -> NodeKind | None:
        """What a child of a directory is; None if it does not matter, BadZnode if it should not be there."""

    def decode_offset(self, path: Path, data: bytes) -> CommittedOffset:
        """The offset in a znode, or BadZnode."""


@dataclass(frozen=True, slots=True)
class ConsumersLayout:
    """The offsets of Kafka's old consumers, and of all that commit as they do."""

    root: str

    def kind_of(self, path: Path) -> NodeKind | None:
        """Groups, then offsets and owners, then topics, then partitions."""
        match path:
            case (_,) | (_, "offsets" | "owners"):
                return NodeKind.DIRECTORY
            case (_, _, topic):
                _check(_TOPIC.fullmatch(topic), ZnodeReject.BAD_NAME)
                return NodeKind.DIRECTORY
            case (_, what, _, partition):
                _to_partition(partition)
                return NodeKind.OFFSET if what == "offsets" else NodeKind.OWNER
        return None

    def decode_offset(self, path: Path, data: bytes) -> CommittedOffset:
        """The offset in decimal digits."""
        group, _, topic, partition = path
        digits = data[:20].decode("ascii", "replace")
        _check(_NUMBER.fullmatch(digits) and int(digits) <= _MAX_OFFSET, ZnodeReject.BAD_OFFSET)
        return CommittedOffset(group, topic, _to_partition(partition), int(digits))


class _SpoutValue(msgspec.Struct):
    topic: str
    partition: int
    offset: int


@dataclass(frozen=True, slots=True)
class StormLayout:
    """The offsets of Storm's Kafka spouts; the id of a spout is its group."""

    root: str

    def kind_of(self, path: Path) -> NodeKind | None:
        """Spouts, then partitions, or topics and then partitions."""
        name = path[-1]
        if len(path) > 1 and name.startswith(_PARTITION):
            _to_partition(name.removeprefix(_PARTITION))
            return NodeKind.OFFSET
        _check(len(path) == 1 or (len(path) == 2 and _TOPIC.fullmatch(name)), ZnodeReject.BAD_NAME)
        return NodeKind.DIRECTORY

    def decode_offset(self, path: Path, data: bytes) -> CommittedOffset:
        """The offset that the JSON holds; topic and partition must be those of the path."""
        _check(len(data) <= MAX_SPOUT_BYTES, ZnodeReject.TOO_LONG)
        try:
            value = msgspec.json.decode(data, type=_SpoutValue)
        except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
            raise BadZnode(ZnodeReject.BAD_JSON) from error
        _check(0 <= value.offset <= _MAX_OFFSET, ZnodeReject.BAD_OFFSET)
        _check(_TOPIC.fullmatch(value.topic), ZnodeReject.BAD_NAME)
        partition = _to_partition(path[-1].removeprefix(_PARTITION))
        is_same_topic = len(path) == 2 or path[1] == value.topic
        _check(is_same_topic and value.partition == partition, ZnodeReject.OTHER_NAME)
        return CommittedOffset(path[0], value.topic, partition, value.offset)


def decode_owner(data: bytes) -> str:
    """The id of a consumer, cut to a reasonable length."""
    return data[: 4 * MAX_OWNER_CHARS].decode("utf-8", "replace")[:MAX_OWNER_CHARS]


def children_of(layout: Layout, parent: Path, names: Iterable[str]) -> tuple[dict[str, NodeKind], list[str]]:
    """The children of a directory that are to be read, by name, and the names that should not be there."""
    kinds: dict[str, NodeKind] = {}
    rejected = []
    for name in names:
        try:
            kind = layout.kind_of((*parent, name))
        except BadZnode:
            rejected.append(name)
        else:
            if kind is not None:
                kinds[name] = kind
    return kinds, rejected


def _to_partition(name: str) -> int:
    # One partition has one name: 01 would be another znode for partition 1.
    _check(_NUMBER.fullmatch(name) and int(name) <= _MAX_PARTITION, ZnodeReject.BAD_NAME)
    return int(name)


def _check(is_good: object, reject: ZnodeReject) -> None:
    if not is_good:
        raise BadZnode(reject)
