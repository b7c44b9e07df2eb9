"""A real HTTP server that takes messages, and answers as it is told."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Got:
    """One request as the receiver saw it."""

    method: str
    path: str
    headers: dict[str, str]
    body: str

    @property
    def key(self) -> str:
        """What tells it apart from others, however often it is sent."""
        return self.headers["idempotency-key"]

    @property
    def event(self) -> str:
        """What it is about."""
        return self.headers["x-warren-event"]

    @property
    def json(self) -> Any:
        """What it says."""
        return json.loads(self.body)


@dataclass
class Receiver:
    """What has come, and how to answer."""

    got: list[Got] = field(default_factory=list)
    answers: list[int] = field(default_factory=list)
    """The next answers; 200 when there are none left."""
    says: dict[str, list[Any]] = field(default_factory=dict)
    """What the next answers of a path say, as JSON or, where it is a text, as it is; the last one stays."""
    headers: dict[str, str] = field(default_factory=dict)
    """Further headers of each answer."""
    hold: threading.Event = field(default_factory=threading.Event)
    """Nobody is answered while this is not set."""
    url: str = ""

    def events(self) -> list[str]:
        """What came, in its order."""
        return [one.event for one in self.got]


def _next(answers: list[Any]) -> bytes:
    said = answers.pop(0) if len(answers) > 1 else answers[0]
    return (said if isinstance(said, str) else json.dumps(said)).encode()


@contextmanager
def receiving(port: int = 0) -> Iterator[Receiver]:
    """A receiver that is well."""
    receiver = Receiver()
    receiver.hold.set()

    class Answering(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            receiver.hold.wait(20)
            status = receiver.answers.pop(0) if receiver.answers else 200
            headers = {name.lower(): value for name, value in self.headers.items()}
            receiver.got.append(Got(self.command, self.path, headers, body))
            said = _next(receiver.says.get(self.path, [""]))
            self.send_response(status)
            for name, value in {**receiver.headers, "Content-Length": str(len(said))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(said)

        do_POST = do_PUT = do_DELETE = answer  # noqa: N815 - the names of http.server

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", port), Answering) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        receiver.url = f"http://127.0.0.1:{server.server_port}"
        yield receiver
        receiver.hold.set()
        server.shutdown()
