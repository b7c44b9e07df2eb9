"""Sinks as processes beside a Warren: into a real InfluxDB, through its death and their own."""

import os
import signal
import time
from pathlib import Path

import pytest

from tests.kit.servers import Town, server_config
from tests.kit.stores import InfluxDb
from tests.kit.warrens import wait_for
from warren.config.sinks import InfluxSink
from warren.sinks.process import sinks
from warren.snapshot.reader import SnapshotReader
from warren.snapshot.sinks import read_status

pytestmark = pytest.mark.timeout(180)


def counts(influxdb: InfluxDb) -> dict[int, int]:
    """How many groups each moment has."""
    query = 'SELECT count("status_code") FROM burrow_group WHERE time > now() - 10m GROUP BY time(1s) fill(none)'
    return {int(row["time"]) // 1000: int(row["count"]) for row in influxdb.rows(query, "lag")}


def test_what_a_server_missed_is_delivered_and_nothing_twice(tmp_path: Path, influxdb: InfluxDb) -> None:
    town = Town(tmp_path).grow()
    town.publish()
    influxdb.rows('CREATE DATABASE "lag"')
    groups = SnapshotReader(tmp_path).latest().groups().num_rows
    sink = InfluxSink("flux", urls=(influxdb.url,), database="lag", interval=1.0, timeout=2.0)
    with sinks(server_config(tmp_path, sinks={"flux": sink})) as [process]:
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
