"""A real HTTP server that records requests, and answers as a test wants."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class ReceivedRequest:
    """One request as the receiver saw it."""

    method: str
    path: str
    headers: dict[str, str]
    body: str

    @property
    def key(self) -> str:
        """The idempotency key."""
        return self.headers["idempotency-key"]

    @property
    def event(self) -> str:
        """The event in its header."""
        return self.headers["x-warren-event"]

    @property
    def json(self) -> Any:
        """The decoded body."""
        return json.loads(self.body)


@dataclass
class Receiver:
    """The requests received, and how to answer the next ones."""

    got: list[ReceivedRequest] = field(default_factory=list)
    answers: list[int] = field(default_factory=list)
    """The next answers; 200 when there are none left."""
    says: dict[str, list[Any]] = field(default_factory=dict)
    """The bodies of the next answers by path, as JSON or, if a string, as it is; the last one is repeated."""
    headers: dict[str, str] = field(default_factory=dict)
    """Additional headers of each answer."""
    hold: threading.Event = field(default_factory=threading.Event)
    """Requests wait for their answer until this is set."""
    arrived: int = 0
    """How many requests have come, answered or not."""
    url: str = ""

    def events(self) -> list[str]:
        """The events received, in order."""
        return [request.event for request in self.got]


def _next(answers: list[Any]) -> bytes:
    answer = answers.pop(0) if len(answers) > 1 else answers[0]
    return (answer if isinstance(answer, str) else json.dumps(answer)).encode()


@contextmanager
def receiving(port: int = 0) -> Iterator[Receiver]:
    """Run a receiver that answers 200."""
    receiver = Receiver()
    receiver.hold.set()

    class Answering(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            receiver.arrived += 1
            receiver.hold.wait(20)
            status = receiver.answers.pop(0) if receiver.answers else 200
            headers = {name.lower(): value for name, value in self.headers.items()}
            receiver.got.append(ReceivedRequest(self.command, self.path, headers, body))
            answer_body = _next(receiver.says.get(self.path, [""]))
            self.send_response(status)
            for name, value in {**receiver.headers, "Content-Length": str(len(answer_body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(answer_body)

        do_POST = do_PUT = do_DELETE = answer  # noqa: N815 - the names of http.server

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", port), Answering) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        receiver.url = f"http://127.0.0.1:{server.server_port}"
        yield receiver
        receiver.hold.set()
        server.shutdown()
