"""Templates render as Go renders them: `go/main.go` made the outputs, these tests only read them."""

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gotemplate import TemplateError, parse
from gotemplate.burrow_functions import HELPERS
from packages.gotemplate.tests.messages import to_data

HERE = Path(__file__).parent
DATA = {path.stem: json.loads(path.read_text())["data"] for path in HERE.glob("cases/*.json")}
OUTCOMES = [
    pytest.param(path.stem, outcome, id=f"{path.stem}-{place}")
    for path in sorted(HERE.glob("outputs/*.json"))
    for place, outcome in enumerate(json.loads(path.read_text()))
]
LINE = re.compile(r"template: case:(\d+)")


@pytest.fixture(autouse=True)
def _zone_of_the_generator(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patched:
        patched.setenv("TZ", "CET-1")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.parametrize(("name", "outcome"), OUTCOMES)
def test_a_template_renders_as_in_go(name: str, outcome: dict[str, Any]) -> None:
    def render() -> str:
        return parse(outcome["template"], "case", HELPERS).render(to_data(DATA[name]))

    if "error" not in outcome:
        assert render() == outcome["output"]
        return
    with pytest.raises(TemplateError) as raised:
        render()
    line = LINE.match(outcome["error"])
    assert line, outcome["error"]
    assert str(raised.value).startswith(line[0] + ":")


@pytest.mark.parametrize("name", DATA)
def test_each_case_has_an_outcome(name: str) -> None:
    templates = json.loads((HERE / f"cases/{name}.json").read_text())["templates"]
    outcomes = json.loads((HERE / f"outputs/{name}.json").read_text())
    assert [outcome["template"] for outcome in outcomes] == templates
