"""What Grafana is given: dashboards as the definition makes them and as its own model reads them, and settings."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard
from grafana_foundation_sdk.models.expr import TypeMath

from deploy.grafana.define.boards import BOARDS
from deploy.grafana.define.build import BACKENDS, text_of
from tests.kit.grafana import DASHBOARDS, PROVISIONING, Json, boards, panels
from warren.domain.status import Status

FILES = sorted(DASHBOARDS.glob("*/*.json"))
README = DASHBOARDS.parent / "README.md"
WIDTH = 24


def test_the_files_are_what_the_definition_gives() -> None:
    made = {
        DASHBOARDS / backend.name / f"{board.name}.json": text_of(board, backend)
        for backend in BACKENDS
        for board in BOARDS
    }
    assert sorted(made) == FILES
    stale = [str(path) for path, text in made.items() if path.read_text() != text]
    assert not stale, "run make grafana"


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_grafanas_own_model_reads_all_of_a_dashboard(path: Path) -> None:
    register_default_plugins()
    held = json.loads(path.read_text())
    for panel in panels(held):
        # The model takes every request of a panel for one of the panel's store.
        sums = [one for one in panel["targets"] if one["datasource"]["type"] == "__expr__"]
        assert _again(TypeMath.from_json(one) for one in sums) == sums
        panel["targets"] = [one for one in panel["targets"] if one not in sums]
    assert _again([Dashboard.from_json(held)]) == [held]


def _again(models: Any) -> Any:
    return json.loads(json.dumps(list(models), cls=JSONEncoder))


@pytest.mark.parametrize("backend", [backend.name for backend in BACKENDS])
def test_dashboards_are_whole_and_lead_to_each_other(backend: str) -> None:
    found = boards(backend)
    uids = {board["uid"] for board in found.values()}
    assert uids == {f"warren-{backend}-{name}" for name in ("overview", "group", "partitions", "topic", "pipeline")}
    for board in found.values():
        numbers = Counter(panel["id"] for panel in board["panels"])
        assert max(numbers.values()) == 1
        assert _is_laid_out(board)
        names = {variable["name"] for variable in board["templating"]["list"]}
        for link in _links(board):
            assert set(re.findall(r"/d/([\w-]+)", link)) <= uids
            used = {name for name in re.findall(r"\$\{(\w+)", link) if not name.startswith("__")}
            assert used <= names, link
        assert len([link for link in _links(board) if link.startswith("${warren}")]) >= 1
        for panel in panels(board):
            assert panel["title"]
            assert panel["description"]
            assert panel["fieldConfig"]["defaults"]["noValue"]


def _links(found: Any) -> Iterator[str]:
    if isinstance(found, dict):
        if isinstance(found.get("url"), str):
            yield found["url"]
        found = list(found.values())
    if isinstance(found, list):
        for one in found:
            yield from _links(one)


def _is_laid_out(board: Json) -> bool:
    """Whether no panel covers another, or stands out."""
    taken: set[tuple[int, int]] = set()
    for panel in board["panels"]:
        place = panel["gridPos"]
        cells = {(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])}
        if taken & cells or place["x"] + place["w"] > WIDTH:
            return False
        taken |= cells
    return True


def test_words_for_verdicts_are_burrows() -> None:
    for backend in BACKENDS:
        shown = [
            mapping["options"]
            for board in boards(backend.name).values()
            for panel in panels(board)
            if panel["type"] == "state-timeline" and "Status" in panel["title"]
            for mapping in panel["fieldConfig"]["defaults"]["mappings"]
        ]
        assert shown
        for options in shown:
            assert {int(code): one["text"] for code, one in options.items()} == {one.value: one.name for one in Status}


def settings(name: str) -> Json:
    """A file that Grafana reads when it starts."""
    held: Json = yaml.safe_load((PROVISIONING / name).read_text())
    assert held["apiVersion"] == 1
    return held


def test_every_dashboard_finds_its_data_source() -> None:
    sources = {one["uid"]: one for one in settings("datasources/warren.yaml")["datasources"]}
    for backend in BACKENDS:
        assert sources[f"warren-{backend.name}"]["type"] == backend.name
        for board in boards(backend.name).values():
            [variable] = [one for one in board["templating"]["list"] if one["type"] == "datasource"]
            assert (variable["query"], variable["current"]["value"]) == (backend.name, f"warren-{backend.name}")
    [provider] = settings("dashboards/warren.yaml")["providers"]
    assert (provider["type"], provider["options"]["path"]) == ("file", "$WARREN_DASHBOARDS")


def test_rules_are_whole_and_somebody_is_told() -> None:
    [point] = settings("alerting/contacts.yaml")["contactPoints"]
    [receiver] = point["receivers"]
    assert (receiver["type"], receiver["settings"]["url"]) == ("slack", "$WARREN_SLACK_WEBHOOK")
    [policy] = settings("alerting/policies.yaml")["policies"]
    assert policy["receiver"] == point["name"]
    [group] = settings("alerting/rules.yaml")["groups"]
    sources = {one["uid"] for one in settings("datasources/warren.yaml")["datasources"]}
    for rule in group["rules"]:
        request, reduced, threshold = rule["data"]
        assert request["datasourceUid"] in sources
        assert reduced["model"]["expression"] == request["refId"]
        assert threshold["model"]["expression"] == reduced["refId"]
        assert rule["condition"] == threshold["refId"]
        assert all(one["model"]["refId"] == one["refId"] for one in rule["data"])
        shown = boards("elasticsearch")["group"]
        assert rule["annotations"]["__dashboardUid__"] == shown["uid"]
        assert int(rule["annotations"]["__panelId__"]) in {panel["id"] for panel in panels(shown)}
        # A dollar would be taken for a variable of the environment.
        assert "$" not in json.dumps(rule)


def test_every_variable_of_the_environment_is_explained() -> None:
    used = {name for path in PROVISIONING.glob("*/*.yaml") for name in re.findall(r"\$(WARREN_\w+)", path.read_text())}
    assert used
    assert used == set(re.findall(r"`(WARREN_\w+)`", README.read_text()))
