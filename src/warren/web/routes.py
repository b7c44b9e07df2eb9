"""Every path of the API in the order of the documentation, with the types of its answer."""

from collections.abc import Callable

from warren.snapshot.status import GroupStatus
from warren.web import (
    admin,
    assets,
    burrow,
    config,
    groups,
    history,
    incidents,
    metrics,
    overview,
    silences,
    sinks,
    topics,
)
from warren.web.answers.clusters import (
    ClusterHistoryColumns,
    ClusterHistoryPoint,
    ClusterSummary,
    LeadershipSummary,
    Overview,
    SinkSummary,
)
from warren.web.answers.config import GENERAL, HTTP_SERVER, LOGGING, MODULES, ZOOKEEPER
from warren.web.answers.groups import GroupColumns, GroupExplanation, GroupHistoryPoint, PartitionWindow, TopicDetail
from warren.web.answers.incidents import IncidentDetail, IncidentSummary, NotifierSummary, SilenceSummary
from warren.web.api import Api
from warren.web.go_json import dumps
from warren.web.http import Endpoint, Fields, Handler, Request, Response
from warren.web.openapi import document
from warren.web.page import PAGE, PAGE_POLICY

Answer = Callable[[Api, Request], Response]


def openapi(_api: Api, _request: Request) -> Response:
    """Get the OpenAPI description of this API."""
    return Response(200, dumps(document(ROUTES)))


def docs(_api: Api, _request: Request) -> Response:
    """Get a page to browse this API with."""
    return Response(200, PAGE.encode(), "text/html; charset=utf-8", (("Content-Security-Policy", PAGE_POLICY),))


def _get(
    path: str, answer: Answer, fields: Fields | None = None, *, is_cached: bool = False, is_slow: bool = False
) -> Endpoint:
    return Endpoint(path, {"GET": Handler(answer, fields, is_cached=is_cached, is_slow=is_slow)})


def _public(path: str, answer: Answer) -> Endpoint:
    return Endpoint(path, {"GET": Handler(answer, is_public=True)})


def _admin(answer: Answer, fields: Fields) -> Handler:
    return Handler(answer, fields, is_admin=True, is_slow=True)


_CLUSTER = "/v3/kafka/{cluster}"
_TOPIC = f"{_CLUSTER}/topic/{{topic}}"
_CONSUMER = f"{_CLUSTER}/consumer/{{consumer}}"

_MAIN_CONFIG = {
    "general": GENERAL,
    "logging": LOGGING,
    "zookeeper": ZOOKEEPER,
    "httpserver": dict[str, HTTP_SERVER],  # type: ignore[valid-type]
}
_MODULE_LIST = {"coordinator": str, "modules": list[str]}

ROUTES = [
    _public("/burrow/admin", admin.alive),
    _public("/burrow/admin/ready", admin.ready),
    _get("/metrics", metrics.metrics, is_slow=True),
    _get("/openapi.json", openapi),
    _get("/docs", docs),
    _get("/", assets.home, is_slow=True),
    _get("/assets/{asset}", assets.asset, is_slow=True),
    _get("/v3/overview", overview.overview, {"overview": Overview}, is_slow=True),
    _get("/v3/groups", groups.all_groups, {"groups": GroupColumns}, is_slow=True),
    _get("/v3/history", history.all_clusters, {"history": ClusterHistoryColumns}, is_slow=True),
    _get("/v3/incidents", incidents.incidents, {"incidents": list[IncidentSummary]}, is_slow=True),
    _get("/v3/incidents/{incident}", incidents.incident, {"incident": IncidentDetail}, is_slow=True),
    Endpoint(
        "/v3/incidents/{incident}/acknowledge",
        {
            "POST": _admin(silences.acknowledge, {"incident": IncidentDetail}),
            "DELETE": _admin(silences.withdraw, {"incident": IncidentDetail}),
        },
    ),
    Endpoint(
        "/v3/silences",
        {
            "GET": Handler(silences.silences, {"silences": list[SilenceSummary]}, is_slow=True),
            "POST": _admin(silences.create_silence, {"silence": SilenceSummary}),
        },
    ),
    Endpoint("/v3/silences/{silence}", {"DELETE": _admin(silences.end_silence, {"silence": SilenceSummary})}),
    _get(
        "/v3/notifiers",
        incidents.notifiers,
        {"duty": LeadershipSummary, "notifiers": list[NotifierSummary]},
        is_slow=True,
    ),
    _get("/v3/sinks", sinks.sinks, {"sinks": list[SinkSummary]}, is_slow=True),
    _get("/v3/kafka", burrow.clusters, {"clusters": list[str]}, is_cached=True),
    _get(_CLUSTER, config.cluster, {"module": MODULES["cluster"]}, is_cached=True),
    _get(
        f"{_CLUSTER}/lag",
        groups.cluster_lag,
        {"cluster": ClusterSummary, "total": int, "next": str | None, "groups": list[GroupStatus]},
        is_slow=True,
    ),
    _get(f"{_CLUSTER}/history", history.cluster, {"history": list[ClusterHistoryPoint]}, is_slow=True),
    _get(f"{_CLUSTER}/topic", burrow.topics, {"topics": list[str]}, is_cached=True),
    _get(_TOPIC, burrow.topic, {"offsets": list[int]}, is_cached=True),
    _get(f"{_TOPIC}/consumers", burrow.topic_consumers, {"consumers": list[str]}, is_cached=True),
    _get(f"{_TOPIC}/detail", topics.topic_detail, {"topic": TopicDetail}, is_slow=True),
    _get(f"{_CLUSTER}/consumer", burrow.consumers, {"consumers": list[str]}, is_cached=True),
    Endpoint(
        _CONSUMER,
        {
            "GET": Handler(burrow.consumer, {"topics": dict[str, list[PartitionWindow]]}, is_cached=True, is_slow=True),
            "DELETE": _admin(burrow.delete, {}),
        },
    ),
    _get(f"{_CONSUMER}/status", burrow.status, {"status": GroupStatus}, is_cached=True),
    _get(f"{_CONSUMER}/lag", burrow.lag, {"status": GroupStatus}, is_cached=True),
    _get(f"{_CONSUMER}/explain", groups.explain, {"explanation": GroupExplanation}, is_cached=True, is_slow=True),
    _get(f"{_CONSUMER}/history", history.group, {"history": list[GroupHistoryPoint]}, is_slow=True),
    Endpoint(f"{_CONSUMER}/topic/{{topic}}", {"DELETE": _admin(burrow.delete, {})}),
    _get("/v3/config", config.main, _MAIN_CONFIG),
    *(_get(f"/v3/config/{kind}", config.modules, _MODULE_LIST) for kind in MODULES),
    *(_get(f"/v3/config/{kind}/{{name}}", config.module, {"module": module}) for kind, module in MODULES.items()),
    Endpoint(
        "/v3/admin/loglevel", {"GET": Handler(admin.log_level, {"level": str}), "POST": _admin(admin.set_log_level, {})}
    ),
]
