"""The examples and tables of docs/notifiers.md."""

import re
from pathlib import Path

import pytest

from tests.config.written import SMALLEST, loaded
from tests.kit.demos import ROOT, readme_blocks
from tests.notify.notifications import is_clean, template_findings
from warren.config import Notifier
from warren.config.section import keys_of
from warren.incidents.model import Event
from warren.notify.templates.jinja import parse, variables
from warren.notify.templates.render import read_templates
from warren.notify.templates.sample import sample_notification, sample_storm

DOCS = "docs/notifiers.md"
EXAMPLES = readme_blocks("toml", DOCS)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the templates that the page shows."""
    for kind, name in (("gotemplate", "lag.tmpl"), ("jinja", "lag.j2")):
        [text] = readme_blocks(kind, DOCS)
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.splitlines()[0])
def test_every_example_is_accepted(folder: Path, example: str, caplog: pytest.LogCaptureFixture) -> None:
    config = loaded(folder, SMALLEST + example)
    assert is_clean(template_findings(config))
    assert caplog.text == "", "no warnings"


def test_there_is_an_example_of_each_class(folder: Path) -> None:
    configs = [loaded(folder, SMALLEST + example) for example in EXAMPLES]
    shown = {notifier.class_name for config in configs for notifier in config.notifiers.values()}
    named = set(re.findall(r"^\| `(\w+)` \|", (ROOT / DOCS).read_text(), re.MULTILINE))
    assert {"http", "email", "slack", "alertmanager", "apprise"} == shown
    assert shown | {"null"} <= named


def test_every_key_it_names_exists() -> None:
    text = (ROOT / DOCS).read_text()
    table = "".join(re.findall(r"^\| `\w+` \|.*\| (.*) \|$", text, re.MULTILINE))
    below = re.search(r"All have .*?\n\n", text, re.DOTALL)
    assert below is not None
    named = set(re.findall(r"`([a-z-]+)`", table + below[0])) - {"slack", "alertmanager", "apprise"}
    assert len(named) > 20
    assert named <= set(keys_of(Notifier))


def test_both_templates_render_the_same_lines(folder: Path) -> None:
    config = loaded(folder, SMALLEST + EXAMPLES[-1])
    notification = sample_notification("x", Event.OPEN)
    rendered = [read_templates(config.notifiers[name], "https://w").render(notification) for name in ("go", "jinja")]
    expected = [
        "ERR: sample-group on sample-cluster lags by 46200 messages.",
        "payments 3: STALL",
        "orders 0: WARN",
    ]
    link = "https://w/#/group/sample-cluster/sample-group"
    assert [(text or "").splitlines() for text in rendered] == [expected, [*expected, link]]
    storm = read_templates(config.notifiers["jinja"]).render(sample_storm("x", Event.OPEN))
    assert "sample-group-1, sample-group-2," in (storm or "")


def test_the_table_of_names_is_complete() -> None:
    rows = re.findall(
        r"^\| (`.*?) \|", (ROOT / DOCS).read_text().split("templates can use these names")[1], re.MULTILINE
    )
    named = re.findall(r"`(\w+)`", "".join(rows))
    known = variables(sample_notification("x", Event.OPEN), parse("", "t.j2", {}, None))
    assert sorted(named) == sorted(known)
