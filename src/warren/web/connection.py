"""A connection of uvicorn, with limits on the size and slowness of requests, and the fast path."""

import asyncio
from collections.abc import Callable

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from warren.web.go_json import dumps
from warren.web.http import JSON

MAX_HEAD_BYTES = 32_768

FastAnswer = Callable[[bytes], tuple[bytes, bytes] | None]
"""Gives the whole response to a GET, in two parts between which headers go; None if it has to go through ASGI."""


class LimitedConnection(HttpToolsProtocol):
    """A connection that is closed if its client is too slow or sends too much."""

    timeout_s = 300.0
    fast_answer: FastAnswer = staticmethod(lambda _: None)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first request of a new client."""
        super().connection_made(transport)
        self._head_bytes = 0
        self._is_head = True
        self._is_answered = False
        self._deadline: asyncio.TimerHandle | None = None
        self._set_deadline()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the deadline of a client that is gone."""
        self._clear_deadline()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take in a piece of a request."""
        self._head_bytes += len(data) if self._is_head else 0
        super().data_received(data)
        if self._deadline is None and (self._head_bytes or not self._is_head):
            self._set_deadline()
        if self._head_bytes > MAX_HEAD_BYTES and not self.transport.is_closing():
            self._refuse(431, "the request head is too large")

    def on_headers_complete(self) -> None:
        """Answer at once if possible, else hand over to ASGI."""
        self._is_head, self._head_bytes = False, 0
        # A head that came in one piece has not been checked yet.
        if len(self.url) + sum(len(name) + len(value) for name, value in self.headers) > MAX_HEAD_BYTES:
            self._head_bytes = MAX_HEAD_BYTES + 1
            raise ValueError("the request head is too large")
        if self._may_be_fast() and (answer := self.fast_answer(self.url)) is not None:
            self._is_answered = True
            lines = b"".join([b"%b: %b\r\n" % header for header in self.server_state.default_headers])
            self.transport.write(lines.join(answer))
            return
        super().on_headers_complete()

    def _may_be_fast(self) -> bool:
        """Whether no other answer is under way and the client reads what it is sent."""
        previous: RequestResponseCycle | None = self.cycle
        is_idle = (previous is None or previous.response_complete) and not self.pipeline
        is_plain = self.parser.get_method() == b"GET" and self.parser.get_http_version() == "1.1"
        return is_idle and is_plain and bool(self.parser.should_keep_alive()) and not self.flow.write_paused

    def on_body(self, body: bytes) -> None:
        """Take in a piece of a body, unless the answer is sent already."""
        if not self._is_answered:
            super().on_body(body)

    def on_message_complete(self) -> None:
        """Finish a request."""
        self._is_head = True
        self._clear_deadline()
        if self._is_answered:
            self._is_answered = False
            self.on_response_complete()
            return
        super().on_message_complete()
        if self.cycle.response_complete:
            # It was answered before it was complete: the connection is idle only now.
            self._unset_keepalive_if_required()
            self.timeout_keep_alive_task = self.loop.call_later(self.timeout_s, self.timeout_keep_alive_handler)

    def pause_writing(self) -> None:
        """Give a client that does not read until the deadline."""
        self._set_deadline()
        super().pause_writing()

    def resume_writing(self) -> None:
        """Go on, as the client reads again."""
        self._clear_deadline()
        super().resume_writing()

    def _set_deadline(self) -> None:
        self._clear_deadline()
        self._deadline = self.loop.call_later(self.timeout_s, self.transport.abort)

    def _clear_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def send_400_response(self, msg: str) -> None:
        """Refuse input that is not HTTP, after the answer to the request before it."""
        previous: RequestResponseCycle | None = self.cycle
        if self._head_bytes > MAX_HEAD_BYTES:
            self._refuse(431, "the request head is too large")
        elif previous is not None and not previous.more_body and not previous.response_complete:
            previous.keep_alive = False
        else:
            self._refuse(400, "invalid HTTP request")

    def _refuse(self, status: int, message: str) -> None:
        body = dumps({"error": True, "message": message, "result": {}}) + b"\n"
        head = f"Content-Type: {JSON}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        self.transport.write(STATUS_LINE[status] + head.encode() + body)
        self.transport.close()
