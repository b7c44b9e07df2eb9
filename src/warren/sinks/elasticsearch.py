"""Elasticsearch and OpenSearch: documents that are made once, so that what is there already counts as delivered."""

import gzip
import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import Any

import orjson

from warren.config.sinks import ElasticsearchSink
from warren.delivery.http_client import HttpClient
from warren.errors import BusyError, RefusedError
from warren.sinks.encode import Documents
from warren.sinks.points import Points

log = logging.getLogger(__name__)

DOCUMENTS = 5_000
"""In one request."""
IS_THERE = 409
FILTER_PATH = "errors,items.*.status,items.*.error.type,items.*.error.reason"
"""What of an answer is asked for."""
TRY_AGAIN = frozenset({401, 403, 404, 408, 429, 500, 502, 503, 504})
"""Of the moment, or until somebody mends an account, takes a block off an index, or makes one."""


class ElasticsearchWriter:
    """Writes documents in bulk, and those again alone that were rejected for the moment."""

    def __init__(self, sink: ElasticsearchSink) -> None:
        self._sink = sink
        token = {"Authorization": f"Bearer {sink.auth_bearer_token}"} if sink.auth_bearer_token else {}
        self._client = HttpClient.for_sink(sink, token)
        self._documents = Documents(sink.index_name)
        self._has_template = not sink.manage_template

    def encode(self, points: Points, tags: Mapping[str, str], at_ms: int) -> Iterator[memoryview]:
        """Requests for points of one moment."""
        for at in range(0, len(points), DOCUMENTS):
            yield self._documents.bulk(points.some(at, min(at + DOCUMENTS, len(points))), tags, at_ms)

    def deliver(self, request: bytes, place: int) -> bytes | None:
        """Send a packed request; gives what of it is to be sent again."""
        del place
        if not self._has_template:
            self._make_template()
        headers = {"Content-Type": "application/x-ndjson"}
        body = request
        if self._sink.enable_gzip:
            headers["Content-Encoding"] = "gzip"
        else:
            body = gzip.decompress(request)
        answer = self._client.send("POST", "/_bulk", body, headers, query={"filter_path": FILTER_PATH})
        said = orjson.loads(answer.content)
        return _left(request, said["items"]) if said.get("errors") else None

    def _make_template(self) -> None:
        path = f"/_index_template/{self._sink.template_name}"
        exists = self._client.send("GET", path, accepted={HTTPStatus.NOT_FOUND}).is_success
        if not exists or self._sink.overwrite_template:
            try:
                self._put_template(path)
            except RefusedError as error:
                # It is no fault of the documents: they wait.
                raise BusyError(f"the template of indices is refused: {error}") from None
        self._has_template = True

    def _put_template(self, path: str) -> None:
        headers = {"Content-Type": "application/json"}
        try:
            self._client.send("PUT", path, orjson.dumps(template(self._sink)), headers)
        except RefusedError as error:
            if self._sink.lifecycle is None:
                raise
            log.warning("sink %s: the server has no lifecycles, or not this one: %s", self._sink.name, error)
            self._client.send("PUT", path, orjson.dumps(template(self._sink, has_lifecycle=False)), headers)

    def close(self) -> None:
        """Give the connections back."""
        self._client.close()


def template(sink: ElasticsearchSink, *, has_lifecycle: bool = True) -> dict[str, Any]:
    """How fields are kept: names as keywords, numbers as whole numbers."""
    strings = {"match_mapping_type": "string", "mapping": {"type": "keyword", "ignore_above": 2048}}
    numbers = {"match_mapping_type": "long", "mapping": {"type": "long"}}
    settings: dict[str, Any] = {
        "refresh_interval": "10s",
        "codec": "best_compression",
        "auto_expand_replicas": "0-1",
        "mapping.total_fields.limit": 5000,
    }
    if sink.lifecycle is not None and has_lifecycle:
        key = "plugins.index_state_management.policy_id" if sink.class_name == "opensearch" else "lifecycle.name"
        settings[key] = sink.lifecycle
    made: dict[str, Any] = {
        "index_patterns": [re.sub(r"%[YmdH]([.-]?%[YmdH])*", "*", sink.index_name)],
        # Above the templates that a server brings along.
        "priority": 500,
        "template": {
            "settings": {"index": settings},
            "mappings": {
                "properties": {"@timestamp": {"type": "date"}, "measurement_name": {"type": "keyword"}},
                "dynamic_templates": [{"names": strings}, {"numbers": numbers}],
            },
        },
    }
    return {**made, "data_stream": {}} if sink.data_stream else made


def _left(request: bytes, items: Sequence[Mapping[str, Any]]) -> bytes | None:
    """The lines of documents that may be taken later; those that never will are told of and left out."""
    results = [next(iter(item.values())) for item in items]
    again = [place for place, one in enumerate(results) if one["status"] in TRY_AGAIN]
    lost = [one for one in results if one["status"] >= 400 and one["status"] not in (*TRY_AGAIN, IS_THERE)]
    if lost:
        error = lost[0].get("error", {})
        log.error("%d documents were refused; the first: %s", len(lost), str(error.get("reason"))[:300])
    if not again:
        return None
    lines = gzip.decompress(request).splitlines(keepends=True)
    return b"".join(lines[2 * place] + lines[2 * place + 1] for place in again)
