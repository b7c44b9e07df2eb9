"""Sinks as processes beside a Warren: into a real InfluxDB and a real Kafka, through their deaths and their own."""

import os
import signal
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from tests.kit.servers import Town, server_config
from tests.kit.stores import InfluxDb
from tests.kit.verdicts import Partitions, Verdicts
from tests.kit.warrens import wait_for
from tests.sinks.test_kafka import read
from tests.sinks.test_verdict_changes import OK, STALL, WARN
from warren.config import Cluster
from warren.config.sinks import InfluxSink, KafkaSink
from warren.delivery.sink_status import read_status
from warren.demo.broker import Kafka
from warren.demo.workload.topics import create_topics
from warren.sinks.process import Sinks
from warren.snapshot.reader import newest_snapshot

pytestmark = pytest.mark.timeout(180)


def counts(influxdb: InfluxDb) -> dict[int, int]:
    """How many groups each moment has."""
    query = 'SELECT count("status_code") FROM burrow_group WHERE time > now() - 10m GROUP BY time(1s) fill(none)'
    return {int(row["time"]) // 1000: int(row["count"]) for row in influxdb.rows(query, "lag")}


def test_what_a_server_missed_is_delivered_and_nothing_twice(tmp_path: Path, influxdb: InfluxDb) -> None:
    town = Town(tmp_path).grow()
    town.publish()
    influxdb.rows('CREATE DATABASE "lag"')
    groups = newest_snapshot(tmp_path).groups().num_rows
    sink = InfluxSink("flux", urls=(influxdb.url,), database="lag", interval=1.0, timeout=2.0)
    with closing(Sinks(server_config(tmp_path, sinks={"flux": sink}))) as sinks:
        [process] = sinks.processes
        wait_for(lambda: len(counts(influxdb)) >= 2, "the first intervals", 60)
        influxdb.kill()
        wait_for(lambda: (held := read_status(tmp_path, "flux")) and held.waiting >= 4, "intervals wait", 60)
        held = read_status(tmp_path, "flux")
        assert held is not None
        assert held.trouble
        assert process.pid is not None
        os.kill(process.pid, signal.SIGKILL)
        influxdb.start()
        began_s = time.time()
        wait_for(lambda: max(counts(influxdb), default=0) > began_s + 2, "it goes on by itself", 60)
        wait_for(lambda: (held := read_status(tmp_path, "flux")) and not held.trouble, "all is well", 60)
    found = counts(influxdb)
    assert set(found.values()) == {groups}, "each moment has each group once"
    moments = sorted(found)
    missing = [at for at in range(moments[0], moments[-1]) if at not in found]
    assert len(missing) <= 5, f"only while the process was dead: {missing}"


def test_every_change_is_told_once_through_the_death_of_the_broker_and_of_the_sink(tmp_path: Path) -> None:
    verdicts = Verdicts(tmp_path)
    course = [OK, WARN, STALL, WARN, OK, STALL, OK]
    words = {id(OK): "OK", id(WARN): "WARN", id(STALL): "ERR"}

    def judge(held: Partitions) -> None:
        verdicts.publish({"one": {f"g{number}": held for number in range(50)}})

    def waits(fits: Callable[[int], bool], what: str) -> None:
        wait_for(lambda: (held := read_status(tmp_path, "told")) and fits(held.waiting), what, 90)

    with Kafka() as kafka:
        create_topics(kafka.bootstrap, {"changes": 2})
        sink = KafkaSink("told", cluster="one", changes_topic="changes")
        clusters = {"one": Cluster("one", (kafka.bootstrap,))}
        with closing(Sinks(server_config(tmp_path, clusters=clusters, sinks={"told": sink}))) as sinks:
            [process] = sinks.processes
            judge(course[0])
            waits(lambda count: count == 0, "the first is told")
            kafka.kill()
            for number, held in enumerate(course[1:5], 1):
                judge(held)
                waits(lambda count, number=number: count >= number, "changes wait")  # type: ignore[misc]
            assert process.pid is not None
            os.kill(process.pid, signal.SIGKILL)
            for held in course[5:]:
                judge(held)
            kafka.start()
            waits(lambda count: count == len(course) - 1, "it has seen what it missed")
            waits(lambda count: count == 0, "all is told")
        found: dict[str, list[str]] = {}
        for key, value in read(kafka, "changes"):
            found.setdefault(key[-1], []).append(f"{value['from']}>{value['to']}")
    steps = ["", *(words[id(held)] for held in course)]
    told = [f"{before}>{after}" for before, after in pairwise(steps)]
    assert found == {"one": [">JUDGED"], **{f"g{number}": told for number in range(50)}}


def test_only_the_sinks_that_change_are_replaced_and_spools_stay(tmp_path: Path) -> None:
    Town(tmp_path).grow().publish()
    down = InfluxSink("down", urls=("http://127.0.0.1:1",), database="lag", interval=1.0, timeout=1.0)
    told = KafkaSink("told", cluster="one", topic="points")
    config = server_config(tmp_path, sinks={"down": down, "told": told})
    with closing(Sinks(config)) as sinks:
        first = [process.pid for process in sinks.processes]
        wait_for(lambda: (held := read_status(tmp_path, "down")) and held.waiting >= 2, "intervals wait", 60)
        sinks.configure(replace(config, sinks={"down": down, "told": told, "more": replace(down, name="more")}))
        assert [process.pid for process in sinks.processes][:2] == first
        sinks.configure(replace(config, sinks={"down": replace(down, database="other"), "told": told}))
        [changed, kept] = [process.pid for process in sinks.processes]
        assert (changed != first[0], kept == first[1]) == (True, True)
        spooled = {path.name for path in (tmp_path / "sinks" / "down" / "spool").iterdir() if path.name.isdigit()}
        assert len(spooled) >= 2
        # Another address of the cluster that it sends to makes another job.
        sinks.configure(replace(config, clusters={"one": Cluster("one", ("127.0.0.1:2",))}, sinks={"told": told}))
        assert [process.pid for process in sinks.processes] != [kept]
        assert {path.name for path in (tmp_path / "sinks" / "down" / "spool").iterdir()} >= spooled
