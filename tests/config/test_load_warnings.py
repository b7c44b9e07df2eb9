import logging
import re
from pathlib import Path

import pytest

from tests.config.written import CLUSTER, CONSUMER, SMALLEST, loaded, notes, warnings


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            CLUSTER + "topic-refesh = 5\n" + CONSUMER,
            (
                "burrow.toml:5: [cluster.local] topic-refesh is not a key of this section and is ignored;"
                " did you mean topic-refresh?"
            ),
        ),
        (
            SMALLEST + 'api_key = "hush"',
            "burrow.toml:10: [consumer.local] api_key is not a key of this section and is ignored",
        ),
        (
            SMALLEST + "[pipelines]",
            "burrow.toml:10: [pipelines] is not a known section and is ignored; did you mean pipeline?",
        ),
        (
            SMALLEST + "[cluster.local.eu]",
            (
                "burrow.toml:10: [cluster.local] eu is not a key of this section and is ignored;"
                ' a name with a dot needs quotes: [cluster."local.eu"]'
            ),
        ),
        (
            CLUSTER,
            "burrow.toml:2: [cluster.local] has no [consumer.NAME], so none of its groups will be seen",
        ),
        (
            SMALLEST + "backfill-earliest = true",
            (
                "burrow.toml:10: [consumer.local] backfill-earliest has no effect:"
                " start-latest is false, so all commits are read anyway"
            ),
        ),
    ],
)
def test_what_is_probably_not_intended_is_a_warning(tmp_path: Path, text: str, expected: str) -> None:
    assert warnings(tmp_path, text) == [expected]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            '[zookeeper]\nservers = ["zk:2181"]',
            "[zookeeper] is not used: there is no [notifier.NAME]",
        ),
        (
            '[storage.s]\nclass-name = "inmemory"\nworkers = 20',
            "[storage.s] workers is accepted but has no effect: Spark distributes the work",
        ),
        (
            '[sasl.x]\nusername = "u"\npassword = "p"\nhandshake-first = true',
            "[sasl.x] handshake-first is accepted but has no effect: clients always agree on the mechanism first",
        ),
    ],
)
def test_what_has_no_meaning_here_is_accepted_with_a_note(tmp_path: Path, text: str, expected: str) -> None:
    (note,) = notes(tmp_path, SMALLEST + text)
    assert re.sub(r"^burrow\.toml:\d+: ", "", note) == expected


def test_warnings_are_logged_and_never_show_the_value(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="warren.config"):
        loaded(tmp_path, SMALLEST + 'passwort = "hush"\n[zookeeper]\nservers = ["a:1"]')
    assert [record.levelname for record in caplog.records] == ["INFO", "WARNING"]
    assert "passwort" in caplog.text
    assert "hush" not in caplog.text
