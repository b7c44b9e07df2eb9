"""The status of the sinks over HTTP."""

from pathlib import Path

import pytest

from tests.kit.servers import Town, server_config, serving
from warren.config.sinks import InfluxSink, KafkaSink, LakeSink, Sink
from warren.delivery.sink_status import SinkStatus, sink_folder, write_status
from warren.web.overview import state_of


def test_sinks_show_what_waits_and_the_last_error(tmp_path: Path) -> None:
    town = Town(tmp_path)
    town.publish()
    folder = sink_folder(tmp_path, "in/flux")
    folder.mkdir(parents=True)
    write_status(folder, SinkStatus("in/flux", "influxdb", 5, 4000, 3000, 42, 7, 1234, 1000, trouble="nobody there"))
    sinks = {"in/flux": InfluxSink("in/flux", urls=("http://x",)), "topic": KafkaSink("topic", interval=30.0)}
    with serving(server_config(tmp_path, sinks=sinks)) as [client]:
        first, second = client.json("/v3/sinks")["sinks"]
        lines = client.ask("/metrics").text.splitlines()
        assert client.json("/v3/overview")["overview"]["sinks"] == [first, second]
    assert (first["name"], first["state"], first["waiting"], first["oldest"]) == ("in/flux", "trouble", 7, 1000)
    assert first["trouble"] == "nobody there"
    assert (second["name"], second["state"], second["interval"]) == ("topic", "starting", 30.0)
    assert 'warren_sink_intervals_waiting{sink="in/flux",class="influxdb"} 7' in lines
    assert 'warren_sink_delivered_seconds{sink="in/flux",class="influxdb"} 3' in [
        line.removesuffix(".0") for line in lines
    ]
    assert 'warren_sink_up{sink="topic",class="kafka"} 0' in lines
    assert not [line for line in lines if line.startswith('warren_sink_delivered_seconds{sink="topic"')], (
        "never is no time"
    )


@pytest.mark.parametrize(
    ("sink", "waiting", "state"),
    [
        (InfluxSink("s"), 3, "well"),
        (InfluxSink("s"), 4, "behind"),
        (LakeSink("s", interval=60.0, write_interval=600.0), 13, "well"),
        (LakeSink("s", interval=60.0, write_interval=600.0), 14, "behind"),
    ],
)
def test_a_sink_is_behind_only_after_some_intervals(sink: Sink, waiting: int, state: str) -> None:
    assert state_of(SinkStatus("s", sink.class_name, noted_ms=1, waiting=waiting), sink) == state
