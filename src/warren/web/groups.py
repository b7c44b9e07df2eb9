"""Warren's own answers about groups: all groups in columns, all groups of a cluster, and the reasons of verdicts."""

import threading
from collections.abc import Iterator
from typing import Annotated
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import UNSET, Meta, Struct, UnsetType

from warren.domain.arrays import Ints
from warren.domain.matching import MAX_STARS, matches_wildcards
from warren.domain.status import Status
from warren.errors import RequestError
from warren.snapshot.status import StatusName
from warren.snapshot.time_lag import (
    BehindMethod,
    CatchUpAtMost,
    CatchUpSeconds,
    IsFallingBehind,
    LostMessages,
    OldestUnreadAge,
    RetentionLeft,
    SecondsBehind,
)
from warren.web.api import Api
from warren.web.go_json import dumps
from warren.web.http import HOST, CachedBody, Request, RequestInfo, Response, known, to_answer
from warren.web.index import Index

MAX_GROUPS = 1_000_000
_LAG_PARAMETERS = ("status", "group", "partitions", "limit", "after")
_STATUS_NAMES = [status.name for status in Status]


Since = Annotated[int, Meta(description="When the status began, in milliseconds since 1970")]
UnknownSince = Annotated[int | None, Meta(description="Since when it cannot be judged; null if it can")]
Growth = Annotated[float | None, Meta(description="Growth of the lag in messages per second; null if unknown")]
Head = Annotated[int | None, Meta(description="Log end offset; null if unknown")]
LogStart = Annotated[int | None, Meta(description="First offset of the log; null if unknown")]
StatusCounts = dict[StatusName, int]
GroupCounts = Annotated[StatusCounts, Meta(description="Number of groups by status")]
WorstStatus = Annotated[StatusName, Meta(description="The most severe status of its groups")]
_CLUSTER_NAMES = {"worst_status": "status", "groups_by_status": "groups", "partitions_by_status": "partitions"}
_STATE_NAMES = {"unknown_since_ms": "unknown_since", "error": "error_message", "is_catching_up": "catching_up"}


class NamedGroup(Struct):
    """A group and its status."""

    cluster: str
    group: str
    status: StatusName


class GroupColumns(Struct):
    """Groups of all clusters; one list per column, one item per group."""

    sequence: Annotated[int | None, Meta(description="The snapshot's number")]
    judged_at: int | None
    clusters: Annotated[list[str], Meta(description="Names of the clusters")]
    cluster: Annotated[list[int], Meta(description="Positions in `clusters`")]
    group: list[str]
    status: list[StatusName]
    totallag: list[int]
    maxlag: list[int]
    since: list[Since]
    unknown_since: list[UnknownSince]
    partitions: Annotated[list[int], Meta(description="Number of partitions")]
    growth: list[Growth]
    spark: Annotated[list[str], Meta(description="Lag of the last hour, one character from 0 to Z per point")]
    seconds_behind: list[SecondsBehind]
    seconds_behind_method: list[BehindMethod]
    oldest_unread_age_seconds: list[OldestUnreadAge]
    catch_up_seconds: list[CatchUpSeconds]
    catch_up_seconds_at_most: list[CatchUpAtMost]
    is_falling_behind: list[IsFallingBehind]
    retention_left_seconds: list[RetentionLeft]
    lost_messages: list[LostMessages]


def all_groups(api: Api, request: Request) -> Response:
    """List all groups of all clusters, one list per column."""
    topic = request.last("topic")
    body = CachedBody.of(_columns(api.index, topic)) if topic else _all_columns(api.index)
    return body.response(request, headers=(("Cache-Control", "no-cache"),))


_all_groups: WeakKeyDictionary[Index, CachedBody] = WeakKeyDictionary()
_building = threading.Lock()


def _all_columns(index: Index) -> CachedBody:
    """The answer with every group, built by the first of the clients that wait for it."""
    with _building:
        if index not in _all_groups:
            _all_groups[index] = CachedBody.of(_columns(index))
        return _all_groups[index]


def _columns(index: Index, topic: str = "") -> bytes:
    """The answer with every group, or with those that consume a topic."""
    columns, recent, manifest = index.group_columns, index.recent, index.snapshot.manifest
    rows = index.group_rows_of(topic) if topic else np.arange(len(index.group_names))
    now_ms, lag, time_lag = manifest.now_ms, columns["totallag"], index.time_lag
    groups = GroupColumns(
        sequence=manifest.sequence or None,
        judged_at=now_ms or None,
        clusters=index.clusters,
        cluster=index.group_cluster[rows].tolist(),
        group=index.group_names.take(pa.array(rows)).to_pylist(),
        status=[_STATUS_NAMES[code] for code in columns["status"][rows].tolist()],
        totallag=lag[rows].tolist(),
        maxlag=columns["maxlag"][rows].tolist(),
        since=columns["since_ms"][rows].tolist(),
        unknown_since=[known(since_ms) for since_ms in columns["unknown_since_ms"][rows].tolist()],
        partitions=index.partition_count[rows].tolist(),
        growth=np.round(recent.growth(lag, now_ms)[rows], 2).tolist(),
        spark=recent.sparklines(lag, now_ms).take(pa.array(rows)).to_pylist(),
        seconds_behind=time_lag.seconds_behind[rows].tolist(),
        seconds_behind_method=time_lag.method_names(rows),
        oldest_unread_age_seconds=time_lag.oldest_unread_age_seconds[rows].tolist(),
        catch_up_seconds=time_lag.catch_up_seconds[rows].tolist(),
        catch_up_seconds_at_most=time_lag.catch_up_seconds_at_most[rows].tolist(),
        is_falling_behind=time_lag.is_falling_behind[rows].tolist(),
        retention_left_seconds=time_lag.retention_left_seconds[rows].tolist(),
        lost_messages=time_lag.lost_messages[rows].tolist(),
    )
    info = RequestInfo("/v3/groups", HOST)
    return dumps({"error": False, "message": "groups returned", "groups": groups, "request": info})


class UnreadPartition(Struct):
    """An offsets partition that cannot be read up to its end, so that the groups that commit to it are unknown."""

    topic: str
    partition: int
    since: Annotated[int, Meta(description="Up to when all of its commits have been read")]
    held_by_transaction: Annotated[bool, Meta(description="Whether an open transaction holds it back")]
    has_leader: Annotated[bool, Meta(description="Whether a leader answers for it")]
    transactional_id: Annotated[
        str | None, Meta(description="Its transactional id; null if the brokers do not tell it")
    ]


class ZooKeeperSection(Struct, rename={"error": "error_message"}):
    """A consumer section whose groups commit to ZooKeeper."""

    name: str
    unknown_since: UnknownSince
    error: Annotated[str | None, Meta(description="Why ZooKeeper cannot be read; null if it can")]
    znodes: Annotated[int, Meta(description="Number of znodes that are watched")]
    pending: Annotated[int, Meta(description="Number of znodes that have changed and are not read yet")]
    requests: Annotated[int, Meta(description="Number of requests to the ensemble since the reader was started")]


class ClusterSummary(Struct, rename=_CLUSTER_NAMES | _STATE_NAMES):
    """A cluster as a whole; fields that are not required are missing until it is judged for the first time."""

    name: str
    worst_status: WorstStatus
    totallag: int
    groups_by_status: GroupCounts
    partitions_by_status: Annotated[StatusCounts, Meta(description="Number of partitions by status")]
    unknown_since_ms: UnknownSince | UnsetType = UNSET
    error: Annotated[str | UnsetType | None, Meta(description="Why the cluster cannot be judged")] = UNSET
    is_catching_up: Annotated[bool | UnsetType, Meta(description="Whether old commits are still being read")] = UNSET
    judged_at: int | UnsetType | None = UNSET
    hidden_topics: Annotated[int | UnsetType, Meta(description="Number of topics that Warren may no longer see")] = (
        UNSET
    )
    missing_right: Annotated[
        str | UnsetType | None, Meta(description="Which right Warren lacks on the hidden topics")
    ] = UNSET
    absent_offsets_topics: Annotated[
        tuple[str, ...] | UnsetType, Meta(description="Offsets topics that do not exist, as before the first commit")
    ] = UNSET
    unknown_groups: Annotated[int | UnsetType, Meta(description="Number of groups that cannot be judged")] = UNSET
    unread: Annotated[
        list[UnreadPartition] | UnsetType, Meta(description="Offsets partitions that cannot be read up to their end")
    ] = UNSET
    zookeeper: Annotated[
        list[ZooKeeperSection] | UnsetType, Meta(description="Consumer sections that commit to ZooKeeper")
    ] = UNSET


def cluster_lag(api: Api, request: Request) -> Response:
    """List the groups of a cluster with their status: filtered, paged, and sent while it is produced."""
    index, cluster = api.index, api.cluster_of(request)
    selected = _select(index, cluster, request)
    partitions = request.last("partitions", "bad")
    if partitions not in ("bad", "all"):
        raise RequestError(f"partitions must be bad or all, not {partitions[:20]!r}")
    page = selected[: request.integer("limit", MAX_GROUPS)]
    head = {
        "error": False,
        "message": "consumer group lags returned",
        "cluster": cluster_summary(index, cluster),
        "total": int(selected.size),
        "next": index.group_names[int(page[-1])].as_py() if page.size and page.size < selected.size else None,
    }
    return Response(200, _parts(index, page, head, request.path, show_all=partitions == "all"))


def _parts(index: Index, page: Ints, head: object, path: str, *, show_all: bool) -> Iterator[bytes | memoryview]:
    yield dumps(head)[:-1] + b',"groups":['
    yield from index.status_json.parts(page, show_all=show_all)
    yield b'],"request":' + dumps(RequestInfo(path, HOST)) + b"}"


def _select(index: Index, cluster: str, request: Request) -> Ints:
    """The group rows that match the parameters, in the order of the groups' names."""
    rows = np.fromiter(index.groups.get(cluster, {}).values(), np.int64)
    unknown = set(request.query) - set(_LAG_PARAMETERS)
    if unknown:
        raise RequestError(f"unknown parameter {min(unknown)}; known are {', '.join(_LAG_PARAMETERS)}")
    statuses = [word.upper() for value in request.query.get("status", ()) for word in value.split(",") if word]
    for status in statuses:
        if status not in ("OK", "WARN", "ERR"):
            raise RequestError(f"unknown status {status}: the status of a group is OK, WARN or ERR")
    if statuses:
        rows = rows[np.isin(index.group_columns["status"][rows], [int(Status[status]) for status in statuses])]
    patterns = request.query.get("group", ())
    if sum(pattern.count("*") for pattern in patterns) > MAX_STARS:
        raise RequestError(f"group may have at most {MAX_STARS} *")
    if patterns:
        names = index.group_names.take(pa.array(rows))
        rows = rows[np.logical_or.reduce([matches_wildcards(names, pattern) for pattern in patterns])]
    if rows.size and (after := request.last("after")):
        rows = rows[np.asarray(pc.greater(index.group_names.take(pa.array(rows)), after))]
    return rows


def cluster_summary(index: Index, cluster: str) -> ClusterSummary:
    """A cluster as a whole: its status, its lag, and the numbers of groups and partitions by status."""
    state = index.snapshot.manifest.clusters.get(cluster)
    if state is None:
        return ClusterSummary(cluster, Status.NOTFOUND.name, 0, {}, {})
    now_ms = index.snapshot.manifest.now_ms
    unread = [
        UnreadPartition(
            topic,
            partition,
            since=since_ms,
            held_by_transaction=position.stuck_since_ms is not None,
            transactional_id=position.held_by,
            has_leader=not position.is_away,
        )
        for topic, source in sorted(state.sources.items())
        for partition, position in sorted(source.positions.items())
        if (since_ms := position.unknown_since(now_ms)) is not None
    ]
    zookeeper = [
        to_answer(ZooKeeperSection, own, name=name, unknown_since=own.unknown_since(now_ms))
        for name, own in sorted(state.zookeeper.items())
    ]
    counts = {"unknown_groups": index.unknown_groups(cluster), "unread": unread, "zookeeper": zookeeper}
    return to_answer(ClusterSummary, state, name=cluster, judged_at=now_ms, **counts)


def group_answer(index: Index, group_row: int) -> dict[str, str]:
    """A group's names and status."""
    cluster, group = index.group_key(group_row)
    return {"cluster": cluster, "group": group, "status": Status(index.group_columns["status"][group_row]).name}
