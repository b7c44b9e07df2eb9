"""Every request of every dashboard and rule on its real store: each gives data, and the numbers of the snapshot."""

from dataclasses import replace
from statistics import median
from typing import Any

import pytest
import yaml

from tests.kit.answers import Elastic, Influx, Prom, Store
from tests.kit.grafana import PROVISIONING, Json, Series, View, boards, panels, variables
from tests.kit.history import EVERY_MS, GONE, MOMENTS, SLOW, History
from tests.kit.prometheus import Prometheus
from tests.kit.stores import InfluxDb, SearchServer
from tests.kit.views import CHOSEN, DASHBOARDS, GROUPS, panel_of, series, view_of
from warren.domain.windows import UNKNOWN
from warren.sinks.points import Points


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


@pytest.fixture
def every_store(
    elasticsearch: SearchServer, opensearch: SearchServer, influxdb: InfluxDb, prometheus: Prometheus
) -> dict[str, Store]:
    return {
        "elasticsearch": Elastic(elasticsearch),
        "opensearch": Elastic(opensearch),
        "influxdb": Influx(influxdb),
        "prometheus": Prom(prometheus),
    }


def lag_on_orders(points: list[Points], group: str) -> int:
    """How far a group is behind on a topic, as a sink writes it."""
    [held] = [one for one in points if one.name == "burrow_partition"]
    rows = zip(*(held.tags[name].to_pylist() for name in ("cluster", "group", "topic")), strict=True)
    return sum(int(held.numbers["lag"][place]) for place, row in enumerate(rows) if row == ("one", group, "orders"))


def test_groups_have_the_lag_of_the_snapshot(history: History, every_store: dict[str, Store]) -> None:
    held = {(row["cluster"], row["group"]): row for row in history.snapshot.groups().to_pylist()}
    expected = {
        name: row["totallag"] for name, row in held.items() if row["group"] in GROUPS and row["cluster"] == "one"
    }
    assert max(expected.values()) > 1000
    for backend, store in every_store.items():
        panel, board = panel_of(backend, "group", "Total lag")
        found = store.answer(panel, board, view_of(history, backend))["A"]
        names = {"influxdb": ("cluster", "group"), "prometheus": ("cluster", "consumer_group")}
        cluster, group = names.get(backend, ("tag.cluster", "tag.group"))
        newest = {(one.labels[cluster], one.labels[group]): one.values[-1] for one in series(found)}
        if backend == "prometheus":
            # The last step may be a few seconds before the last snapshot.
            assert newest.keys() == expected.keys()
            assert all(0 <= expected[name] - lag <= 10 * 30 * 3 for name, lag in newest.items()), newest
        else:
            assert newest == expected


@pytest.mark.parametrize(
    ("title", "column"),
    [
        ("Time behind", "seconds_behind"),
        ("Caught up in", "catch_up_low_s"),
        ("Retention left", "retention_left_s"),
        ("Lost messages", "lost"),
    ],
)
def test_groups_have_the_lag_in_time_of_the_snapshot(
    history: History, every_store: dict[str, Store], title: str, column: str
) -> None:
    for backend, store in every_store.items():
        panel, board = panel_of(backend, "group", title)
        view = replace(view_of(history, backend), chosen={**CHOSEN, "group": ["slow"]})
        [found] = series(store.answer(panel, board, view)["A"])
        assert found.values[-1] == SLOW[column], backend


@pytest.mark.parametrize("interval_ms", [EVERY_MS, 5 * EVERY_MS])
def test_the_sum_over_partitions_is_exact_however_long_an_interval_is(
    history: History, every_store: dict[str, Store], interval_ms: int
) -> None:
    stalled = {at_ms: lag_on_orders(points, "stalled") for at_ms, points in history.moments.items()}
    assert len(set(stalled.values())) == MOMENTS, "it changes each time"
    intervals: dict[int, list[int]] = {}
    for at_ms, lag in sorted(stalled.items()):
        intervals.setdefault(at_ms // interval_ms * interval_ms, []).append(lag)
    for backend in ("influxdb", "opensearch", "elasticsearch"):
        panel, board = panel_of(backend, "group", "Lag by topic")
        view = replace(view_of(history, backend), interval_ms=interval_ms, chosen={**CHOSEN, "group": ["stalled"]})
        [found] = series(every_store[backend].answer(panel, board, view)["A"])
        known = {at_ms: value for at_ms, value in found.points.items() if value is not None}
        is_newest = backend == "influxdb"
        assert known == {at: lags[-1] if is_newest else sum(lags) / len(lags) for at, lags in intervals.items()}


def test_rates_are_by_the_second(history: History, every_store: dict[str, Store]) -> None:
    for backend in ("influxdb", "opensearch"):
        panel, board = panel_of(backend, "topic", "Produced by partition")
        view = replace(view_of(history, backend), chosen={"cluster": ["one"], "topic": ["orders"]})
        found = series(every_store[backend].answer(panel, board, view)["A"])
        assert len(found) == 3
        # Ten messages each ten seconds.
        assert {value for one in found for value in one.values} == {1.0}
        panel, board = panel_of(backend, "group", "Produced and consumed")
        view = replace(view, chosen={"cluster": ["one"], "group": ["slow"]})
        both = every_store[backend].answer(panel, board, view)
        [produced], [consumed] = series(both["A"]), series(both["B"])
        assert set(produced.values) == {2.0}, "two partitions"
        assert set(consumed.values) == {1.1}, "one of them at a tenth of the pace"
        panel, board = panel_of(backend, "group", "Lag growth")
        [growth] = series(every_store[backend].answer(panel, board, view)["A"])
        assert {round(value, 6) for value in growth.values} == {0.9}


def test_prometheus_has_the_rates_too(history: History, every_store: dict[str, Store]) -> None:
    panel, board = panel_of("prometheus", "group", "Produced and consumed")
    view = replace(view_of(history, "prometheus"), interval_ms=1000, chosen={"cluster": ["one"], "group": ["slow"]})
    both = every_store["prometheus"].answer(panel, board, view)
    [produced], [consumed] = series(both["A"]), series(both["B"])
    # Twenty come in and eleven are committed in a second, or a bit more on a busy machine.
    assert 0 < median(produced.values) <= 22
    assert median(consumed.values) / median(produced.values) == pytest.approx(11 / 20, rel=0.2)
    panel, board = panel_of("prometheus", "overview", "Groups in error")
    counts = series(every_store["prometheus"].answer(panel, board, replace(view, chosen=CHOSEN))["A"])
    assert {one.labels["cluster"]: one.values[-1] for one in counts} == {
        name: state.groups_by_status.get("ERR", 0)
        for name, state in history.snapshot.manifest.clusters.items()
        if name != GONE
    }


def test_the_worst_partitions_have_their_owners(history: History, every_store: dict[str, Store]) -> None:
    held = {
        (row["group"], str(row["partition"])): (row["current_lag"], row["owner"], row["client_id"])
        for row in history.snapshot.partitions().to_pylist()
        if row["group"] in ("slow", "stalled") and row["cluster"] == "one" and row["current_lag"] != UNKNOWN
    }
    assert all(owner for _, owner, _ in held.values())
    for backend in ("influxdb", "opensearch", "elasticsearch"):
        panel, board = panel_of(backend, "group", "Worst partitions")
        view = replace(view_of(history, backend), chosen={"cluster": ["one"], "group": ["slow", "stalled"]})
        found = every_store[backend].answer(panel, board, view)["A"]
        [organize] = [one["options"] for one in panel["transformations"] if one["id"] == "organize"]
        rows = [
            {organize["renameByName"].get(name, name): value for name, value in row.items()}
            for row in found
            if not isinstance(row, Series)
        ]
        assert {"status", "owner", "client id"} <= rows[0].keys()
        shown = {(row["group"], row["partition"]): (row["lag"], row["owner"], row["client id"]) for row in rows}
        assert shown == held


def rules() -> list[Json]:
    """The alert rules that come with the dashboards."""
    groups = yaml.safe_load((PROVISIONING / "alerting" / "rules.yaml").read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule["uid"])
def test_every_rule_sees_the_groups_that_it_should(history: History, every_store: dict[str, Store], rule: Json) -> None:
    request = rule["data"][0]
    store = every_store["opensearch"]
    assert isinstance(store, Elastic)
    now = view_of(history, "opensearch")
    view = View(now.to_ms - request["relativeTimeRange"]["from"] * 1000, now.to_ms, request["model"]["intervalMs"])
    found = series(store.target(request["model"], request["model"]["query"], view))
    by_group = {(one.labels["tag.cluster"], one.labels["tag.group"]): one for one in found}
    assert ("one", "slow") in by_group
    assert len(by_group) == history.snapshot.groups().num_rows
    values = by_group["one", "slow"].values
    number = {"last": values[-1], "mean": sum(values) / len(values)}[rule["data"][1]["model"]["reducer"]]
    if rule["uid"] == "warren-lag":
        [lag] = [row["totallag"] for row in history.snapshot.groups().to_pylist() if row["group"] == "slow"]
        assert number == lag
    else:
        # Nine messages each ten seconds; the last minute is not whole, and so has a lower one.
        assert max(values) == pytest.approx(0.9)
        assert 0.4 < number <= max(values)
    assert rule["data"][2]["model"]["conditions"][0]["evaluator"]["type"] == "gt"
