"""One real server of each kind for all tests of a module, started when the first of them wants it."""

from collections.abc import Iterator

import pytest

from tests.kit.stores import ELASTICSEARCH, OPENSEARCH, InfluxDb, SearchServer, VictoriaMetrics


@pytest.fixture(scope="module", params=[ELASTICSEARCH, OPENSEARCH], ids=lambda one: one.name)
def search(request: pytest.FixtureRequest) -> Iterator[SearchServer]:
    """Elasticsearch, then OpenSearch; tests share it, so each uses index names of its own."""
    with SearchServer(request.param) as running:
        yield running


@pytest.fixture(scope="module")
def influxdb() -> Iterator[InfluxDb]:
    """InfluxDB 1; tests share it, so each uses a database of its own."""
    with InfluxDb() as running:
        yield running


@pytest.fixture(scope="module")
def victoriametrics() -> Iterator[VictoriaMetrics]:
    """VictoriaMetrics; tests share it, so each uses cluster names of its own."""
    with VictoriaMetrics() as running:
        yield running
