"""Whether the server is alive and ready, and the log level."""

import logging
from typing import Literal, get_args

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


def set_log_level(api: Api, request: Request) -> Response:
    """Set the log level: of this server at once, of the pipeline at its next cycle."""
    try:
        body = msgspec.json.decode(request.body, type=dict[str, object] | None) or {}
        level = msgspec.convert(body.get("level"), str | None) or ""
    except (ValueError, RecursionError):
        raise RequestError("could not decode message body") from None
    level = level.lower()
    if level not in get_args(LogLevel):
        raise RequestError("unknown log level", 404)
    set_level(level)
    api.requests.ask(RequestKind.LOGLEVEL, api.clock_ms(), level=level)
    return success(request, "set log level")
