"""Every path of the API in the order of the documentation, with the types of its answer."""

from warren.snapshot.status import GroupStatus
from warren.web import (
    admin,
    assets,
    burrow,
    config,
    explain,
    groups,
    history,
    incidents,
    metrics,
    overview,
    silences,
    topics,
)  # fmt: skip
from warren.web.api import Api
from warren.web.config import GENERAL, HTTP_SERVER, LOGGING, MODULES, ZOOKEEPER
from warren.web.go_json import dumps
from warren.web.http import AnswerFunction, Condition, Fields, Handler, Request, Response, Routes
from warren.web.openapi import document
from warren.web.windows import PartitionWindow


def openapi(_api: Api, _request: Request) -> Response:
    """Get the OpenAPI description of this API."""
    return Response(200, dumps(document(ROUTES)))


def _get(
    answer: AnswerFunction, fields: Fields | None = None, is_in_memory: Condition | None = None, **options: bool
) -> dict[str, Handler]:
    return {"GET": Handler(answer, fields, is_in_memory=is_in_memory, **options)}


def _admin(answer: AnswerFunction, fields: Fields) -> Handler:
    """A change that Burrow has as well."""
    return Handler(answer, fields, is_admin=True)


def _own(answer: AnswerFunction, fields: Fields, *, is_waiting: bool = False) -> Handler:
    """A change that only Warren has."""
    return Handler(answer, fields, is_admin=True, is_local=True, is_waiting=is_waiting)


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

ROUTES: Routes = {
    "/burrow/admin": _get(admin.alive, is_public=True, is_fast=True),
    "/burrow/admin/ready": _get(admin.ready, is_public=True, is_fast=True),
    "/metrics": _get(metrics.metrics),
    "/openapi.json": _get(openapi, is_fast=True),
    "/docs": _get(assets.docs),
    "/": _get(assets.home),
    "/assets/{asset}": _get(assets.asset),
    "/v3/overview": _get(overview.overview, {"overview": overview.Overview}),
    "/v3/groups": _get(groups.all_groups, {"groups": groups.GroupColumns}),
    "/v3/history": _get(history.all_clusters, {"history": history.ClusterHistoryColumns}),
    "/v3/incidents": _get(incidents.incidents, {"incidents": list[incidents.IncidentSummary]}),
    "/v3/incidents/{incident}": _get(incidents.incident, {"incident": incidents.IncidentDetail}),
    "/v3/incidents/{incident}/acknowledge": {
        "POST": _own(silences.acknowledge, {"incident": incidents.IncidentDetail}),
        "DELETE": _own(silences.withdraw, {"incident": incidents.IncidentDetail}),
    },
    "/v3/silences": {
        "GET": Handler(silences.silences, {"silences": list[silences.SilenceSummary]}),
        "POST": _own(silences.create_silence, {"silence": silences.SilenceSummary}),
    },
    "/v3/silences/{silence}": {"DELETE": _own(silences.end_silence, {"silence": silences.SilenceSummary})},
    "/v3/notifiers": _get(
        incidents.notifiers, {"duty": incidents.LeadershipSummary, "notifiers": list[incidents.NotifierSummary]}
    ),
    "/v3/sinks": _get(overview.sinks, {"sinks": list[overview.SinkSummary]}),
    "/v3/kafka": _get(burrow.clusters, {"clusters": list[str]}, is_cached=True, is_fast=True),
    _CLUSTER: _get(config.cluster, {"module": MODULES["cluster"]}, is_cached=True, is_fast=True),
    f"{_CLUSTER}/lag": _get(
        groups.cluster_lag,
        {"cluster": groups.ClusterSummary, "total": int, "next": str | None, "groups": list[GroupStatus]},
    ),
    f"{_CLUSTER}/history": _get(history.cluster, {"history": list[history.ClusterHistoryPoint]}),
    f"{_CLUSTER}/topic": _get(burrow.topics, {"topics": list[str]}, is_cached=True, is_fast=True),
    _TOPIC: _get(burrow.topic, {"offsets": list[int]}, is_cached=True, is_fast=True),
    f"{_TOPIC}/consumers": _get(burrow.topic_consumers, {"consumers": list[str]}, is_cached=True, is_fast=True),
    f"{_TOPIC}/detail": _get(topics.topic_detail, {"topic": topics.TopicDetail}),
    f"{_CLUSTER}/consumer": _get(burrow.consumers, {"consumers": list[str]}, is_cached=True, is_fast=True),
    _CONSUMER: {
        "GET": Handler(
            burrow.consumer,
            {"topics": dict[str, list[PartitionWindow]]},
            is_cached=True,
            is_in_memory=burrow.has_windows_in_memory,
        ),
        "DELETE": _admin(burrow.delete, {}),
    },
    f"{_CONSUMER}/status": _get(burrow.status, {"status": GroupStatus}, is_cached=True, is_fast=True),
    f"{_CONSUMER}/lag": _get(burrow.lag, {"status": GroupStatus}, is_cached=True, is_fast=True),
    f"{_CONSUMER}/explain": _get(
        explain.explain,
        {"explanation": explain.GroupExplanation},
        is_in_memory=explain.is_short_and_in_memory,
        is_cached=True,
    ),
    f"{_CONSUMER}/history": _get(history.group, {"history": list[history.GroupHistoryPoint]}),
    f"{_CONSUMER}/topic/{{topic}}": {"DELETE": _admin(burrow.delete, {})},
    "/v3/config": _get(config.main, _MAIN_CONFIG, is_fast=True),
    **{f"/v3/config/{kind}": _get(config.modules, _MODULE_LIST, is_fast=True) for kind in MODULES},
    **{
        f"/v3/config/{kind}/{{name}}": _get(config.module, {"module": module}, is_fast=True)
        for kind, module in MODULES.items()
    },
    "/v3/admin/loglevel": {
        "GET": Handler(admin.log_level, {"level": str}, is_fast=True),
        "POST": _admin(admin.set_log_level, {}),
    },
    "/v3/admin/reload": {"POST": _own(admin.reload, {"reload": admin.Reload | None}, is_waiting=True)},
}
