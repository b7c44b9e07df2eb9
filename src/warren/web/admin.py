"""Whether the server is alive and ready, the log level, and reloads of the configuration."""

import json
import logging
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import msgspec

from warren.errors import RequestError
from warren.logs import set_level
from warren.snapshot.reloads import read_outcome, request_reload
from warren.snapshot.requests import RequestKind
from warren.snapshot.status import TimeMs
from warren.web.api import Api, not_ready
from warren.web.http import TEXT, Request, Response, error, success, to_answer

_GO_LEVELS = {
    logging.DEBUG: "debug",
    logging.INFO: "info",
    logging.WARNING: "warn",
    logging.ERROR: "error",
    logging.CRITICAL: "fatal",
}
LogLevel = Literal["trace", "debug", "info", "warn", "warning", "error", "fatal"]
"""The levels that can be set."""
RELOAD_WAIT_S = 30.0
"""How long an answer waits for a reload: it comes after the cycle under way."""


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
    api.requests.ask(RequestKind.LOGLEVEL, api.clock_ms(), level=level)
    set_level(level)
    return success(request, "set log level")


class Reload(msgspec.Struct):
    """The last attempt to read the configuration; if it has mistakes, the one from before is in use."""

    at: TimeMs
    applied_at: Annotated[int, msgspec.Meta(description="When the configuration in use was read")]
    mistakes: Annotated[list[str], msgspec.Meta(description="Why it was not applied; empty if it was")]
    warnings: list[str]
    changed: Annotated[list[str], msgspec.Meta(description="The sections that were added, removed or changed")]
    needs_restart: Annotated[list[str], msgspec.Meta(description="What the file says but is not in use yet")]


def last_reload(data_dir: Path) -> Reload | None:
    """How the last attempt to read the configuration ended; None before the pipeline has started."""
    outcome = read_outcome(data_dir)
    return to_answer(Reload, outcome, at=outcome.at_ms, applied_at=outcome.applied_ms) if outcome else None


def reload(api: Api, request: Request) -> Response:
    """Read the configuration again and apply it, or none of it if it has mistakes."""
    if request_reload(api.data_dir, api.clock_ms(), RELOAD_WAIT_S) is None:
        message = "reload requested; the pipeline has not carried it out yet"
        return replace(success(request, message, reload=None), status=202)
    outcome = last_reload(api.data_dir)
    if outcome is not None and outcome.mistakes:
        message = "the configuration has mistakes; nothing has changed"
        return error(request.path, 422, message, reload=outcome)
    return success(request, "configuration reloaded", reload=outcome)
