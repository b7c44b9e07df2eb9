"""Warren's own answer about one group: the reasons of its verdicts, and where it commits."""

from collections.abc import Mapping
from typing import Annotated, Any

import pyarrow.compute as pc
from msgspec import UNSET, Meta, Struct, UnsetType

from warren.domain.offsets_logs import NO_LOG, zookeeper_log_id
from warren.domain.status import Status
from warren.snapshot.reader import Snapshot
from warren.snapshot.status import Complete, Slot, StatusName, TimeMs
from warren.snapshot.time_lag import TimeLag, to_time_lag
from warren.web.api import Api
from warren.web.burrow import window_slots
from warren.web.go_json import to_number
from warren.web.groups import Head, LogStart, NamedGroup, Since, UnknownSince
from warren.web.http import Request, Response, known, success, to_answer

MAX_PARTITION = 999_999_999
_NUMBERS = ("committed_offset", "head", "head_ms", "log_start", "current_lag")

CommitsTo = Annotated[
    str | None, Meta(description="kafka, kafka_zk or storm_zk: the class of its consumer section; null before a commit")
]


class PartitionExplanation(Struct, rename={"since_ms": "since", "committed_offset": "committed", "head_ms": "head_at"}):
    """A partition with the reason of its status."""

    topic: str
    partition: int
    owner: str
    client_id: str
    status: StatusName
    since_ms: Since
    reason: str
    committed_offset: Annotated[int | None, Meta(description="Last committed offset; null if none was seen")]
    head: Head
    head_ms: Annotated[int | None, Meta(description="When the head was sampled; null if unknown")]
    log_start: LogStart
    current_lag: Annotated[int | None, Meta(description="Lag behind the head; null if unknown")]
    complete: Complete
    commits_to: CommitsTo
    time_lag: TimeLag
    window: Annotated[list[Slot] | UnsetType, Meta(description="Only if one partition is requested")] = UNSET


class GroupExplanation(NamedGroup, rename={"since_ms": "since"}):
    """A group with the reason of the status of each partition."""

    since_ms: Since
    judged_at: TimeMs
    unknown_since: UnknownSince
    totallag: int
    time_lag: TimeLag
    commits_to: Annotated[list[str], Meta(description="The classes of the consumer sections of its partitions")]
    partitions: list[PartitionExplanation]


def explain(api: Api, request: Request) -> Response:
    """Get the reason for the verdict on each partition of a group."""
    cluster, group = request.params["cluster"], request.params["consumer"]
    number = request.integer("partition", MAX_PARTITION, minimum=0)
    index = api.index
    snapshot, (row, partitions) = index.snapshot, index.read_group(cluster, group)
    if "topic" in request.query:
        partitions = partitions.filter(pc.equal(partitions["topic"], request.last("topic")))
    if number is not None:
        partitions = partitions.filter(pc.equal(partitions["partition"], number))
    logs = {zookeeper_log_id(own.name): own.class_name for own in api.config.zookeeper_consumers.values()}
    explanations = [
        _explain_partition(snapshot, partition, logs, has_window=number is not None)
        for partition in partitions.to_pylist()
    ]
    explanation = to_answer(
        GroupExplanation,
        row,
        status=Status(row["status"]).name,
        judged_at=snapshot.manifest.now_ms,
        unknown_since=known(row["unknown_since_ms"]),
        time_lag=to_time_lag(row),
        commits_to=sorted({partition.commits_to for partition in explanations if partition.commits_to}),
        partitions=explanations,
    )
    return success(request, "consumer verdict explained", explanation=explanation)


def _explain_partition(
    snapshot: Snapshot, partition: dict[str, Any], logs: Mapping[int, str], *, has_window: bool
) -> PartitionExplanation:
    return to_answer(
        PartitionExplanation,
        partition,
        owner=partition["owner"] or "",
        client_id=partition["client_id"] or "",
        status=Status(partition["status"]).name,
        reason=snapshot.reason(partition),
        complete=to_number(partition["complete"]),
        commits_to=_commits_to(partition["offsets_log"], logs),
        time_lag=to_time_lag(partition),
        window=window_slots(partition) if has_window else UNSET,
        **{name: known(partition[name]) for name in _NUMBERS},
    )


def _commits_to(log: int, logs: Mapping[int, str]) -> str | None:
    return None if log == NO_LOG else logs.get(log, "kafka")
