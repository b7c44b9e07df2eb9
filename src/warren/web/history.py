"""Lag and verdicts over time, from the built-in history."""

from typing import Annotated

from msgspec import Meta, Struct

from warren.domain.status import Status
from warren.errors import RequestError
from warren.history.read import cluster_history, group_history
from warren.snapshot.status import StatusName, TimeMs
from warren.snapshot.time_lag import SecondsBehind, known_or_none
from warren.web.api import Api
from warren.web.groups import GroupCounts, Since, WorstStatus
from warren.web.http import Request, Response, success, to_answer

MAX_HOURS = 24 * 3_650
_GROUP_NAMES = {"time_ms": "time", "worst_status": "worst", "since_ms": "since", "is_known": "known"}


class ClusterHistoryColumns(Struct):
    """All clusters over time; one list per column, one item per cluster and time."""

    time_ms: list[TimeMs]
    cluster: list[str]
    worst_status: Annotated[list[int], Meta(description="Burrow's status numbers")]
    is_known: list[bool]
    totallag: list[int]
    groups_ok: list[int]
    groups_warn: list[int]
    groups_err: list[int]


class ClusterHistoryPoint(Struct, rename={"time_ms": "time", "worst_status": "status", "is_known": "known"}):
    """A cluster at one time."""

    time_ms: TimeMs
    worst_status: WorstStatus
    is_known: Annotated[bool, Meta(description="Whether the cluster could be judged")]
    totallag: int
    groups: GroupCounts


class GroupHistoryPoint(Struct, rename=_GROUP_NAMES):
    """A group at one time."""

    time_ms: TimeMs
    status: StatusName
    worst_status: Annotated[StatusName, Meta(description="The most severe status of its partitions")]
    since_ms: Since
    totallag: int
    maxlag: int
    seconds_behind: SecondsBehind
    is_known: Annotated[bool, Meta(description="Whether the group could be judged; if not, this is its last verdict")]


def all_clusters(api: Api, request: Request) -> Response:
    """Get the lag and the numbers of groups by verdict of every cluster over time, one list per column."""
    table = cluster_history(api.data_dir, None, _since_ms(api, request))
    columns = ClusterHistoryColumns(**{name: table[name].to_pylist() for name in table.schema.names})
    return success(request, "history returned", history=columns)


def cluster(api: Api, request: Request) -> Response:
    """Get the lag and the numbers of groups by verdict of a cluster over time."""
    rows = cluster_history(api.data_dir, api.cluster_of(request), _since_ms(api, request)).to_pylist()
    points = [
        to_answer(
            ClusterHistoryPoint,
            row,
            worst_status=Status(row["worst_status"]).name,
            groups={status: row[f"groups_{status.lower()}"] for status in ("OK", "WARN", "ERR")},
        )
        for row in rows
    ]
    return success(request, "cluster history returned", history=points)


def group(api: Api, request: Request) -> Response:
    """Get the lag and verdict of a group over time: one point per trigger, fewer for hours and days ago."""
    cluster, group = request.params["cluster"], request.params["consumer"]
    rows = group_history(api.data_dir, cluster, group, _since_ms(api, request)).to_pylist()
    if not rows and api.index.group_row(cluster, group) is None:
        raise RequestError("cluster or consumer not found", 404)
    points = [
        to_answer(
            GroupHistoryPoint,
            row,
            is_known=row["is_known"] is not False,
            seconds_behind=None if row["seconds_behind"] is None else known_or_none(row["seconds_behind"]),
            **{name: Status(row[name]).name for name in ("status", "worst_status")},
        )
        for row in rows
    ]
    return success(request, "consumer history returned", history=points)


def _since_ms(api: Api, request: Request) -> int:
    return api.clock_ms() - (request.integer("hours", MAX_HOURS) or 1) * 3_600_000
