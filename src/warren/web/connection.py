"""A connection: uvicorn's, with bounds for what a client may send and how slow it may be, and a short way."""

import asyncio
from collections.abc import Callable
from http import HTTPStatus

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from warren.web.go_json import dumps
from warren.web.http import JSON

HEADERS_MOST = 32_768

Quick = Callable[[bytes], tuple[bytes, bytes] | None]
"""The whole answer to a GET of a path, cut where the date goes; None where it takes the long way."""


_made: tuple[object, bytes] = (None, b"")


def _lines(state: ServerState) -> bytes:
    """The headers that every answer has, of which the date changes once in a second."""
    global _made  # noqa: PLW0603 - one line for all connections of the process
    if _made[0] is not state.default_headers:
        _made = state.default_headers, b"".join([b"%b: %b\r\n" % header for header in state.default_headers])
    return _made[1]


class _TooLargeError(Exception):
    pass


class Connection(HttpToolsProtocol):
    """A connection that is closed when its client is too slow or says too much."""

    timeout_s = 300.0
    quick: Quick = staticmethod(lambda _: None)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client has come: its first request is awaited."""
        super().connection_made(transport)
        self._head_bytes = 0
        self._is_head = True
        self._is_answered = False
        self._deadline: asyncio.TimerHandle | None = None
        self._await_progress()

    def connection_lost(self, exc: Exception | None) -> None:
        """The client is gone."""
        self._rest()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Some more of a request."""
        self._head_bytes += len(data) if self._is_head else 0
        super().data_received(data)
        if self._deadline is None and (self._head_bytes or not self._is_head):
            self._await_progress()
        if self._head_bytes > HEADERS_MOST and not self.transport.is_closing():
            self._refuse(431, "the head of the request is too large")

    def on_headers_complete(self) -> None:
        """The head is whole; the body is counted by whoever reads it."""
        self._is_head, self._head_bytes = False, 0
        # A head that came in one piece has not been counted before.
        if len(self.url) + sum(len(name) + len(value) for name, value in self.headers) > HEADERS_MOST:
            self._head_bytes = HEADERS_MOST + 1
            raise _TooLargeError
        if self._may_be_quick() and (ready := self.quick(self.url)) is not None:
            self._is_answered = True
            self.transport.write(_lines(self.server_state).join(ready))
            return
        super().on_headers_complete()

    def _may_be_quick(self) -> bool:
        """Whether nothing is under way, and the client reads what it is sent."""
        before: RequestResponseCycle | None = self.cycle
        is_idle = (before is None or before.response_complete) and not self.pipeline
        is_plain = self.parser.get_method() == b"GET" and self.parser.get_http_version() == "1.1"
        return is_idle and is_plain and bool(self.parser.should_keep_alive()) and not self.flow.write_paused

    def on_body(self, body: bytes) -> None:
        """Some of a body, which nobody reads whose answer is out."""
        if not self._is_answered:
            super().on_body(body)

    def on_message_complete(self) -> None:
        """The request is whole."""
        self._is_head = True
        self._rest()
        if self._is_answered:
            self._is_answered = False
            self.on_response_complete()
            return
        super().on_message_complete()
        if self.cycle.response_complete:
            # It was answered before it was whole, and is idle only now.
            self._unset_keepalive_if_required()
            self.timeout_keep_alive_task = self.loop.call_later(self.timeout_s, self.timeout_keep_alive_handler)

    def pause_writing(self) -> None:
        """The client does not take what it asked for."""
        self._await_progress()
        super().pause_writing()

    def resume_writing(self) -> None:
        """The client takes more."""
        self._rest()
        super().resume_writing()

    def _await_progress(self) -> None:
        self._rest()
        self._deadline = self.loop.call_later(self.timeout_s, self._give_up)

    def _rest(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _give_up(self) -> None:
        self.transport.abort()

    def send_400_response(self, msg: str) -> None:
        """What is no HTTP; whatever was asked before it is answered first, and then that is all."""
        before: RequestResponseCycle | None = self.cycle
        if self._head_bytes > HEADERS_MOST:
            self._refuse(431, "the head of the request is too large")
        elif before is not None and not before.more_body and not before.response_complete:
            before.keep_alive = False
        else:
            self._refuse(400, "this is no HTTP request that can be read")

    def _refuse(self, status: int, message: str) -> None:
        body = dumps({"error": True, "message": message, "result": {}}) + b"\n"
        head = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n"
        head += f"Content-Type: {JSON}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        self.transport.write(head.encode() + body)
        self.transport.close()
