"""Elasticsearch and OpenSearch: documents are created once, and one that exists already counts as delivered."""

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
from warren.sinks.encode import bulk_request
from warren.sinks.points import Points

log = logging.getLogger(__name__)

DOCUMENTS_PER_REQUEST = 5_000
EXISTS = 409
FILTER_PATH = "errors,items.*.status,items.*.error.type,items.*.error.reason"
"""The parts of an answer that are used."""
RETRIED = frozenset({401, 403, 404, 408, 429, 500, 502, 503, 504})
"""Statuses of documents that may be taken later, also once somebody mends an account or an index."""


class ElasticsearchWriter:
    """Writes documents in bulk, and repeats only those that were rejected for now."""

    def __init__(self, sink: ElasticsearchSink) -> None:
        self._sink = sink
        token = sink.auth_bearer_token
        self._client = HttpClient(sink, {}, ("Bearer", token) if token else None)
        self._has_template = not sink.manage_template

    def encode(self, points: Points, tags: Mapping[str, str], at_ms: int) -> Iterator[memoryview]:
        """Requests for points of one time."""
        for batch in points.batches(DOCUMENTS_PER_REQUEST):
            yield bulk_request(self._sink.index_name, batch, tags, at_ms)

    def deliver(self, request: bytes, position: int) -> bytes | None:
        """Send a compressed request; returns the documents of it that are to be sent again."""
        del position
        if not self._has_template:
            self._ensure_template()
        headers = {"Content-Type": "application/x-ndjson"}
        if self._sink.enable_gzip:
            headers["Content-Encoding"] = "gzip"
        body = request if self._sink.enable_gzip else gzip.decompress(request)
        answer = self._client.send("POST", "/_bulk", body, headers, query={"filter_path": FILTER_PATH})
        result = orjson.loads(answer.content)
        return _to_repeat(request, result["items"]) if result.get("errors") else None

    def _ensure_template(self) -> None:
        path = f"/_index_template/{self._sink.template_name}"
        exists = self._client.send("GET", path, accepted={HTTPStatus.NOT_FOUND}).is_success
        if not exists or self._sink.overwrite_template:
            self._put_template(path, self._sink.lifecycle)
        self._has_template = True

    def _put_template(self, path: str, lifecycle: str | None) -> None:
        headers = {"Content-Type": "application/json"}
        try:
            self._client.send("PUT", path, orjson.dumps(template(self._sink, lifecycle)), headers)
        except RefusedError as error:
            if lifecycle is None:
                # The documents are not to blame: they wait.
                raise BusyError(f"the index template is refused: {error}") from None
            log.warning("sink %s: the server does not know the lifecycle policy: %s", self._sink.name, error)
            self._put_template(path, None)


def template(sink: ElasticsearchSink, lifecycle: str | None) -> dict[str, Any]:
    """The index template: texts are keywords, whole numbers long and others double."""
    strings = {"match_mapping_type": "string", "mapping": {"type": "keyword", "ignore_above": 2048}}
    numbers = {"match_mapping_type": "long", "mapping": {"type": "long"}}
    decimals = {"match_mapping_type": "double", "mapping": {"type": "double"}}
    settings: dict[str, Any] = {
        "refresh_interval": "10s",
        "codec": "best_compression",
        "auto_expand_replicas": "0-1",
        "mapping.total_fields.limit": 5000,
    }
    if lifecycle is not None:
        key = "plugins.index_state_management.policy_id" if sink.class_name == "opensearch" else "lifecycle.name"
        settings[key] = lifecycle
    body: dict[str, Any] = {
        "index_patterns": [re.sub(r"%[YmdH]([.-]?%[YmdH])*", "*", sink.index_name)],
        # Above the templates that servers are shipped with.
        "priority": 500,
        "template": {
            "settings": {"index": settings},
            "mappings": {
                "properties": {"@timestamp": {"type": "date"}, "measurement_name": {"type": "keyword"}},
                "dynamic_templates": [{"names": strings}, {"numbers": numbers}, {"decimals": decimals}],
            },
        },
    }
    return {**body, "data_stream": {}} if sink.data_stream else body


def _to_repeat(request: bytes, items: Sequence[Mapping[str, Any]]) -> bytes | None:
    """The lines of documents that may be taken later; those that never will be are logged and left out."""
    results = [next(iter(item.values())) for item in items]
    repeated = [index for index, result in enumerate(results) if result["status"] in RETRIED]
    refused = [result for result in results if result["status"] >= 400 and result["status"] not in (*RETRIED, EXISTS)]
    if refused:
        error = refused[0].get("error", {})
        log.error("%d documents were refused; the first: %s", len(refused), str(error.get("reason"))[:300])
    if not repeated:
        return None
    lines = gzip.decompress(request).splitlines(keepends=True)
    return b"".join(lines[2 * index] + lines[2 * index + 1] for index in repeated)
