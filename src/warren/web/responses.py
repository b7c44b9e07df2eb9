"""The JSON envelope of every answer, as Burrow has it."""

import platform

from warren.web.go_json import dumps
from warren.web.http import Request, Response

HOST = platform.node()
HOST_JSON = dumps(HOST)


def request_info(path: str) -> dict[str, str]:
    """The `request` field of an answer: the requested path and the host that answers."""
    return {"url": path, "host": HOST}


def success(request: Request, message: str, **fields: object) -> Response:
    """An answer with the given fields."""
    return Response(200, dumps({"error": False, "message": message, **fields, "request": request_info(request.path)}))


def error(path: str, status: int, message: str, *headers: tuple[str, str]) -> Response:
    """An error with its HTTP status."""
    body = dumps({"error": True, "message": message, "request": request_info(path)})
    return Response(status, body, headers=headers)
