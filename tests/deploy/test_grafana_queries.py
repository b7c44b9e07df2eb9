"""Every request of every dashboard on its real store, with what a sink wrote or Prometheus scraped: each gives data."""

from typing import Any

import pytest

from tests.kit.answers import Elastic, Influx, Prom, Store
from tests.kit.grafana import Json, Series, View, boards, panels, variables
from tests.kit.history import GONE, History
from tests.kit.views import DASHBOARDS, GROUPS, panel_of, series, view_of


def _is_asked(store: str, panel: Json) -> bool:
    """The Elasticsearch that can be had comes without its module for derivatives; OpenSearch has it."""
    kinds = {metric["type"] for target in panel["targets"] for metric in target.get("metrics", ())}
    return store != "elasticsearch" or "derivative" not in kinds


EVERY_PANEL = [
    pytest.param(store, name, panel["id"], id=f"{store}-{name}-{panel['title']}")
    for store, dashboards in DASHBOARDS.items()
    for name, board in boards(dashboards).items()
    for panel in panels(board)
    if _is_asked(store, panel)
]
EVERY_VARIABLE = [
    pytest.param(store, name, variable, id=f"{store}-{name}-{variable}")
    for store, dashboards in DASHBOARDS.items()
    for name, board in boards(dashboards).items()
    for variable in variables(board)
]


@pytest.fixture
def store(backend: str, request: pytest.FixtureRequest) -> Store:
    kinds: dict[str, Any] = {
        "influxdb": Influx, "elasticsearch": Elastic, "opensearch": Elastic, "prometheus": Prom,
    }  # fmt: skip
    store: Store = kinds[backend](request.getfixturevalue(backend))
    return store


@pytest.fixture
def view(history: History, backend: str) -> View:
    return view_of(history, backend)


@pytest.mark.parametrize(("backend", "name", "number"), EVERY_PANEL)
def test_every_request_gives_data(store: Store, view: View, backend: str, name: str, number: int) -> None:
    panel, board = panel_of(backend, name, number)
    answers = store.answer(panel, board, view)
    assert answers
    for ref, answer in answers.items():
        lines = series(answer)
        assert answer, f"{ref} gives nothing"
        assert not lines or any(one.values for one in lines), f"{ref} gives no values"
        rows = [one for one in answer if not isinstance(one, Series)]
        for column in {name for row in rows for name in row}:
            assert any(row[column] not in (None, "", "-") for row in rows), f"{ref} gives no {column}"


@pytest.mark.parametrize(("backend", "name", "variable"), EVERY_VARIABLE)
def test_every_variable_has_values(store: Store, view: View, backend: str, name: str, variable: str) -> None:
    board = boards(DASHBOARDS[backend])[name]
    found = store.values(variables(board)[variable], board, view)
    expected = {
        "cluster": {"one", "two", GONE},
        "group": {*GROUPS, "healthy", "fresh", "bulk-00"},
        "topic": {"orders"},
    }
    assert expected[variable] <= set(found)
    assert len(found) == len(set(found))
