"""A connection of uvicorn, with limits on the number, size and slowness of requests, and the fast path."""

import asyncio
from collections.abc import Callable

from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT, FlowControl
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from warren.web.go_json import dumps
from warren.web.http import JSON

MAX_HEAD_BYTES = 32_768
MAX_PIECE_BYTES = 16_384
"""How much of a body is parsed at once."""
HEAD_S, BODY_S, READ_S = 10.0, 30.0, 30.0
"""How long a client may take to send the head of a request, to send its body, and to read some of an answer."""
LARGE_BYTES = 65_536
_END_OF_HEAD = b"\r\n\r\n"

FastAnswer = Callable[[bytes], tuple[bytes, bytes] | None]
"""Gives the whole response to a GET, in two parts between which headers go; None if it has to go through ASGI."""


class _Flow(FlowControl):
    """Reads no more of a client that has sent requests ahead of their turn."""

    is_ahead = False

    def resume_reading(self) -> None:
        if not self.is_ahead:
            super().resume_reading()


class LimitedConnection(HttpToolsProtocol):
    """A connection that is closed if its client is too slow or sends too much.

    Requests that a client sends without waiting for answers are parsed one by one, each when the one before it is
    answered, and clients take turns. So they cost no more than the bytes of one read.
    """

    timeout_s = 300.0
    max_connections = 500
    fast_answer: FastAnswer = staticmethod(lambda _: None)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first request of a new client."""
        super().connection_made(transport)
        self.flow: _Flow = _Flow(transport)
        self._ahead, self._at = b"", 0
        self._is_scheduled = False
        self._head_bytes = 0
        self._is_head = True
        self._is_answered = False
        self._deadline: asyncio.TimerHandle | None = None
        self._set_deadline(HEAD_S)
        if len(self.connections) > self.max_connections:
            self._make_room()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the deadline of a client that is gone."""
        self._clear_deadline()
        self._ahead = b""
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take in a piece of a request, or several requests."""
        cycle: RequestResponseCycle | None = self.cycle
        is_idle = self._is_head and (cycle is None or cycle.response_complete) and not self._ahead
        if is_idle and data.find(_END_OF_HEAD) == len(data) - len(_END_OF_HEAD):
            self._parse(data)
            return
        self._ahead, self._at = self._ahead[self._at :] + data, 0
        self.flow.is_ahead = True
        self.flow.pause_reading()
        if not self._is_scheduled:
            self._parse_next()

    def _parse_next(self) -> None:
        """Parse what has come, up to the end of the next head."""
        self._is_scheduled = False
        ahead, at = self._ahead, self._at
        if not ahead or self._is_answering() or self.transport.is_closing():
            return
        end = ahead.find(_END_OF_HEAD, at, at + MAX_PIECE_BYTES) + len(_END_OF_HEAD)
        end = end if end >= len(_END_OF_HEAD) else at + MAX_PIECE_BYTES
        if end < len(ahead):
            self._at = end
            self._parse(ahead[at:end])
            self._schedule()
        else:
            self._ahead = b""
            self.flow.is_ahead = False
            self._parse(ahead[at:])
            cycle: RequestResponseCycle | None = self.cycle
            # More of a body is read when its first part is taken.
            if not self._is_answering() and (cycle is None or len(cycle.body) <= HIGH_WATER_LIMIT):
                self.flow.resume_reading()

    def _schedule(self) -> None:
        """Go on after other clients had their turn."""
        if self._ahead and not self._is_scheduled and not self._is_answering():
            self._is_scheduled = True
            self.loop.call_soon(self._parse_next)

    def _parse(self, data: bytes) -> None:
        self._head_bytes += len(data) if self._is_head else 0
        super().data_received(data)
        if self._deadline is None and (self._head_bytes or not self._is_head):
            self._set_deadline(HEAD_S if self._is_head else BODY_S)
        if self._head_bytes > MAX_HEAD_BYTES and not self.transport.is_closing():
            self._refuse(431, "the request head is too large")

    def _is_answering(self) -> bool:
        """Whether a whole request has come and its answer has not been sent."""
        cycle: RequestResponseCycle | None = self.cycle
        return self._is_head and cycle is not None and not cycle.response_complete

    def on_headers_complete(self) -> None:
        """Answer at once if possible, else hand over to ASGI."""
        if self._head_bytes > MAX_HEAD_BYTES:
            raise ValueError("the request head is too large")
        self._is_head, self._head_bytes = False, 0
        if self._may_be_fast() and (answer := self.fast_answer(self.url)) is not None:
            self._is_answered = True
            lines = b"".join([b"%b: %b\r\n" % header for header in self.server_state.default_headers])
            if len(answer[1]) < LARGE_BYTES:
                self.transport.write(lines.join(answer))
            else:
                # Not copied: clients that do not read take no memory.
                self.transport.writelines([answer[0], lines, answer[1]])
            return
        self._clear_deadline()
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

    def on_response_complete(self) -> None:
        """Go on with the next request, if it has come."""
        super().on_response_complete()
        if self._ahead:
            self._schedule()

    def pause_writing(self) -> None:
        """Give a client that does not read until the deadline."""
        self._set_deadline(READ_S)
        super().pause_writing()

    def resume_writing(self) -> None:
        """Go on, as the client reads again."""
        self._clear_deadline()
        super().resume_writing()

    def _make_room(self) -> None:
        """Close the connection that has waited longest for its client, or this one if all others are being answered."""
        others = [other for other in self.connections if isinstance(other, LimitedConnection) and other is not self]
        waiting = [
            other
            for other in others
            if (other.flow.write_paused or not other._is_answering()) and not other.transport.is_closing()
        ]
        if waiting:
            min(waiting, key=lambda other: other._waits_since()).transport.abort()
        else:
            self._refuse(503, "too many connections")

    def _waits_since(self) -> float:
        """When its client was last heard of, by the clock of the loop."""
        idle = self.timeout_keep_alive_task
        return self._waiting_since if idle is None else idle.when() - self.timeout_s

    def _set_deadline(self, limit_s: float) -> None:
        self._clear_deadline()
        self._waiting_since = self.loop.time()
        self._deadline = self.loop.call_later(min(limit_s, self.timeout_s), self.transport.abort)

    def _clear_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def send_400_response(self, msg: str) -> None:
        """Refuse input that is not HTTP."""
        if self._head_bytes > MAX_HEAD_BYTES:
            self._refuse(431, "the request head is too large")
        else:
            self._refuse(400, "invalid HTTP request")

    def _refuse(self, status: int, message: str) -> None:
        body = dumps({"error": True, "message": message, "result": {}}) + b"\n"
        head = f"Content-Type: {JSON}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        self.transport.write(STATUS_LINE[status] + head.encode() + body)
        self.transport.close()
