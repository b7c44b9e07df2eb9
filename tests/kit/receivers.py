"""A real HTTP server that takes messages, and answers as it is told."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


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


@dataclass
class Receiver:
    """What has come, and how to answer."""

    got: list[Got] = field(default_factory=list)
    answers: list[int] = field(default_factory=list)
    """The next answers; 200 when there are none left."""
    hold: threading.Event = field(default_factory=threading.Event)
    """Nobody is answered while this is not set."""
    url: str = ""

    def events(self) -> list[str]:
        """What came, in its order."""
        return [one.event for one in self.got]


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
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_POST = do_PUT = do_DELETE = answer  # noqa: N815 - the names of http.server

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", port), Answering) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        receiver.url = f"http://127.0.0.1:{server.server_port}"
        yield receiver
        receiver.hold.set()
        server.shutdown()
