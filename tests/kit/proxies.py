"""A TCP proxy in front of a server that makes it slow, or takes it away for a while."""

import contextlib
import queue
import socket
import threading
import time
from typing import Self


class Proxy:
    """Forwards connections from a free port of 127.0.0.1; whatever a client sends arrives `delay_s` later.

    `target` may be set after the start. While the proxy is closed, connections are cut and refused.
    """

    def __init__(self, target: int = 0, delay_s: float = 0.0) -> None:
        self.target, self.delay_s = target, delay_s
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._sockets: set[socket.socket] = set()
        self._is_open = True
        self._is_ended = False

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_ended = True
        self._listener.close()
        self.close()

    def close(self) -> None:
        """Cut all connections; new ones are closed at once."""
        self._is_open = False
        for each in list(self._sockets):
            _shut(each)

    def open(self) -> None:
        """Forward connections again."""
        self._is_open = True

    def _accept(self) -> None:
        while not self._is_ended:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if not self._is_open:
                client.close()
                continue
            try:
                server = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                client.close()
                continue
            self._sockets |= {client, server}
            delayed: queue.SimpleQueue[tuple[float, bytes]] = queue.SimpleQueue()
            for run in (
                lambda c=client, d=delayed: self._receive(c, d),
                lambda s=server, d=delayed: self._deliver(d, s),
                lambda s=server, c=client: self._forward(s, c),
            ):
                threading.Thread(target=run, daemon=True).start()

    def _receive(self, client: socket.socket, delayed: "queue.SimpleQueue[tuple[float, bytes]]") -> None:
        data = b"first"
        while data:
            try:
                data = client.recv(65536)
            except OSError:
                data = b""
            delayed.put((time.monotonic() + self.delay_s, data))

    def _deliver(self, delayed: "queue.SimpleQueue[tuple[float, bytes]]", server: socket.socket) -> None:
        while True:
            due, data = delayed.get()
            time.sleep(max(due - time.monotonic(), 0.0))
            try:
                if not data:
                    raise OSError("the client is gone")
                server.sendall(data)
            except OSError:
                _shut(server)
                return

    def _forward(self, server: socket.socket, client: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := server.recv(65536):
                client.sendall(data)
        for each in (server, client):
            _shut(each)
            each.close()
            self._sockets.discard(each)


def _shut(each: socket.socket) -> None:
    with contextlib.suppress(OSError):
        each.shutdown(socket.SHUT_RDWR)


def proxied_listeners(port: int, controller_port: int, **proxies: tuple[int, int]) -> dict[str, str]:
    """The broker settings for listeners behind proxies, by name: the listener's own port and that of its proxy."""
    listeners = {"PLAINTEXT": (port, port), **proxies}
    return {
        "listeners": ",".join(
            [f"{name}://127.0.0.1:{own}" for name, (own, _) in listeners.items()]
            + [f"CONTROLLER://127.0.0.1:{controller_port}"]
        ),
        "advertised.listeners": ",".join(f"{name}://127.0.0.1:{shown}" for name, (_, shown) in listeners.items()),
        "listener.security.protocol.map": ",".join(f"{name}:PLAINTEXT" for name in [*listeners, "CONTROLLER"]),
        "inter.broker.listener.name": "PLAINTEXT",
    }
