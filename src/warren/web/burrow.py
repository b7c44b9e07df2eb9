"""Burrow's own paths: clusters, topics, and consumer groups with their windows and verdicts."""

import logging
from typing import Annotated, Any

import numpy as np
from msgspec import Meta, Struct

from warren.domain.windows import UNKNOWN
from warren.errors import RequestError
from warren.snapshot.requests import RequestKind
from warren.snapshot.status import Slot
from warren.web.api import Api
from warren.web.go_json import dumps
from warren.web.http import HOST, Request, RequestInfo, Response, known, success
from warren.web.status_json import group_status, not_found

log = logging.getLogger(__name__)


class PartitionWindow(Struct, rename={"current_lag": "current-lag"}):
    """The window of a group's commits to a partition."""

    offsets: Annotated[list[Slot | None], Meta(description="Oldest first; null where the window is not filled")]
    owner: str
    client_id: str
    current_lag: int


_NO_WINDOW = PartitionWindow([], "", "", 0)


def clusters(api: Api, request: Request) -> Response:
    """List the clusters."""
    return success(request, "cluster list returned", clusters=sorted(api.config.clusters))


def topics(api: Api, request: Request) -> Response:
    """List the topics of a cluster."""
    layout = api.index.topics.get(api.cluster_of(request))
    return success(request, "topic list returned", topics=layout.names if layout else [])


def topic(api: Api, request: Request) -> Response:
    """Get the heads of a topic's partitions."""
    cluster = request.params["cluster"]
    rows = api.index.head_rows(cluster, request.params["topic"])
    if rows is None or cluster not in api.config.clusters:
        raise RequestError("cluster or topic not found", 404)
    heads = api.index.heads[rows]
    return success(request, "topic offsets returned", offsets=np.where(heads == UNKNOWN, 0, heads).tolist())


def topic_consumers(api: Api, request: Request) -> Response:
    """List the groups that consume a topic."""
    names = api.index.consumers_of(api.cluster_of(request), request.params["topic"])
    return success(request, "consumers of topic returned", consumers=names)


def consumers(api: Api, request: Request) -> Response:
    """List the groups of a cluster."""
    names = list(api.index.groups.get(api.cluster_of(request), {}))
    return success(request, "consumer list returned", consumers=names)


def consumer(api: Api, request: Request) -> Response:
    """Get the windows of a group."""
    index, cluster, group = api.index, request.params["cluster"], request.params["consumer"]
    _, partitions = index.read_group(cluster, group)
    # Partitions of these topics that the group never committed to are listed as well.
    sizes = index.topic_sizes(index.groups[cluster][group])
    topics: dict[str, list[PartitionWindow]] = {}
    for row in partitions.to_pylist():
        windows = topics.setdefault(row["topic"], [_NO_WINDOW] * sizes.get(row["topic"], 0))
        windows.extend([_NO_WINDOW] * (row["partition"] + 1 - len(windows)))
        windows[row["partition"]] = _window(row, index.snapshot.manifest.intervals)
    return success(request, "consumer detail returned", topics=topics)


def _window(row: dict[str, Any], intervals: int) -> PartitionWindow:
    """A window, padded with nulls as Burrow's rings are."""
    slots = window_slots(row)
    padded = [*[None] * (intervals - len(slots)), *slots] if slots else []
    return PartitionWindow(padded, row["owner"] or "", row["client_id"] or "", max(row["current_lag"], 0))


def window_slots(row: dict[str, Any]) -> list[Slot]:
    """The slots of a partition's window, oldest first."""
    commits = zip(row["offsets"], row["times_ms"], row["lags"], strict=True)
    return [Slot(offset, at_ms, at_ms // 1000 * 1000, known(lag)) for offset, at_ms, lag in commits]


def status(api: Api, request: Request) -> Response:
    """Get the verdict on a group, with the partitions that are not OK."""
    return _status(api, request, show_all=False)


def lag(api: Api, request: Request) -> Response:
    """Get the verdict on a group, with all its partitions."""
    return _status(api, request, show_all=True)


def _status(api: Api, request: Request, *, show_all: bool) -> Response:
    cluster, group = request.params["cluster"], request.params["consumer"]
    group_row = api.index.group_row(cluster, group)
    shown = not_found(cluster, group) if group_row is None else group_status(api.index, group_row, show_all=show_all)
    # The status is large, and escaped already.
    body = b'{"error":false,"message":"consumer status returned","status":%b,"request":%b}' % (
        shown,
        dumps(RequestInfo(request.path, HOST)),
    )
    return Response(404 if group_row is None else 200, body)


def delete(api: Api, request: Request) -> Response:
    """Forget a group, or one topic of it, until it commits again."""
    cluster, group, topic = request.params["cluster"], request.params["consumer"], request.params.get("topic")
    if cluster in api.config.clusters and _has(api, cluster, group, topic):
        api.requests.ask(RequestKind.DELETE, api.clock_ms(), cluster=cluster, group=group, topic=topic)
        log.info("deletion requested: group %s%s of cluster %s", group, f", topic {topic}" if topic else "", cluster)
        api.follower.poll()
    return success(request, "consumer group removed")


def _has(api: Api, cluster: str, group: str, topic: str | None) -> bool:
    """Whether the newest snapshot has a group, or a topic of it; deletions of anything else would only pile up."""
    group_row = api.index.group_row(cluster, group)
    if group_row is not None:
        return topic is None or topic in api.index.topic_sizes(group_row)
    # A group whose deletion waits is hidden, and may have committed since: the later deletion counts.
    subject = (RequestKind.DELETE, cluster, group, None)
    return any(pending.subject == subject for pending in api.requests.pending())
