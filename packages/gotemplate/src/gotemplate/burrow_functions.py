"""The functions that Burrow gives to its templates, in addition to the standard ones."""

from gotemplate.burrow import PartitionResult, StatusConstant
from gotemplate.clock import Time, quotient
from gotemplate.encoding import encoded
from gotemplate.errors import CallError
from gotemplate.functions import functions_of
from gotemplate.types import Int64, Kind, Uint64, wrap
from gotemplate.values import Value

_COUNTED = {2: "warn", 4: "stop", 5: "stall", 6: "rewind"}


def _json(value: Value) -> str:
    """A value in JSON, or nothing when it cannot be written so."""
    try:
        return encoded(value)
    except (CallError, ArithmeticError, ValueError):
        return ""


def _topics_by_status(partitions: tuple[PartitionResult, ...]) -> dict[str, tuple[str, ...]]:
    """The topics that have partitions of a status, each once; Burrow leaves their order to chance."""
    topics: dict[str, set[str]] = {}
    for partition in partitions or ():
        topics.setdefault(StatusConstant(partition.Status).String(), set()).add(partition.Topic)
    return {status: tuple(sorted(names)) for status, names in topics.items()}


def _partition_counts(partitions: tuple[PartitionResult, ...]) -> dict[str, int]:
    """How many partitions are in trouble, by the kind of trouble."""
    counts = dict.fromkeys([*_COUNTED.values(), "unknown"], 0)
    for partition in partitions or ():
        if partition.Status != StatusConstant.OK:
            counts[_COUNTED.get(partition.Status, "unknown")] += 1
    return counts


def _add(first: int, second: int) -> int:
    return first + second


def _minus(first: int, second: int) -> int:
    return first - second


def _multiply(first: int, second: int) -> int:
    return first * second


def _divide(first: int, second: int) -> int:
    return quotient(first, second)


def _maximum_lag(partition: PartitionResult | None) -> Uint64:
    return partition.CurrentLag if partition else 0


def _format_timestamp(timestamp: Int64, layout: str) -> str:
    """A time in milliseconds in a layout, in the zone of this machine."""
    return Time(wrap(Kind.INT64, timestamp * 1_000_000)).Format(layout)


HELPERS = functions_of(
    {
        "jsonencoder": _json,
        "topicsbystatus": _topics_by_status,
        "partitioncounts": _partition_counts,
        "add": _add,
        "minus": _minus,
        "multiply": _multiply,
        "divide": _divide,
        "maxlag": _maximum_lag,
        "formattimestamp": _format_timestamp,
    }
)
