"""A Warren whose configuration changes while it runs: what changes at once, and what is not lost."""

import copy
import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from tests.kit.kafka import commit
from tests.kit.receivers import Receiver, receiving
from tests.kit.servers import Client, Got, group_path
from tests.kit.warrens import Recorder, Sections, WarrenRun, sections_for, wait_for
from warren.delivery.sink_status import read_status
from warren.demo.broker import Kafka
from warren.demo.workload.committing_groups import Stalled
from warren.demo.workload.producer import Producer
from warren.demo.workload.thread import stop_all
from warren.demo.workload.topics import create_topics, fill_topic
from warren.incidents.store.reader import IncidentQuery, read_incidents

pytestmark = pytest.mark.timeout(600)

TOPIC, QUIET, SINK_TOPIC = "reload-orders", "reload-quiet", "reload-lag"
FILLED = 2_000


@dataclass
class Live:
    """A Warren on a real broker, its configuration, and who asks it."""

    run: WarrenRun
    sections: Sections
    receiver: Receiver
    record: Recorder

    @property
    def client(self) -> Client:
        def urls() -> list[str]:
            return re.findall(r"answering at (\S+)", self.run.log)

        return Client(wait_for(urls, "the API is there")[0])

    @contextmanager
    def changed(self) -> Iterator[Sections]:
        """The sections to change; written to burrow.toml at the end, but not yet reloaded."""
        sections = copy.deepcopy(self.sections)
        yield sections
        self.run.configure(sections)

    def reload(self) -> Got:
        return self.client.ask("/v3/admin/reload", "POST", b"")

    def groups(self, cluster: str = "local") -> list[str]:
        found: list[str] = self.client.json(f"/v3/kafka/{cluster}/consumer")["consumers"]
        return found

    def stalled(self) -> tuple[str, int]:
        """The status of the stalled group, and since when."""
        explanation = self.client.json(group_path("reload-stalled", "explain", "local"))["explanation"]
        return explanation["status"], explanation["since"]

    def sent(self) -> list[tuple[str, str]]:
        return sorted((got.path, got.event) for got in self.receiver.got)

    def metric(self, name: str) -> float:
        [value] = re.findall(rf"^{name} (\S+)$", self.client.ask("/metrics").text, re.MULTILINE)
        return float(value)

    def count(self, line: str) -> int:
        return self.run.log.count(line)


@pytest.fixture(scope="module")
def live(kafka: Kafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """One stalled group with an open incident, and two that committed once; judged every second."""
    home = tmp_path_factory.mktemp("reload")
    create_topics(kafka.bootstrap, {TOPIC: 1, QUIET: 1, SINK_TOPIC: 1})
    for topic in (TOPIC, QUIET):
        fill_topic(kafka.bootstrap, topic, FILLED)
    for group in ("reload-kept", "reload-denied"):
        commit(kafka.bootstrap, group, QUIET, {0: FILLED})
    workers = [
        Producer(kafka.bootstrap, TOPIC, 20.0),
        Stalled(kafka.bootstrap, TOPIC, "reload-stalled", behind=500, commit_every_s=0.5),
    ]
    for worker in workers:
        worker.start()
    try:
        with receiving() as receiver:
            sections = sections_for({"local": kafka.bootstrap})
            sections["consumer.local"]["group-allowlist"] = "^reload-"
            sections["storage.memory"]["intervals"] = 4
            (home / "open.tmpl").write_text("{{.Group}}")
            sections["notifier.hook"] = {
                "class-name": "http",
                "url-open": f"{receiver.url}/hook",
                "template-open": str(home / "open.tmpl"),
                "send-interval": 3600,
            }
            run = WarrenRun(home, sections)
            with Recorder(run.data) as record, run:
                yield Live(run, sections, receiver, record)
    finally:
        stop_all(workers, 60.0)


def test_all_that_can_change_changes_and_nothing_is_lost(live: Live, kafka: Kafka) -> None:
    wait_for(lambda: live.sent() == [("/hook", "open")], "the incident is open")
    wait_for(lambda: live.stalled()[0] == "ERR", "the API shows it")
    before = live.stalled()
    judged = len(live.record.seen)
    with live.changed() as sections:
        sections["consumer.local"]["group-denylist"] = "^reload-denied$"
        sections["cluster.second"] = sections["cluster.local"]
        sections["consumer.second"] = {
            **sections["consumer.local"],
            "cluster": "second",
            "group-allowlist": "^reload-k",
        }
        sections["notifier.pager"] = {**sections["notifier.hook"], "url-open": f"{live.receiver.url}/pager"}
        sections["[route]"] = {"notifiers": ["pager"], "group": "reload-st*", "team": "stalled"}
        sections["sink.lag"] = {"class-name": "kafka", "cluster": "local", "topic": SINK_TOPIC, "interval": 1}
    got = live.reload()
    assert (got.status, got.json["error"], got.json["reload"]["mistakes"]) == (200, False, [])
    assert got.json["reload"]["changed"] == [
        "[cluster.second] added",
        "[consumer.local] changed",
        "[consumer.second] added",
        "[notifier.pager] added",
        "[[route]] changed",
        "[sink.lag] added",
    ]
    assert live.client.json("/v3/kafka")["clusters"] == ["local", "second"]
    wait_for(lambda: live.groups() == ["reload-kept", "reload-stalled"], "the filter applies to known groups")
    wait_for(lambda: live.groups("second") == ["reload-kept"], "the new cluster is read")
    wait_for(lambda: live.sent() == [("/hook", "open"), ("/pager", "open")], "the new notifier is notified")
    wait_for(lambda: (held := read_status(live.run.data, "lag")) and held.delivered_ms, "the new sink delivers")
    # The signal takes all of it back.
    live.run.configure(live.sections)
    reloaded = live.count("the configuration was reloaded")
    live.run.hang_up()
    wait_for(lambda: live.count("the configuration was reloaded") == reloaded + 1, "the signal reloads")
    assert live.client.json("/v3/kafka")["clusters"] == ["local"]
    assert live.client.json("/v3/sinks")["sinks"] == []
    live.run.wait_for(lambda snapshot: "second" not in snapshot.manifest.clusters, "its rows are gone")
    live.run.wait_for_cycles(3)
    assert live.stalled() == before
    assert live.sent() == [("/hook", "open"), ("/pager", "open")], "nothing is sent twice"
    [incident] = read_incidents(live.run.data, IncidentQuery())
    assert incident.closed_ms is None
    snapshots = [seen.manifest for seen in live.record.seen[judged:]]
    assert {manifest.epoch for manifest in snapshots} == {1}
    assert all(manifest.clusters["local"].is_judged for manifest in snapshots), "never unknown, never read again"


def test_a_broken_file_changes_nothing_and_says_why(live: Live) -> None:
    applied_s = live.metric("warren_config_last_reload_success_timestamp_seconds")
    with live.changed() as sections:
        del sections["notifier.hook"]
        sections["cluster.local"]["servers"] = "not a list"
        sections["pipeline"]["trigger"] = "often"
    got = live.reload()
    assert (got.status, got.json["error"]) == (422, True)
    assert got.json["message"] == "the configuration has mistakes; nothing has changed"
    mistakes = got.json["reload"]["mistakes"]
    assert [re.sub(r".*(burrow.toml:\d+: \[[\w.]+\] [\w-]+).*", r"\1", each) for each in mistakes] == [
        "burrow.toml:21: [pipeline] trigger",
        "burrow.toml:3: [cluster.local] servers",
    ]
    assert all(each in live.run.log for each in mistakes)
    live.run.hang_up()
    wait_for(lambda: live.count("the configuration was not reloaded") == 2, "the signal is answered in the log")
    assert live.metric("warren_config_last_reload_successful") == 0
    assert live.metric("warren_config_last_reload_success_timestamp_seconds") == applied_s
    assert live.client.json("/v3/overview")["overview"]["configuration"]["mistakes"] == mistakes
    assert live.client.json("/v3/config/notifier")["modules"] == ["hook"]
    live.run.wait_for_cycles(2)
    (live.run.home / "burrow.toml").unlink()
    assert live.reload().status == 422
    live.run.configure(live.sections)
    assert live.reload().status == 200
    assert live.metric("warren_config_last_reload_successful") == 1
    assert live.metric("warren_config_last_reload_success_timestamp_seconds") > applied_s
    assert live.client.json("/v3/overview")["overview"]["configuration"]["mistakes"] == []


def test_reloads_at_once_and_during_cycles_are_all_answered(live: Live) -> None:
    with live.changed() as sections:
        sections["pipeline"] |= {"trigger": 0.2, "buckets": 7, "driver-memory": "3g"}
    with ThreadPoolExecutor(6) as pool:
        answers: list[Any] = [each.json for each in pool.map(lambda _: live.reload(), range(6))]
    assert all(answer["reload"]["mistakes"] == [] for answer in answers)
    assert answers[-1]["reload"]["needs_restart"] == [
        "[pipeline] driver-memory needs a restart; the value from before stays in use",
        "[pipeline] buckets is used only for a new data directory",
    ]
    command = [sys.executable, "-m", "warren.cli", "reload", "--config-dir", str(live.run.home)]
    said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    assert said.stdout.splitlines()[-1] == "reloaded: no section has changed"
    wait_for(lambda: live.metric("warren_trigger_seconds") == 0.2, "cycles run more often")
