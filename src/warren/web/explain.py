"""Warren's own answer about one group: the reasons of its verdicts, and where it commits."""

from collections.abc import Mapping
from typing import Annotated

import numpy as np
from msgspec import UNSET, Meta, Struct, UnsetType

from warren.domain.arrays import Ints
from warren.domain.offsets_logs import NO_LOG, zookeeper_log_id
from warren.domain.status import Status
from warren.snapshot.reader import Snapshot
from warren.snapshot.schemas import Row
from warren.snapshot.status import Complete, Slot, StatusName, TimeMs
from warren.snapshot.time_lag import TimeLag, to_time_lag
from warren.web.api import Api
from warren.web.go_json import to_number
from warren.web.groups import Head, LogStart, NamedGroup, Since, UnknownSince
from warren.web.http import Request, Response, known, success, to_answer
from warren.web.index import Index

MAX_PARTITION = 999_999_999
MAX_FAST_PARTITIONS = 10
"""How many partitions are explained while other clients wait."""
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
    index, cluster, group = api.index, request.params["cluster"], request.params["consumer"]
    group_row = index.known_group_row(cluster, group)
    has_window = bool(request.last("partition"))
    logs = {zookeeper_log_id(own.name): own.class_name for own in api.config.zookeeper_consumers.values()}
    details, first_row = index.details.of(group_row), int(index.first_row[group_row])
    explanations = []
    for row in _selected_rows(index, group_row, request).tolist():
        partition = {"cluster": cluster, **index.partition(row), **details.row(row - first_row)}
        explanations.append(_explain_partition(index.snapshot, partition, logs, has_window=has_window))
    number = {name: int(column[group_row]) for name, column in index.group_columns.items()}
    explanation = GroupExplanation(
        cluster=cluster,
        group=group,
        status=Status(number["status"]).name,
        since_ms=number["since_ms"],
        judged_at=index.snapshot.manifest.now_ms,
        unknown_since=known(number["unknown_since_ms"]),
        totallag=number["totallag"],
        time_lag=index.time_lag.at(group_row),
        commits_to=sorted({partition.commits_to for partition in explanations if partition.commits_to}),
        partitions=explanations,
    )
    return success(request, "consumer verdict explained", explanation=explanation)


def is_short_and_in_memory(api: Api, request: Request) -> bool:
    """Whether few partitions are to be explained and nothing needs to be read for that."""
    index = api.index
    group_row = index.group_row(request.params["cluster"], request.params["consumer"])
    if group_row is None:
        return True
    rows = _selected_rows(index, group_row, request)
    return rows.size <= MAX_FAST_PARTITIONS and index.details.are_in_memory(group_row)


def _selected_rows(index: Index, group_row: int, request: Request) -> Ints:
    """The rows of a group that are of the requested topic and partition."""
    rows = np.arange(*index.first_row[group_row : group_row + 2])
    number = request.integer("partition", MAX_PARTITION, minimum=0)
    if "topic" in request.query:
        rows = rows[index.codes["topic"][rows] == index.topic_code(request.last("topic"))]
    return rows if number is None else rows[index.columns["partition"][rows] == number]


def _explain_partition(
    snapshot: Snapshot, partition: Row, logs: Mapping[int, str], *, has_window: bool
) -> PartitionExplanation:
    return to_answer(
        PartitionExplanation,
        partition,
        status=Status(partition["status"]).name,
        reason=snapshot.reason(partition),
        complete=to_number(partition["complete"]),
        commits_to=_commits_to(partition["offsets_log"], logs),
        time_lag=to_time_lag(partition),
        window=_slots(partition) if has_window else UNSET,
        **{name: known(partition[name]) for name in _NUMBERS},
    )


def _slots(partition: Row) -> list[Slot]:
    """The slots of a partition's window, oldest first."""
    commits = zip(partition["offsets"], partition["times_ms"], partition["lags"], strict=True)
    return [Slot(offset, at_ms, at_ms // 1000 * 1000, known(lag)) for offset, at_ms, lag in commits]


def _commits_to(log: int, logs: Mapping[int, str]) -> str | None:
    return None if log == NO_LOG else logs.get(log, "kafka")
