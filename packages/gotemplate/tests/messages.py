"""Messages and other data of the tests, from JSON that Go reads as well."""

from typing import Any

from gotemplate.burrow import KnownLag, Message, Offset, PartitionResult, Result, StatusConstant
from gotemplate.clock import ZERO_TIME, Time


def to_data(data: Any) -> Any:
    """Data with its times, or a message."""
    match data:
        case {"$message": message}:
            return to_message(message)
        case {"$time": parts}:
            return to_time(parts)
        case dict():
            return {key: to_data(value) for key, value in data.items()}
        case list():
            return [to_data(value) for value in data]
    return data


def to_time(parts: list[Any]) -> Time:
    return Time(*parts) if parts else ZERO_TIME


def to_message(data: dict[str, Any]) -> Message:
    result = data["Result"]
    partitions = tuple(to_partition(partition) for partition in result["partitions"])
    return Message(
        Cluster=data["Cluster"],
        Group=data["Group"],
        ID=data["ID"],
        Start=to_time(data["Start"]),
        Extras=data["Extras"],
        Result=Result(
            Cluster=result["cluster"],
            Group=result["group"],
            Status=StatusConstant(result["status"]),
            Complete=result["complete"],
            Partitions=partitions,
            TotalPartitions=result["partition_count"],
            Maxlag=result["maxlag"] and to_partition(result["maxlag"]),
            TotalLag=result["totallag"],
        ),
    )


def to_partition(data: dict[str, Any]) -> PartitionResult:
    return PartitionResult(
        Topic=data["topic"],
        Partition=data["partition"],
        Owner=data["owner"],
        ClientID=data["client_id"],
        Status=StatusConstant(data["status"]),
        Start=data["start"] and to_offset(data["start"]),
        End=data["end"] and to_offset(data["end"]),
        CurrentLag=data["current_lag"],
        Complete=data["complete"],
    )


def to_offset(data: dict[str, Any]) -> Offset:
    return Offset(
        Offset=data["offset"],
        Timestamp=data["timestamp"],
        ObservedTimestamp=data["observedAt"],
        Lag=None if data["lag"] is None else KnownLag(data["lag"]),
    )
