"""Asks a broker which requests it understands, to tell those that are too old for Warren.

Kafka's clients negotiate versions by themselves, but a broker that does not understand a request closes the connection,
or says nothing, and the client cannot tell why. A broker answers this question before it has authenticated anybody.
"""

import contextlib
import socket
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from warren.kafka.tls_probe import tls_context

OLDEST = "0.10.2"

_LIST_OFFSETS, _METADATA, _OFFSET_FETCH, _API_VERSIONS = 2, 3, 9, 18
_CONNECT_TIMEOUT_S = 1.0
_TIMEOUT_S = 2.0
_CORRELATION_ID = 1
_CLIENT_ID = b"warren"
_MAX_ANSWER = 100_000


class _NoAnswerError(Exception):
    """A broker that took the connection has closed it, or is silent."""


@dataclass(frozen=True, slots=True)
class BrokerVersions:
    """The highest version of each request that a broker understands, by its number; empty before Kafka 0.10."""

    server: str
    requests: Mapping[int, int]

    @property
    def too_old(self) -> str | None:
        """A sentence if the broker is too old for Warren, which asks for all that a group has committed."""
        if self.requests.get(_OFFSET_FETCH, 0) >= 2:
            return None
        known = "0.10.1" if self.requests.get(_LIST_OFFSETS) else "0.10.0"
        found = known if self.requests else "older than 0.10"
        needed = f"and Warren needs {OLDEST} or later: upgrade it"
        return f"{self.server}: the broker's version of Kafka is {found}, {needed}"

    @property
    def has_transactions(self) -> bool:
        """Whether it knows transactions, as brokers since 0.11 do."""
        return self.requests.get(_LIST_OFFSETS, 0) >= 2

    @property
    def creates_topics(self) -> bool:
        """Whether it may create a topic that is only asked for, as brokers before 0.11 do."""
        return self.requests[_METADATA] < 4

    @property
    def creates_offsets_topic(self) -> bool:
        """Whether it may create the offsets topic when it is only asked for, as brokers before 2.8 do."""
        return self.requests[_METADATA] < 10


def ask_versions(options: Mapping[str, Any], servers: Sequence[str]) -> BrokerVersions | None:
    """The versions of the first of these servers that answers; None if none does."""
    for server in servers:
        with contextlib.suppress(OSError, struct.error):
            try:
                return BrokerVersions(server, _ask_requests(options, server))
            except _NoAnswerError:
                if _answers_metadata(options, server):
                    return BrokerVersions(server, {})
    return None


def _ask_requests(options: Mapping[str, Any], server: str) -> dict[int, int]:
    with _connected(options, server) as connection:
        answer = _ask(connection, _API_VERSIONS)
    error, count = struct.unpack_from(">hi", answer)
    if error:
        raise OSError(f"error {error}")
    triples = struct.unpack_from(f">{3 * count}h", answer, 6)
    return dict(zip(triples[::3], triples[2::3], strict=True))


def _answers_metadata(options: Mapping[str, Any], server: str) -> bool:
    """Whether a broker answers the oldest of all requests."""
    try:
        with _connected(options, server) as connection:
            _ask(connection, _METADATA, struct.pack(">i", 0), max_bytes=0)
    except (_NoAnswerError, OSError):
        return False
    return True


@contextlib.contextmanager
def _connected(options: Mapping[str, Any], server: str) -> Iterator[socket.socket]:
    host, _, port = server.rpartition(":")
    host = host.strip("[]")
    with socket.create_connection((host, int(port)), _CONNECT_TIMEOUT_S) as connection:
        connection.settimeout(_TIMEOUT_S)
        if "SSL" not in options.get("security.protocol", ""):
            yield connection
            return
        with tls_context(options).wrap_socket(connection, server_hostname=host) as secured:
            yield secured


def _ask(connection: socket.socket, key: int, body: bytes = b"", max_bytes: int = _MAX_ANSWER) -> bytes:
    """The answer of a broker to version 0 of a request, or as much of it."""
    head = struct.pack(">hhih", key, 0, _CORRELATION_ID, len(_CLIENT_ID))
    request = head + _CLIENT_ID + body
    try:
        connection.sendall(struct.pack(">i", len(request)) + request)
        size, correlation_id = struct.unpack(">ii", _receive(connection, 8))
        if correlation_id != _CORRELATION_ID or size < 4:
            raise OSError("not an answer of Kafka")
        return _receive(connection, min(size - 4, max_bytes))
    except (ConnectionError, TimeoutError) as error:
        raise _NoAnswerError from error


def _receive(connection: socket.socket, size: int) -> bytes:
    received = b""
    while len(received) < size:
        part = connection.recv(size - len(received))
        if not part:
            raise ConnectionResetError("the connection was closed")
        received += part
    return received
