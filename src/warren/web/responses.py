"""What every answer of the API begins and ends with."""

from dataclasses import dataclass
from typing import Any

from warren.web.http import Request, Response, json_answer


@dataclass(frozen=True, slots=True)
class Responder:
    """Says what is good and what is not, in Burrow's words, and on which host."""

    host: str

    def about(self, request: Request) -> dict[str, str]:
        """What was asked, and who answers."""
        return {"url": request.path, "host": self.host}

    def good(self, request: Request, message: str, **said: Any) -> Response:  # noqa: ANN401
        """What was asked for."""
        return json_answer({"error": False, "message": message, **said, "request": self.about(request)})

    def error(self, request: Request, status: int, message: str) -> Response:
        """Why not."""
        return self.refused(request.path, status, message)

    def refused(self, path: str, status: int, message: str) -> Response:
        """Why not, to a request that reached nobody."""
        return json_answer({"error": True, "message": message, "request": {"url": path, "host": self.host}}, status)
