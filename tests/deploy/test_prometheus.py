"""The rules for Prometheus: by its own tools, and from a real Warren through Alertmanager to Slack."""

import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.deploy.trouble import (
    AFTER,
    BEFORE,
    RULES,
    SHIPPED,
    STALLED,
    TroubledTown,
    pending_notifications,
    quick_alertmanager,
    quick_settings,
    sink_in_trouble,
    troubled_config,
    troubles,
)
from tests.kit.alertmanager import running_alertmanager
from tests.kit.demos import ROOT
from tests.kit.prometheus import Alert, Prometheus, amtool, promtool, running_prometheus
from tests.kit.receivers import receiving
from tests.kit.servers import serving, within
from tests.kit.warrens import wait_for
from warren.snapshot.reloads import ReloadOutcome, write_outcome

RULE_TESTS = sorted((SHIPPED / "tests").glob("*.yml"))
PATIENCE_S = 60.0
"""It takes some ten seconds, of which Prometheus waits five before it scrapes for the first time."""
GROUP_PAGE = "https://warren.example.com/#/group/one/billing%2Feu%20%3Cb%3E"


def rules() -> list[dict[str, Any]]:
    """All rules that are shipped."""
    files = [yaml.safe_load(file.read_text()) for file in RULES]
    return [rule for file in files for group in file["groups"] for rule in group["rules"]]


ALERTS = {rule["alert"] for rule in rules() if "alert" in rule}
RECORDS = {rule["record"] for rule in rules() if "record" in rule}


def rule_tests(what: str) -> Iterator[dict[str, Any]]:
    """All cases of a kind."""
    for file in RULE_TESTS:
        for test in yaml.safe_load(file.read_text())["tests"]:
            yield from test.get(what, ())


def test_promtool_accepts_the_rules_and_the_settings() -> None:
    for ended in (promtool("check", "rules", *RULES), promtool("check", "config", SHIPPED / "prometheus.yml")):
        assert ended.returncode == 0, ended.stderr.decode()
        assert "FAILED" not in ended.stdout.decode() + ended.stderr.decode()


def test_amtool_accepts_the_settings_of_alertmanager() -> None:
    ended = amtool("check-config", SHIPPED / "alertmanager.yml")
    assert ended.returncode == 0, ended.stderr.decode()


@pytest.mark.parametrize("file", RULE_TESTS, ids=lambda file: file.stem)
def test_rules_do_what_their_cases_say(file: Path) -> None:
    ended = promtool("test", "rules", file)
    assert ended.returncode == 0, (ended.stdout + ended.stderr).decode()


def test_every_alert_has_a_case_where_it_fires_and_one_where_it_is_quiet() -> None:
    cases = list(rule_tests("alert_rule_test"))
    assert {case["alertname"] for case in cases if case["exp_alerts"]} == ALERTS
    assert {case["alertname"] for case in cases if not case["exp_alerts"]} == ALERTS


def test_every_recorded_series_has_a_case_with_its_value() -> None:
    cases = [case["expr"] for case in rule_tests("promql_expr_test") if case["exp_samples"]]
    assert {name for name in RECORDS if any(expr.startswith(name) for expr in cases)} == RECORDS


def test_every_alert_says_what_where_and_what_to_do() -> None:
    for rule in rules():
        if "alert" in rule:
            assert set(rule["annotations"]) == {"summary", "description", "action", "dashboard"}, rule["alert"]
            assert rule["labels"]["severity"] in ("info", "warning", "critical"), rule["alert"]


def test_every_metric_the_rules_ask_for_is_exposed(tmp_path: Path) -> None:
    town = TroubledTown(tmp_path)
    town.live(1)
    town.tell(**troubles(rejected=0))
    sink_in_trouble(tmp_path, lost=0)
    write_outcome(tmp_path, ReloadOutcome(1, 1))
    with serving(troubled_config(tmp_path)) as [client]:
        text = client.ask("/metrics").text
    exposed = set(re.findall(r"(?m)^# TYPE (\w+)", text))
    asked = set(re.findall(r"(?<![:\w])(?:burrow|kafka|warren)_\w+(?![:\w])", str(rules()))) - {"warren_url"}
    assert len(asked) > 20
    assert asked <= exposed


def test_the_page_names_every_alert_and_every_series() -> None:
    text = (ROOT / "docs" / "prometheus.md").read_text()
    assert set(re.findall(r"^\| `(Kafka\w+|Warren\w+)` \|", text, re.MULTILINE)) == ALERTS
    assert set(re.findall(r"^\| `(\w+:\w+:\w+)` \|", text, re.MULTILINE)) == RECORDS
    for path in re.findall(r"\bdeploy/prometheus/[\w./]*\w", text):
        assert (ROOT / path).exists(), path


def test_a_group_that_stalls_is_told_in_slack_and_so_is_its_end(tmp_path: Path) -> None:
    town = TroubledTown(tmp_path / "data")
    town.live(BEFORE + AFTER)
    town.tell()
    webhook = tmp_path / "webhook"
    with receiving() as slack, serving(troubled_config(town.data)) as [warren]:
        webhook.write_text(f"{slack.url}/services/T0/B0/secret")
        (tmp_path / "alertmanager").mkdir()

        def told(*words: str) -> list[dict[str, Any]]:
            """The messages that say all of this."""
            payloads = [got.json["attachments"][0] for got in slack.got]
            return [one for one in payloads if all(word in one["title"] + one["text"] for word in words)]

        with running_alertmanager(tmp_path / "alertmanager", quick_alertmanager(webhook)) as alertmanager:
            settings = quick_settings(tmp_path / "prometheus", warren.url, alertmanager)
            with running_prometheus(settings):
                bad = wait_for(
                    lambda: told("KafkaPartitionsStalled", " on one"), "the stalled group is told of", PATIENCE_S
                )[0]
                within(lambda: bool(told("23 groups on two are bad at once")), "so is the storm", PATIENCE_S)
                before = told(" on one")
                town.live(1, is_well=True)
                town.tell()
                over = wait_for(lambda: told("Over: *KafkaPartitionsStalled*"), "the end is told", PATIENCE_S)[0]
    assert slack.got[0].path == "/services/T0/B0/secret"
    lines = bad["text"].splitlines()
    at = lines.index("*KafkaPartitionsStalled* (critical): billing/eu &lt;b&gt; on one does not move")
    assert re.fullmatch(
        r"It commits the same offset again and again for 2 partitions, and messages wait there: "
        r"orders/[02] orders/[02]\. The group has not been OK since 20\S+ \S+ \+0000 UTC\.",
        lines[at + 1],
    )
    assert lines[at + 2].startswith("Since 20")
    assert lines[at + 2].endswith(f"<{GROUP_PAGE}|Open in Warren>")
    assert "KafkaPartitionsStopped" in bad["text"], "what happens to a cluster at once is one message"
    assert not [one for one in before if "KafkaConsumerGroupErr" in one["text"]], "the partitions' own alerts say more"
    assert [one["title"] for one in told(" on two")] == ["1 firing on two"], "a storm is one message, once"
    assert "Over: *KafkaPartitionsStalled*: billing/eu &lt;b&gt; on one does not move" in over["text"].splitlines()


def waited_for(prometheus: Prometheus, names: set[str]) -> None:
    """Wait until these alerts fire."""
    try:
        within(lambda: names <= prometheus.firing().keys(), "they fire", PATIENCE_S)
    except AssertionError as error:
        raise AssertionError(f"{error}: {names - prometheus.firing().keys()}") from None


def test_every_alert_fires_on_what_a_real_warren_exposes(tmp_path: Path) -> None:
    town = TroubledTown(tmp_path / "data")
    town.live(BEFORE + AFTER)
    town.tell(**troubles(rejected=1))
    sink_in_trouble(town.data, lost=0)
    pending_notifications(town.data)
    write_outcome(town.data, ReloadOutcome(2, 1, ["burrow.toml:3: no"]))
    at_once = {
        "KafkaConsumerGroupErr", "KafkaConsumerGroupWarn", "KafkaManyConsumerGroupsBad",
        "KafkaPartitionsStopped", "KafkaPartitionsStalled", "KafkaPartitionsRewound",
        "KafkaConsumerSecondsBehind", "KafkaConsumerNotCatchingUp", "KafkaConsumerLosesMessagesSoon",
        "WarrenCycleSlow", "WarrenClusterUnknown", "WarrenTopicsHidden", "WarrenOffsetsBacklog",
        "WarrenTransactionHangs",
        "WarrenSinkFailing", "WarrenSinkLate", "WarrenNotifierFailing", "WarrenNobodyNotifies",
        "WarrenConfigNotReloaded",
    }  # fmt: skip
    later = {
        "KafkaConsumerGroupLagGrowing", "KafkaConsumerLostMessages", "WarrenRecordsRejected", "WarrenMessagesGivenUp",
        "WarrenSinkDropped", "WarrenSinkRefused",
    }  # fmt: skip
    at_last = {"WarrenStuck", "WarrenDown", "WarrenBlind"}
    assert at_once | later | at_last == ALERTS - {"WarrenMissing"}
    with ExitStack() as running:
        [warren] = running.enter_context(serving(troubled_config(town.data)))
        with running_prometheus(quick_settings(tmp_path / "prometheus", warren.url)) as prometheus:
            waited_for(prometheus, at_once)
            assert not prometheus.firing().keys() & (later | at_last)
            town.live(2)
            sink_in_trouble(town.data, lost=2)
            pending_notifications(town.data, is_first_refused=True)
            town.tell(lost=700, **troubles(rejected=4))
            waited_for(prometheus, at_once | later)
            within(
                lambda: {name for name in RECORDS if prometheus.query(name)} == RECORDS,
                "all series are there",
                PATIENCE_S,
            )
            assert [rule for rule in prometheus.rules() if rule["health"] != "ok"] == []
            check_groups(prometheus.firing())

            town.live(1)
            town.now_ms -= 400_000
            town.tell(**troubles(rejected=4))
            waited_for(prometheus, {"WarrenStuck"})
            running.close()
            waited_for(prometheus, {"WarrenDown", "WarrenBlind", "KafkaPartitionsStalled"})
            still = prometheus.firing()
            assert {one["labels"]["consumer_group"] for one in still["KafkaConsumerGroupWarn"]} == {"slow"}
            assert "WarrenStuck" not in still


def check_groups(firing: dict[str, list[Alert]]) -> None:
    """Alerts are on the groups they should be on, and say where these are."""
    groups = {
        name: {one["labels"]["consumer_group"] for one in alerts if one["labels"]["cluster"] == "one"}
        for name, alerts in firing.items()
        if name.startswith("Kafka") and name != "KafkaManyConsumerGroupsBad"
    }
    assert groups == {
        "KafkaConsumerGroupErr": {"stopped", "rewound", STALLED},
        "KafkaConsumerGroupWarn": {"slow"},
        "KafkaConsumerGroupLagGrowing": {"wavy"},
        "KafkaPartitionsStopped": {"stopped"},
        "KafkaPartitionsStalled": {STALLED},
        "KafkaPartitionsRewound": {"rewound"},
        "KafkaConsumerSecondsBehind": {"stopped"},
        "KafkaConsumerNotCatchingUp": {"stopped"},
        "KafkaConsumerLosesMessagesSoon": {"stopped"},
        "KafkaConsumerLostMessages": {"stopped"},
    }
    [stalled] = [one for one in firing["KafkaPartitionsStalled"] if one["labels"]["cluster"] == "one"]
    assert stalled["annotations"]["dashboard"] == GROUP_PAGE
    words = [text for alerts in firing.values() for one in alerts for text in one["annotations"].values()]
    assert not [text for text in words if "error" in text or "no value" in text]
