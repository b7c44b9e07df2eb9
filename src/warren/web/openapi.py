"""The API described, as OpenAPI 3.1, from the table of its paths."""

from collections.abc import Sequence
from typing import Any

from warren import __version__
from warren.web.cluster_lag import LIMIT_MOST, STARS_MOST
from warren.web.http import Endpoint
from warren.web.incidents import BEFORE_MOST, INCIDENTS, INCIDENTS_MOST
from warren.web.request_bodies import ACKNOWLEDGEMENT, SILENCE

_NAMES = {
    "cluster": "A cluster, by the name of its section",
    "consumer": "A consumer group; a slash in its name is sent as %2F",
    "topic": "A topic",
    "name": "The name of a section",
    "asset": "The name of a file",
    "incident": "An incident, by its id",
    "silence": "A silence, by its id",
}
HOURS_MOST = 24 * 3_650
_HOURS: tuple[str, str, dict[str, Any]] = (
    "hours",
    "How far to look back, one hour if not said",
    {"type": "integer", "minimum": 1, "maximum": HOURS_MOST},
)
_QUERIES: dict[str, tuple[tuple[str, str, dict[str, Any]], ...]] = {
    "/v3/kafka/{cluster}/lag": (
        (
            "status",
            "Only groups of these: OK, WARN, ERR, with commas between",
            {"type": "string", "pattern": "^(OK|WARN|ERR)(,(OK|WARN|ERR))*$"},
        ),
        (
            "group",
            "Only groups whose name fits; * and ? stand for any characters",
            {"type": "string", "pattern": rf"^([^*]*\*){{0,{STARS_MOST}}}[^*]*$"},
        ),
        ("partitions", "All partitions of each group, or only those worse than OK", {"enum": ["bad", "all"]}),
        (
            "limit",
            "At most so many groups; the answer's `next` is the `after` of the next page",
            {"type": "integer", "minimum": 1, "maximum": LIMIT_MOST},
        ),
        ("after", "Only groups whose name comes after this one", {"type": "string"}),
    ),
    "/v3/kafka/{cluster}/consumer/{consumer}/explain": (
        ("topic", "Only partitions of this topic", {"type": "string"}),
        (
            "partition",
            "Only the partition of this number, with its window of commits",
            {"type": "integer", "minimum": 0, "maximum": 999_999_999},
        ),
    ),
    "/v3/kafka/{cluster}/consumer/{consumer}/history": (_HOURS,),
    "/v3/kafka/{cluster}/history": (_HOURS,),
    "/v3/history": (_HOURS,),
    "/v3/incidents": (
        ("cluster", "Only of this cluster", {"type": "string"}),
        ("group", "Only of the group of this name", {"type": "string"}),
        ("state", "Only those that are open, or closed", {"enum": ["open", "closed"]}),
        (
            "limit",
            f"At most so many, {INCIDENTS} if not said",
            {"type": "integer", "minimum": 1, "maximum": INCIDENTS_MOST},
        ),
        (
            "before",
            "Only those that were opened before this moment, in milliseconds; the last one's is the next page's",
            {"type": "integer", "minimum": 1, "maximum": BEFORE_MOST},
        ),
    ),
    "/v3/groups": (("topic", "Only groups that read a topic of this name", {"type": "string"}),),
}
_ERROR = {"description": "An error, in Burrow's words", "content": {"application/json": {}, "text/plain": {}}}
_TEXTS = {
    "/burrow/admin": ("text/plain",),
    "/burrow/admin/ready": ("text/plain",),
    "/docs": ("text/html",),
    "/": ("text/html",),
    "/assets/{asset}": ("text/javascript", "text/css", "image/svg+xml"),
}


def document(routes: Sequence[Endpoint]) -> dict[str, Any]:
    """The whole description."""
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths[route.path] = {
            method.lower(): _operation(route.path, method, str(handler.answer.__doc__), is_open=handler.is_open)
            for method, handler in route.handlers.items()
        }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Warren",
            "version": __version__,
            "summary": "Burrow's HTTP API, and what Warren adds to it.",
        },
        "paths": paths,
        "components": {
            "schemas": {"Answer": _ANSWER},
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "password": {"type": "http", "scheme": "basic"},
            },
        },
        "security": [{}, {"token": []}, {"password": []}],
    }


_ANSWER = {
    "type": "object",
    "required": ["error", "message", "request"],
    "properties": {
        "error": {"type": "boolean"},
        "message": {"type": "string"},
        "request": {
            "type": "object",
            "required": ["url", "host"],
            "properties": {"url": {"type": "string"}, "host": {"type": "string"}},
        },
    },
}


def _operation(path: str, method: str, summary: str, *, is_open: bool) -> dict[str, Any]:
    parameters: list[dict[str, Any]] = [
        {
            "name": part[1:-1],
            "in": "path",
            "required": True,
            "description": _NAMES[part[1:-1]],
            "schema": {"type": "string", "minLength": 1},
        }
        for part in path.split("/")
        if part.startswith("{")
    ]
    parameters += [
        {"name": name, "in": "query", "description": text, "schema": schema}
        for name, text, schema in _QUERIES.get(path, ())
    ]
    responses = {"200": {"description": summary, "content": _content(path)}, "4XX": _ERROR}
    if path == "/burrow/admin/ready":
        responses["503"] = {"description": "Not ready, and why", "content": {"text/plain": {}}}
    found: dict[str, Any] = {"summary": summary.rstrip("."), "parameters": parameters, "responses": responses}
    if method == "POST":
        schema, example = _BODIES[path]
        content = {"application/json": {"schema": schema, "example": example}}
        found["requestBody"] = {"required": True, "content": content}
    if is_open:
        found["security"] = []
    return found


_LEVELS = ["trace", "debug", "info", "warn", "warning", "error", "fatal"]
_LEVEL = {"type": "object", "required": ["level"], "properties": {"level": {"enum": _LEVELS}}}
_BODIES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "/v3/admin/loglevel": (_LEVEL, {"level": "info"}),
    "/v3/incidents/{incident}/acknowledge": (ACKNOWLEDGEMENT, {"by": "ann", "why": "I look into it"}),
    "/v3/silences": (SILENCE, {"cluster": "*", "group": "payments-*", "hours": 4, "by": "ann", "why": "a release"}),
}


def _content(path: str) -> dict[str, Any]:
    if path == "/metrics":
        return {"text/plain": {}, "application/openmetrics-text": {}}
    if path == "/openapi.json":
        return {"application/json": {"schema": {"type": "object"}}}
    if path in _TEXTS:
        return {kind: {} for kind in _TEXTS[path]}
    return {"application/json": {"schema": {"$ref": "#/components/schemas/Answer"}}}
