"""Every path of the API, in the order in which the documentation lists them."""

from collections.abc import Callable

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
from warren.web.api import Api
from warren.web.go_json import dumps
from warren.web.http import Endpoint, Handler, Request, Response
from warren.web.openapi import document
from warren.web.page import PAGE, PAGE_POLICY

Answer = Callable[[Api, Request], Response]


def openapi(_api: Api, _request: Request) -> Response:
    """Get the OpenAPI description of this API."""
    return Response(200, dumps(document(ROUTES)))


def docs(_api: Api, _request: Request) -> Response:
    """Get a page to browse this API with."""
    return Response(200, PAGE.encode(), "text/html; charset=utf-8", (("Content-Security-Policy", PAGE_POLICY),))


def _get(path: str, answer: Answer, *, is_cached: bool = False, is_slow: bool = False) -> Endpoint:
    return Endpoint(path, {"GET": Handler(answer, is_cached=is_cached, is_slow=is_slow)})


def _public(path: str, answer: Answer) -> Endpoint:
    return Endpoint(path, {"GET": Handler(answer, is_public=True)})


def _admin(answer: Answer) -> Handler:
    return Handler(answer, is_admin=True, is_slow=True)


_CLUSTER = "/v3/kafka/{cluster}"
_TOPIC = f"{_CLUSTER}/topic/{{topic}}"
_CONSUMER = f"{_CLUSTER}/consumer/{{consumer}}"

ROUTES = [
    _public("/burrow/admin", admin.alive),
    _public("/burrow/admin/ready", admin.ready),
    _get("/metrics", metrics.metrics, is_slow=True),
    _get("/openapi.json", openapi),
    _get("/docs", docs),
    _get("/", assets.home, is_slow=True),
    _get("/assets/{asset}", assets.asset, is_slow=True),
    _get("/v3/overview", overview.overview, is_slow=True),
    _get("/v3/groups", groups.all_groups, is_slow=True),
    _get("/v3/history", history.all_clusters, is_slow=True),
    _get("/v3/incidents", incidents.incidents, is_slow=True),
    _get("/v3/incidents/{incident}", incidents.incident, is_slow=True),
    Endpoint(
        "/v3/incidents/{incident}/acknowledge",
        {"POST": _admin(silences.acknowledge), "DELETE": _admin(silences.withdraw)},
    ),
    Endpoint(
        "/v3/silences",
        {"GET": Handler(silences.silences, is_slow=True), "POST": _admin(silences.create_silence)},
    ),
    Endpoint("/v3/silences/{silence}", {"DELETE": _admin(silences.end_silence)}),
    _get("/v3/notifiers", incidents.notifiers, is_slow=True),
    _get("/v3/sinks", sinks.sinks, is_slow=True),
    _get("/v3/kafka", burrow.clusters, is_cached=True),
    _get(_CLUSTER, config.cluster, is_cached=True),
    _get(f"{_CLUSTER}/lag", groups.cluster_lag, is_slow=True),
    _get(f"{_CLUSTER}/history", history.cluster, is_slow=True),
    _get(f"{_CLUSTER}/topic", burrow.topics, is_cached=True),
    _get(_TOPIC, burrow.topic, is_cached=True),
    _get(f"{_TOPIC}/consumers", burrow.topic_consumers, is_cached=True),
    _get(f"{_TOPIC}/detail", topics.topic_detail, is_slow=True),
    _get(f"{_CLUSTER}/consumer", burrow.consumers, is_cached=True),
    Endpoint(
        _CONSUMER,
        {"GET": Handler(burrow.consumer, is_cached=True, is_slow=True), "DELETE": _admin(burrow.delete)},
    ),
    _get(f"{_CONSUMER}/status", burrow.status, is_cached=True),
    _get(f"{_CONSUMER}/lag", burrow.lag, is_cached=True),
    _get(f"{_CONSUMER}/explain", groups.explain, is_cached=True, is_slow=True),
    _get(f"{_CONSUMER}/history", history.group, is_slow=True),
    Endpoint(f"{_CONSUMER}/topic/{{topic}}", {"DELETE": _admin(burrow.delete)}),
    _get("/v3/config", config.main),
    *(_get(f"/v3/config/{kind}", config.modules) for kind in config.KINDS),
    *(_get(f"/v3/config/{kind}/{{name}}", config.module) for kind in config.KINDS),
    Endpoint("/v3/admin/loglevel", {"GET": Handler(admin.log_level), "POST": _admin(admin.set_log_level)}),
]
