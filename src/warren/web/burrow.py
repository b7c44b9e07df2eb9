"""Burrow's own paths: clusters, topics, and consumer groups with their windows and verdicts."""

import logging

import numpy as np

from warren.domain.windows import UNKNOWN
from warren.errors import RequestError
from warren.snapshot.requests import RequestKind
from warren.web.api import Api
from warren.web.go_json import dumps
from warren.web.http import HOST, Request, RequestInfo, Response, success
from warren.web.status_json import group_status, not_found
from warren.web.windows import group_windows

log = logging.getLogger(__name__)


MAX_FAST_PARTITIONS = 500
"""How many windows are built while other clients wait."""


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
    index = api.index
    group_row = index.known_group_row(request.params["cluster"], request.params["consumer"])
    # The windows are large, and escaped already.
    body = b'{"error":false,"message":"consumer detail returned","topics":{%b},"request":%b}' % (
        group_windows(index, group_row),
        dumps(RequestInfo(request.path, HOST)),
    )
    return Response(200, body)


def has_windows_in_memory(api: Api, request: Request) -> bool:
    """Whether the windows of a group can be given at once."""
    index = api.index
    group_row = index.group_row(request.params["cluster"], request.params["consumer"])
    if group_row is None:
        return True
    is_small = index.group_columns["partitions"][group_row] <= MAX_FAST_PARTITIONS
    return bool(is_small) and index.details.are_in_memory(group_row)


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
