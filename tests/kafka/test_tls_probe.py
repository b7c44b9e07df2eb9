"""Servers that close connections: those that do so always, and those that are being stopped."""

import contextlib
import socket
import threading
from collections.abc import Iterator

import pytest

from warren.kafka import tls_probe
from warren.kafka.client_errors import CLOSED, NO_TLS

TLS, OPEN = {"security.protocol": "SSL"}, {"security.protocol": "PLAINTEXT"}


@contextlib.contextmanager
def closing_connections(most: int) -> Iterator[str]:
    """A server that closes so many connections at their first bytes, and then is gone."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            for _ in range(most):
                connection, _ = server.accept()
                connection.recv(1)
                connection.close()
            server.close()

        threading.Thread(target=serve, daemon=True).start()
        yield f"127.0.0.1:{server.getsockname()[1]}"


@pytest.mark.parametrize(
    ("options", "connections", "found"),
    [(TLS, 2, NO_TLS), (TLS, 1, None), (OPEN, 2, CLOSED), (OPEN, 1, None)],
    ids=["no TLS", "TLS, being stopped", "closed", "open, being stopped"],
)
def test_a_broker_that_is_being_stopped_is_not_one_without_tls(
    options: dict[str, str], connections: int, found: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tls_probe, "PAUSE_S", 0.1)
    with closing_connections(connections) as server:
        assert tls_probe.find_tls_error(options, server) == found
