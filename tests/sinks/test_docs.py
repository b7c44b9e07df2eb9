"""What docs/sinks.md and docs/lake.md say is true."""

import json
import re
from pathlib import Path

import pytest

from tests.config.written import SMALLEST, loaded
from tests.kit.demos import ROOT, readme_blocks
from tests.kit.verdicts import Verdicts
from tests.sinks.test_verdict_changes import STALL, Feed
from warren.config.section import keys_of
from warren.config.sinks import ElasticsearchSink, InfluxSink, KafkaSink

DOCS, LAKE = "docs/sinks.md", "docs/lake.md"
EXAMPLES = [*readme_blocks("toml", DOCS), *readme_blocks("toml", LAKE)]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.splitlines()[0])
def test_every_example_is_accepted(tmp_path: Path, example: str, caplog: pytest.LogCaptureFixture) -> None:
    assert loaded(tmp_path, SMALLEST + example).sinks
    assert caplog.text == "", "nothing in it is odd"


def test_every_key_that_is_the_same_exists() -> None:
    text = (ROOT / DOCS).read_text()
    rows = re.findall(r"^\| (.*) \| (.*) \|$", text.split("## From telegraf.conf")[1], re.MULTILINE)
    same = " ".join(left for left, right in rows if right.startswith(("the same", "accepted")))
    named = {name.replace("_", "-") for name in re.findall(r"`([a-z_]+)`", same)}
    assert len(named) > 25
    known = {key for kind in (ElasticsearchSink, InfluxSink, KafkaSink) for key in keys_of(kind)}
    assert named <= known


def test_a_message_of_a_change_is_as_it_is_shown(tmp_path: Path) -> None:
    [example] = readme_blocks("json", DOCS)
    shown = json.loads(example)
    lags = {"billing": {"seconds_behind": 95.5, "catch_up_low_s": 40.0, "retention_left_s": 7200.0}}
    *_, told = Feed().send(Verdicts(tmp_path).publish({"local": {"billing": STALL}}, time_lags=lags))
    assert list(shown) == list(told)
    assert list(shown["worst"]) == list(told["worst"])
