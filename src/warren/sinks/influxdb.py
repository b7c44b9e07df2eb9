"""InfluxDB, and whatever takes its line protocol: a point that comes twice is the same point."""

import gzip
import logging
from collections.abc import Iterator, Mapping
from http import HTTPStatus

from warren.config.sinks import InfluxSink
from warren.delivery.http_client import HttpClient
from warren.errors import BusyError, RefusedError
from warren.sinks.encode import line_protocol
from warren.sinks.points import Points

log = logging.getLogger(__name__)

LINES = 10_000
"""In one request."""


class InfluxWriter:
    """Writes lines, to a database of version 1 or a bucket of version 2 and later."""

    def __init__(self, sink: InfluxSink) -> None:
        self._sink = sink
        token = {"Authorization": f"Token {sink.token}"} if sink.token else {}
        self._client = HttpClient.for_sink(sink, token)
        self._is_made = sink.skip_database_creation or sink.is_v2

    def encode(self, points: Points, tags: Mapping[str, str], at_ms: int) -> Iterator[memoryview]:
        """Requests for points of one moment."""
        for at in range(0, len(points), LINES):
            yield line_protocol(points.some(at, min(at + LINES, len(points))), tags, at_ms)

    def deliver(self, request: bytes, place: int) -> bytes | None:
        """Send a packed request."""
        del place
        if not self._is_made:
            self._make()
        sink = self._sink
        headers = {"Content-Type": "text/plain; charset=utf-8"}
        if sink.content_encoding == "gzip":
            headers["Content-Encoding"] = "gzip"
        else:
            request = gzip.decompress(request)
        query: dict[str, str | None] = {"precision": "ns"}
        if sink.is_v2:
            query |= {"org": sink.organization or "", "bucket": sink.bucket or sink.database}
        else:
            query |= {"db": sink.database, "rp": sink.retention_policy, "consistency": sink.write_consistency}
        path = "/api/v2/write" if sink.is_v2 else "/write"
        answer = self._client.send("POST", path, request, headers, query=query, accepted={HTTPStatus.NOT_FOUND})
        if not answer.is_success:
            self._is_made = sink.skip_database_creation or sink.is_v2
            raise BusyError(f"the server answered 404: {answer.text[:200]}")
        return None

    def _make(self) -> None:
        name = self._sink.database.replace("\\", "\\\\").replace('"', '\\"')
        try:
            self._client.send("POST", "/query", query={"q": f'CREATE DATABASE "{name}"'})
        except (RefusedError, BusyError) as error:
            # Who may only write, may well write to one that is there.
            log.warning("sink %s: the database %s was not made: %s", self._sink.name, self._sink.database, error)
        self._is_made = True

    def close(self) -> None:
        """Give the connections back."""
        self._client.close()
