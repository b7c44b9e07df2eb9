"""InfluxDB, and whatever takes its line protocol: a point that is sent twice is stored once."""

import gzip
import logging
from collections.abc import Iterator, Mapping
from http import HTTPStatus

from warren.config.sinks import InfluxSink
from warren.delivery.http_client import HttpClient, without_credentials
from warren.errors import BusyError, RefusedError
from warren.sinks.encode import line_protocol
from warren.sinks.points import Points

log = logging.getLogger(__name__)

LINES_PER_REQUEST = 10_000


class InfluxWriter:
    """Writes to a database of InfluxDB 1, or to a bucket of version 2 and later."""

    def __init__(self, sink: InfluxSink) -> None:
        self._sink = sink
        self._client = HttpClient(sink, {}, ("Token", sink.token) if sink.token else None)
        self._has_database = sink.skip_database_creation or sink.is_v2

    def encode(self, points: Points, tags: Mapping[str, str], at_ms: int) -> Iterator[memoryview]:
        """Requests for points of one time."""
        for batch in points.batches(LINES_PER_REQUEST):
            yield line_protocol(batch, tags, at_ms)

    def deliver(self, request: bytes, position: int) -> bytes | None:
        """Send a compressed request."""
        del position
        if not self._has_database:
            self._create_database()
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
            self._has_database = sink.skip_database_creation or sink.is_v2
            raise BusyError(f"the server answered 404: {without_credentials(answer.text[:200])}")
        return None

    def _create_database(self) -> None:
        name = self._sink.database.replace("\\", "\\\\").replace('"', '\\"')
        try:
            self._client.send("POST", "/query", query={"q": f'CREATE DATABASE "{name}"'})
        except (RefusedError, BusyError) as error:
            # An account that may only write can do so if the database exists.
            log.warning("sink %s: database %s could not be created: %s", self._sink.name, self._sink.database, error)
        self._has_database = True
