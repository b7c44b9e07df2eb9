"""The metrics: every number of the snapshot and no other, in a format that Prometheus' own tools accept."""

import gzip
import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.kit.plans import Commit, cluster_state
from tests.kit.prometheus import promtool, running_prometheus
from tests.kit.servers import CLUSTERS, ODD_NAMES, Client, Town, group_path, server_config, serving, within
from warren import __version__
from warren.domain.windows import UNKNOWN
from warren.kafka.records.rejects import REJECT_DESCRIPTIONS, Reject
from warren.snapshot.manifest import Position, Source
from warren.snapshot.time_lag import TimeLag, to_time_lag

Series = dict[tuple[str, frozenset[tuple[str, str]]], float]

OPEN = {"Accept": "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3"}
PARTITIONS = {"orders": 3, "audit": 2}


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Town:
    town = Town(tmp_path_factory.mktemp("metrics")).grow()
    town.hold_back("stalled", since_ms=town.now_ms - 90_000)
    source = Source("x", {0: Position(100, 150, 170), 1: Position(7, 7, 7)})
    counts = {"groups_by_status": {"OK": 13, "ERR": 1}, "totallag": 5, "implausible_commits": 8, "hidden_topics": 2}
    one = cluster_state(sources={"__consumer_offsets": source}, **counts)
    two = cluster_state(unknown_since_ms=town.now_ms, error="gone")
    town.publish(
        clusters={"one": one, "two": two},
        rejects={"one": {REJECT_DESCRIPTIONS[Reject.NO_KEY]: 3}},
        cycle_ms={"judge": 1250},
        clock_steps=2,
    )
    return town


@pytest.fixture(scope="module")
def client(town: Town) -> Iterator[Client]:
    with serving(server_config(town.data)) as [client]:
        yield client


def parsed(text: str) -> Series:
    """The series of an answer; each may be there once, beneath its own type."""
    found: Series = {}
    types: dict[str, str] = {}
    family = ""
    for line in text.removesuffix("# EOF\n").splitlines():
        if line.startswith("#"):
            word, name, rest = re.fullmatch(r"# (HELP|TYPE) (\w+) (.+)", line).groups()  # type: ignore[union-attr]
            if word == "TYPE":
                assert name not in types
                types[name] = rest
            family = name
            continue
        match = re.fullmatch(r'(\w+)(?:\{((?:[^"]|"(?:[^"\\]|\\.)*")*)\})? (\S+)', line)
        assert match is not None, line
        assert match[1] in (family, f"{family}_total")
        labels = re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', match[2] or "")
        key = (match[1], frozenset((name, unescaped(value)) for name, value in labels))
        assert key not in found, line
        found[key] = float(match[3])
    assert set(types.values()) == {"gauge", "counter"}
    return found


def unescaped(value: str) -> str:
    return re.sub(r"\\(.)", lambda match: "\n" if match[1] == "n" else match[1], value)


def is_of_groups(name: str) -> bool:
    """Whether a metric is about groups and topics."""
    return not name.startswith("warren_") or name.startswith("warren_group_")


def series(name: str, value: float, **labels: object) -> tuple[tuple[str, frozenset[tuple[str, str]]], float]:
    return (name, frozenset((key, str(held)) for key, held in labels.items())), float(value)


def expected(town: Town) -> Series:
    """The series of the groups and topics, one by one from the rows of the snapshot."""
    found = []
    for (cluster, group, topic, partition), row in town.cycles.partitions().items():
        place = {"cluster": cluster, "consumer_group": group, "topic": topic, "partition": partition}
        lag = row["current_lag"]
        found.append(series("burrow_kafka_consumer_partition_lag", max(lag, 0), **place))
        if row["complete"] == 1:
            found.append(series("burrow_kafka_consumer_current_offset", row["offsets"][-1], **place))
            found.append(series("burrow_kafka_topic_partition_status", row["status"], **place))
        if lag != UNKNOWN:
            place = {"cluster_name": cluster, "group": group, "topic": topic, "partition": partition}
            found.append(series("kafka_consumergroup_group_lag", lag, **place))
        if row["seconds_behind"] != UNKNOWN:
            place = {"cluster_name": cluster, "group": group, "topic": topic, "partition": partition}
            found.append(series("kafka_consumergroup_group_lag_seconds", row["seconds_behind"], **place))
    held = dict(found)
    for cluster, group, topic in {key[:3] for key in town.cycles.partitions()}:
        for partition in range(PARTITIONS[topic]):
            place = {"cluster": cluster, "consumer_group": group, "topic": topic, "partition": partition}
            key, value = series("burrow_kafka_consumer_partition_lag", 0, **place)
            held.setdefault(key, value)
    for (cluster, group), row in town.cycles.groups().items():
        lags = [r["current_lag"] for key, r in town.cycles.partitions().items() if key[:2] == (cluster, group)]
        burrow, other = {"cluster": cluster, "consumer_group": group}, {"cluster_name": cluster, "group": group}
        total = sum(max(lag, 0) for lag in lags)
        held |= dict([series("burrow_kafka_consumer_lag_total", total, **burrow)])
        held |= dict([series("burrow_kafka_consumer_status", row["status"], **burrow)])
        held |= dict([series("kafka_consumergroup_group_sum_lag", total, **other)])
        held |= dict([series("kafka_consumergroup_group_max_lag", max(0, *lags), **other)])
        held |= dict(time_lag(to_time_lag(row), burrow, other))
    heads = [("orders", 0, 1090), ("orders", 1, 1090), ("orders", 2, 1090), ("audit", 0, 1090), ("unread", 0, 7)]
    for cluster in CLUSTERS:
        for topic, partition, head in heads:
            place = {"cluster": cluster, "topic": topic, "partition": partition}
            held |= dict([series("burrow_kafka_topic_partition_offset", head, **place)])
    return held


def time_lag(lag: TimeLag, burrow: Mapping[str, str], other: Mapping[str, str]) -> Iterator[tuple[Any, float]]:
    """The series of a group's lag in time."""
    values = {
        "warren_group_oldest_unread_age_seconds": lag.oldest_unread_age_seconds,
        "warren_group_catch_up_seconds": math.inf if lag.is_falling_behind else lag.catch_up_seconds,
        "warren_group_retention_left_seconds": lag.retention_left_seconds,
        "warren_group_lost_messages": None if lag.seconds_behind is None else lag.lost_messages,
        "warren_group_produced_per_second": lag.rates.produced_1m,
        "warren_group_consumed_per_second": lag.rates.consumed_1m,
    }
    if lag.seconds_behind is not None:
        yield series("kafka_consumergroup_group_max_lag_seconds", lag.seconds_behind, **other)
    for name, value in values.items():
        if value is not None:
            yield series(name, value, **burrow)


def test_every_series_of_groups_and_topics_is_what_the_snapshot_holds(town: Town, client: Client) -> None:
    got = client.ask("/metrics")
    assert got.type.startswith("text/plain; version=0.0.4; charset=utf-8")
    found = {key: value for key, value in parsed(got.text).items() if is_of_groups(key[0])}
    assert found == expected(town)
    assert len(found) > 400


def test_series_of_clusters_and_of_warren_itself(client: Client) -> None:
    found = {key: value for key, value in parsed(client.ask("/metrics").text).items() if not is_of_groups(key[0])}
    [age] = [found.pop(key) for key in list(found) if key[0] == "warren_snapshot_age_seconds"]
    assert 0 <= age < 300
    place: dict[str, Any] = {"cluster": "one", "topic": "__consumer_offsets"}
    assert found == dict(
        [
            series("warren_build_info", 1, version=__version__),
            series("warren_ready", 1),
            series("warren_incidents_open", 0, cluster="one"),
            series("warren_incidents_open", 0, cluster="two"),
            series("warren_notifier_active", 0),
            series("warren_silences_active", 0),
            series("warren_http_failed_logins_total", 0, reason="wrong"),
            series("warren_http_failed_logins_total", 0, reason="too_many"),
            series("warren_cluster_up", 1, cluster="one"),
            series("warren_cluster_up", 0, cluster="two"),
            series("warren_cluster_lag", 5, cluster="one"),
            series("warren_cluster_lag", 0, cluster="two"),
            series("warren_cluster_groups", 13, cluster="one", status="OK"),
            series("warren_cluster_groups", 1, cluster="one", status="ERR"),
            series("warren_groups_unknown", 1, cluster="one"),
            series("warren_groups_unknown", 24, cluster="two"),
            series("warren_hidden_topics", 2, cluster="one"),
            series("warren_hidden_topics", 0, cluster="two"),
            series("warren_implausible_commits_total", 8, cluster="one"),
            series("warren_implausible_commits_total", 0, cluster="two"),
            series("warren_clock_steps_total", 2),
            series("warren_offsets_backlog", 50, partition=0, **place),
            series("warren_offsets_backlog", 0, partition=1, **place),
            series("warren_offsets_held_by_transaction", 20, partition=0, **place),
            series("warren_offsets_held_by_transaction", 0, partition=1, **place),
            series("warren_cycle_stage_seconds", 1.25, stage="judge"),
            series("warren_trigger_seconds", 10),
            series("warren_rejected_records_total", 3, cluster="one", reason=REJECT_DESCRIPTIONS[Reject.NO_KEY]),
            *(series("warren_rejected_records_total", 0, cluster=c, reason=reason) for c, reason in never_rejected()),
        ]
    )


def never_rejected() -> Iterator[tuple[str, str]]:
    """Clusters, and the reasons for which none of their records was rejected."""
    for reject, reason in REJECT_DESCRIPTIONS.items():
        yield from ((cluster, reason) for cluster in CLUSTERS if reject and (cluster, reject) != ("one", Reject.NO_KEY))


def test_names_are_escaped(client: Client) -> None:
    text = client.ask("/metrics").text
    assert r'consumer_group="say \"hi\"\\\nbye"' in text
    assert {dict(key[1]).get("consumer_group") for key in parsed(text)} >= set(ODD_NAMES)


def ageless(text: str) -> str:
    return re.sub(r"(?m)^warren_snapshot_age_seconds .*\n", "", text)


def test_openmetrics_has_the_same_samples(client: Client) -> None:
    plain, got = client.ask("/metrics").text, client.ask("/metrics", headers=OPEN)
    assert got.type.startswith("application/openmetrics-text; version=1.0.0; charset=utf-8")
    assert got.text.endswith("\n# EOF\n")
    assert got.text.count("# EOF") == 1
    assert parsed(ageless(got.text)) == parsed(ageless(plain))
    assert "# TYPE warren_rejected_records counter\nwarren_rejected_records_total{" in got.text
    assert "# TYPE warren_rejected_records_total counter\nwarren_rejected_records_total{" in plain


@pytest.mark.parametrize(
    ("wish", "is_packed"),
    [
        ("gzip", True),
        ("deflate, GZIP;q=0.5", True),
        ("gzip;q=0, identity", False),
        ("identity", False),
        ("xgzip", False),
    ],
)
def test_compressed_if_the_client_accepts_it(client: Client, wish: str, is_packed: bool) -> None:
    plain, got = client.ask("/metrics"), client.ask("/metrics", headers={"Accept-Encoding": wish})
    assert (got.headers["Content-Encoding"] == "gzip") is is_packed
    assert got.headers["Vary"] == "Accept, Accept-Encoding"
    text = gzip.decompress(got.body).decode() if is_packed else got.text
    assert ageless(text) == ageless(plain.text)


def test_openmetrics_is_not_sent_to_clients_that_refuse_it(client: Client) -> None:
    got = client.ask("/metrics", headers={"Accept": "application/openmetrics-text;q=0,text/plain"})
    assert got.type.startswith("text/plain")


def test_promtool_objects_only_to_burrows_own_names(client: Client) -> None:
    ended = promtool("check", "metrics", said=client.ask("/metrics").body)
    assert (ended.stdout + ended.stderr).decode().splitlines() == [
        'burrow_kafka_consumer_lag_total non-counter metrics should not have "_total" suffix'
    ]


@pytest.mark.long
def test_prometheus_accepts_every_series(client: Client, tmp_path: Path) -> None:
    target = client.url.removeprefix("http://")
    jobs = f"- job_name: warren\n  static_configs:\n  - targets: ['{target}']\n"
    settings = tmp_path / "prometheus.yml"
    settings.write_text(f"global:\n  scrape_interval: 200ms\n  scrape_timeout: 200ms\nscrape_configs:\n{jobs}")
    with running_prometheus(settings) as prometheus:
        within(lambda: bool(prometheus.query("warren_ready")), (tmp_path / "log").read_text(), 20)
        count = len(parsed(client.ask("/metrics").text))
        # Beside ours it has five of its own for each target.
        assert prometheus.query('count({job="warren"})')[0]["value"][1] == str(count + 5)
        held = prometheus.query('burrow_kafka_consumer_status{cluster="one"}')
        assert {one["metric"]["consumer_group"] for one in held} >= {*ODD_NAMES, "stalled"}


def test_series_of_a_group_that_is_gone_are_gone(town: Town, client: Client) -> None:
    assert 'group="fresh"' in client.ask("/metrics").text
    town.now_ms += 1000
    gone = [
        Commit("fresh", topic, partition, None, town.now_ms, 10**6, 0)
        for topic, partition in (("orders", 1), ("audit", 0))
    ]
    town.cycles.cycle(town.now_ms, gone)
    town.publish()
    within(lambda: client.ask(group_path("fresh", "lag")).status == 404, "the group is gone")
    text = client.ask("/metrics").text
    assert 'group="fresh"' not in text
    assert {k: v for k, v in parsed(text).items() if is_of_groups(k[0])} == expected(town)
