"""The OpenAPI 3.1 description of the API, made from the table of endpoints and the types of their answers."""

from collections.abc import Mapping
from typing import Any

import msgspec

from warren import __version__
from warren.config.http import LEVELS
from warren.domain.matching import MAX_STARS
from warren.web.admin import LogLevelBody
from warren.web.explain import MAX_PARTITION
from warren.web.groups import MAX_GROUPS
from warren.web.history import MAX_HOURS
from warren.web.http import JSON, Fields, Handler, RequestInfo, Routes, names_of
from warren.web.incidents import DEFAULT_LIMIT, MAX_LIMIT, MAX_TIME_MS
from warren.web.silences import AcknowledgementBody, SilenceBody

_NAMES = {
    "cluster": "Name of a cluster",
    "consumer": "Name of a consumer group; a slash in it is sent as %2F",
    "topic": "Name of a topic",
    "name": "Name of a section",
    "asset": "Name of a file",
    "incident": "Id of an incident",
    "silence": "Id of a silence",
}
_STATUS = "OK|WARN|ERR"
_NAME_GLOB = {"type": "string", "pattern": r"^[\w*?]+$"}


def _query(name: str, description: str, **schema: Any) -> dict[str, Any]:  # noqa: ANN401
    return {"name": name, "in": "query", "description": description, "schema": {"type": "string", **schema}}


def _integer(name: str, description: str, maximum: int, minimum: int = 1) -> dict[str, Any]:
    return _query(name, description, type="integer", minimum=minimum, maximum=maximum)


_HOURS = _integer("hours", "Length of the history, by default one hour", MAX_HOURS)
_QUERIES = {
    "/v3/kafka/{cluster}/lag": [
        _query("status", "Only groups with one of these, separated by commas", pattern=f"^({_STATUS})(,({_STATUS}))*$"),
        _query(
            "group",
            "Only groups whose name matches; * stands for any characters, ? for any single one",
            pattern=rf"^([^*]*\*){{0,{MAX_STARS}}}[^*]*$",
        ),
        _query("partitions", "All partitions of each group, or only those that are not OK", enum=["bad", "all"]),
        _integer("limit", "Maximum number of groups; the answer's `next` is the `after` of the next page", MAX_GROUPS),
        _query("after", "Only groups whose name sorts after this one"),
    ],
    "/v3/kafka/{cluster}/consumer/{consumer}/explain": [
        _query("topic", "Only partitions of this topic"),
        _integer("partition", "Only this partition, with its window of commits", MAX_PARTITION, minimum=0),
    ],
    "/v3/kafka/{cluster}/consumer/{consumer}/history": [_HOURS],
    "/v3/kafka/{cluster}/history": [_HOURS],
    "/v3/history": [_HOURS],
    "/v3/incidents": [
        _query("cluster", "Only incidents of this cluster"),
        _query("group", "Only incidents of the group of this name"),
        _query("state", "Only open or only closed incidents", enum=["open", "closed"]),
        _integer("limit", f"Maximum number of incidents, by default {DEFAULT_LIMIT}", MAX_LIMIT),
        _integer("before", "Only incidents opened before this time, in milliseconds since 1970", MAX_TIME_MS),
    ],
    "/metrics": [
        _query("level", "Metrics of clusters, also of groups, or also of partitions and topics", enum=list(LEVELS)),
        _query("name[]", "Only metrics of these names; * stands for any characters", type="array", items=_NAME_GLOB),
    ],
    "/v3/groups": [_query("topic", "Only groups that consume a topic of this name")],
}
_TEXTS = {
    "/burrow/admin": ("text/plain",),
    "/burrow/admin/ready": ("text/plain",),
    "/metrics": ("text/plain", "application/openmetrics-text"),
    "/docs": ("text/html",),
    "/": ("text/html",),
    "/assets/{asset}": ("text/javascript", "text/css", "image/svg+xml"),
}
_COMPONENTS = "#/components/schemas"
_ENVELOPE = {"error": bool, "message": str, "request": RequestInfo}
"""The fields of every JSON answer."""
_BODIES: dict[str, tuple[type[msgspec.Struct], dict[str, Any]]] = {
    "/v3/admin/loglevel": (LogLevelBody, {"level": "info"}),
    "/v3/incidents/{incident}/acknowledge": (AcknowledgementBody, {"by": "ann", "why": "restarting the consumer"}),
    "/v3/silences": (SilenceBody, {"cluster": "*", "group": "payments-*", "hours": 4, "by": "ann", "why": "a release"}),
}


def schemas(routes: Routes) -> tuple[dict[Any, Any], dict[str, Any]]:
    """The schema of each type that answers and bodies are made of, and the components that they refer to."""
    types = [*_ENVELOPE.values(), *(body for body, _ in _BODIES.values())]
    for handlers in routes.values():
        types += [hint for handler in handlers.values() for hint in (handler.fields or {}).values()]
    found, components = msgspec.json.schema_components(types, ref_template=f"{_COMPONENTS}/{{name}}")
    components["SilenceBody"]["oneOf"] = [{"required": ["hours"]}, {"required": ["until"]}]
    enums: dict[str, Any] = {}
    schema_of = dict(zip(types, _with_named_enums(found, enums), strict=True))
    return schema_of, _with_named_enums(components, enums) | enums


def document(routes: Routes) -> dict[str, Any]:
    """The whole description."""
    schema_of, components = schemas(routes)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Warren",
            "version": __version__,
            "summary": "Burrow's HTTP API and Warren's extensions of it.",
        },
        "paths": {
            path: {method.lower(): _operation(schema_of, path, method, handler) for method, handler in handlers.items()}
            for path, handlers in routes.items()
        },
        "components": {
            "schemas": components,
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "password": {"type": "http", "scheme": "basic"},
            },
        },
        "security": [{}, {"token": []}, {"password": []}],
    }


def _operation(schema_of: Mapping[Any, Any], path: str, method: str, handler: Handler) -> dict[str, Any]:
    summary = str(handler.answer.__doc__)
    success: dict[str, Any] = {"description": summary, "content": _content(schema_of, path, handler.fields)}
    failure = {"description": "An error", "content": _content(schema_of, path, {}) | {"text/plain": {}}}
    responses = {"200": success, "4XX": failure}
    if path == "/burrow/admin/ready":
        responses["503"] = {"description": "Not ready, and why", "content": {"text/plain": {}}}
    if path.endswith(("{consumer}/status", "{consumer}/lag")):
        content = success["content"] | {"text/plain": {}}
        responses["404"] = {"description": "The group is unknown: its status is NOTFOUND", "content": content}
    operation = {"summary": summary.rstrip("."), "parameters": _parameters(path), "responses": responses}
    if path == "/v3/admin/reload":
        responses["202"] = {"description": "The reload is still to be carried out", "content": success["content"]}
        responses["422"] = {"description": "The configuration has mistakes", "content": success["content"]}
    if path in _BODIES and method == "POST":
        body, example = _BODIES[path]
        content = {JSON: {"schema": schema_of[body], "example": example}}
        operation["requestBody"] = {"required": True, "content": content}
    return operation | ({"security": []} if handler.is_public else {})


def _parameters(path: str) -> list[dict[str, Any]]:
    name = {"in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
    parts = [{"name": part, "description": _NAMES[part], **name} for part in names_of(path)]
    return parts + _QUERIES.get(path, [])


def _content(schema_of: Mapping[Any, Any], path: str, fields: Fields | None) -> dict[str, Any]:
    """The content of an answer by media type."""
    if path in _TEXTS and fields is None:
        return {kind: {} for kind in _TEXTS[path]}
    if fields is None:
        return {JSON: {"schema": {"type": "object"}}}
    properties = {name: schema_of[hint] for name, hint in {**_ENVELOPE, **fields}.items()}
    return {JSON: {"schema": {"type": "object", "required": list(properties), "properties": properties}}}


def _with_named_enums(schema: Any, enums: dict[str, Any]) -> Any:  # noqa: ANN401
    """The same schema in which each enum with a title is a reference to the component of that name."""
    if isinstance(schema, list):
        return [_with_named_enums(item, enums) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if "enum" in schema and "title" in schema:
        enums[schema["title"]] = {"type": "string", "enum": schema["enum"]}
        about = {"description": schema["description"]} if "description" in schema else {}
        return {"$ref": f"{_COMPONENTS}/{schema['title']}", **about}
    return {name: _with_named_enums(item, enums) for name, item in schema.items()}
