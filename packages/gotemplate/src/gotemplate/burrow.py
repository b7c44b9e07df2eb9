"""The message that Burrow gives to its templates: a group's status, with Burrow's field names."""
# ruff: noqa: N802 - the methods have Go's names

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from gotemplate.clock import Time
from gotemplate.types import Float32, Int32, Int64, Integer, Struct, Uint64

_WORDS = ("NOTFOUND", "OK", "WARN", "ERR", "STOP", "STALL", "REWIND")


def _json(name: str | None) -> dict[str, str | None]:
    """A field's name in JSON; without a name the field is left out."""
    return {"json": name}


class StatusConstant(Integer):
    """A status that compares as its number and prints as its name."""

    go_name: ClassVar[str] = "protocol.StatusConstant"
    OK: ClassVar[int] = 1

    def String(self) -> str:
        return _WORDS[self] if 0 <= self < len(_WORDS) else "UNKNOWN"

    def json_value(self) -> str:
        return self.String()


@dataclass(frozen=True, slots=True)
class KnownLag(Struct):
    """A lag that is known; an unknown lag is None."""

    Value: Uint64

    go_name: ClassVar[str] = "protocol.Lag"

    def json_value(self) -> int:
        return self.Value


@dataclass(frozen=True, slots=True, kw_only=True)
class Offset(Struct):
    """One commit of a window."""

    Offset: Int64 = field(metadata=_json("offset"))
    Order: Int64 = field(default=0, metadata=_json(None))
    Timestamp: Int64 = field(metadata=_json("timestamp"))
    ObservedTimestamp: Int64 = field(metadata=_json("observedAt"))
    Lag: KnownLag | None = field(metadata=_json("lag"))

    go_name: ClassVar[str] = "protocol.ConsumerOffset"


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionResult(Struct):
    """The verdict on a partition, with the first and last commit of its window."""

    Topic: str = field(metadata=_json("topic"))
    Partition: Int32 = field(metadata=_json("partition"))
    Owner: str = field(metadata=_json("owner"))
    ClientID: str = field(metadata=_json("client_id"))
    Status: StatusConstant = field(metadata=_json("status"))
    Start: Offset | None = field(metadata=_json("start"))
    End: Offset | None = field(metadata=_json("end"))
    CurrentLag: Uint64 = field(metadata=_json("current_lag"))
    Complete: Float32 = field(metadata=_json("complete"))

    go_name: ClassVar[str] = "protocol.PartitionStatus"


@dataclass(frozen=True, slots=True, kw_only=True)
class Result(Struct):
    """The verdict on a group."""

    Cluster: str = field(metadata=_json("cluster"))
    Group: str = field(metadata=_json("group"))
    Status: StatusConstant = field(metadata=_json("status"))
    Complete: Float32 = field(metadata=_json("complete"))
    Partitions: tuple[PartitionResult, ...] = field(metadata=_json("partitions"))
    TotalPartitions: int = field(metadata=_json("partition_count"))
    Maxlag: PartitionResult | None = field(metadata=_json("maxlag"))
    TotalLag: Uint64 = field(metadata=_json("totallag"))

    go_name: ClassVar[str] = "protocol.ConsumerGroupStatus"


@dataclass(frozen=True, slots=True, kw_only=True)
class Message(Struct):
    """All that a template can speak of: the incident and the group's result."""

    Cluster: str
    Group: str
    ID: str
    Start: Time
    Extras: Mapping[str, str]
    Result: Result

    go_name: ClassVar[str] = (
        "struct { Cluster string; Group string; ID string; Start time.Time; Extras map[string]string; "
        "Result protocol.ConsumerGroupStatus }"
    )
