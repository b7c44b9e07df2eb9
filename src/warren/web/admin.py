"""Whether the server is alive and ready, and the log level."""

import json
import logging
from typing import Any, Literal, get_args

import msgspec

from warren.errors import RequestError
from warren.logs import set_level
from warren.snapshot.requests import RequestKind
from warren.web.api import Api, not_ready
from warren.web.http import TEXT, Request, Response, success

_GO_LEVELS = {
    logging.DEBUG: "debug",
    logging.INFO: "info",
    logging.WARNING: "warn",
    logging.ERROR: "error",
    logging.CRITICAL: "fatal",
}
LogLevel = Literal["trace", "debug", "info", "warn", "warning", "error", "fatal"]
"""The levels that can be set."""


class LogLevelBody(msgspec.Struct):
    """The level to be set."""

    level: LogLevel


def alive(_api: Api, _request: Request) -> Response:
    """Tell that the server is running."""
    return Response(200, b"GOOD", TEXT)


def ready(api: Api, _request: Request) -> Response:
    """Tell whether the verdicts are caught up and up to date."""
    why = not_ready(api.index.snapshot, api.clock_ms())
    return Response(200, b"READY", TEXT) if why is None else Response(503, why.encode(), TEXT)


def log_level(_api: Api, request: Request) -> Response:
    """Get the log level."""
    return success(request, "log level returned", level=_GO_LEVELS.get(logging.getLogger().level, "info"))


def _decode_level(body: bytes) -> str:
    """The level in a body as Go decodes it: what follows the JSON is ignored, and `null` is nothing."""
    text = body.decode("utf-8", "replace").lstrip(" \t\r\n")
    # `int` refuses NaN and Infinity, which only Python takes for JSON.
    value, _ = json.JSONDecoder(object_pairs_hook=_without_case, parse_constant=int).raw_decode(text)
    level = value.get("level", "") if isinstance(value, dict) else "" if value is None else None
    if not isinstance(level, str):
        raise ValueError("neither null nor an object with a text")
    return level


def _without_case(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object as Go decodes it: keys of any case, the last one counts."""
    return {name.lower(): value for name, value in pairs if value is not None}


def set_log_level(api: Api, request: Request) -> Response:
    """Set the log level: of this server at once, of the pipeline at its next cycle."""
    try:
        level = _decode_level(request.body).lower()
    except (ValueError, RecursionError):
        raise RequestError("could not decode message body") from None
    if level not in get_args(LogLevel):
        raise RequestError("unknown log level", 404)
    set_level(level)
    api.requests.ask(RequestKind.LOGLEVEL, api.clock_ms(), level=level)
    return success(request, "set log level")
