"""How a Warren starts: where it begins to read, whom it watches, and what it makes of broken or missing things."""

import struct
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest

from tests.kit.kafka import commit, delete_topic, open_transaction, produce
from tests.kit.records import commit_key, commit_value
from tests.kit.reference import read_topic, windows_of
from tests.kit.warrens import Recorder, Seen, WarrenRun, sections_for, see, wait_for
from warren.demo.broker import Kafka
from warren.demo.workload.committing_groups import Stalled
from warren.demo.workload.consuming_groups import Healthy
from warren.demo.workload.producer import Producer
from warren.demo.workload.thread import stop_all
from warren.demo.workload.topics import create_topics, fill_topic
from warren.domain.rules import Reason
from warren.domain.status import Status
from warren.domain.time_lag import TimeLagMethod
from warren.domain.windows import UNKNOWN
from warren.kafka.records.commits import RecordKind, decode_keys
from warren.snapshot.reader import Snapshot

pytestmark = pytest.mark.timeout(600)

RECENT_MS = 30_000
"""Ten intervals of three seconds: how far back the heads are known closely."""

STILL, MOVING, OWN_OFFSETS = "still", "moving", "own-offsets"
FILLED = 1_000
SILENT = {0: 900, 1: FILLED}
SILENT_PARTITIONS = (("silent", STILL, 0), ("silent", STILL, 1), ("silent-behind", MOVING, 0))
LISTED = ("keep-1", "keep-2", "keep-secret", "other-1", "neither")
GOOD_COMMITS = 12
BROKEN: Mapping[str, tuple[bytes | None, bytes | None]] = {
    "no key": (None, commit_value(1, 1)),
    "a key cut short": (commit_key("custom", STILL, 0)[:-3], commit_value(1, 1)),
    "a key of an unknown version": (commit_key("custom", STILL, 0, version=99), commit_value(1, 1)),
    "a value cut short": (commit_key("custom", STILL, 0), commit_value(1, 1)[:-5]),
    "a value of an unknown version": (commit_key("custom", STILL, 0), struct.pack(">hq", 77, 5)),
    "a huge length": (struct.pack(">hh", 1, 32_000) + b"x", commit_value(1, 1)),
    "a negative length": (struct.pack(">hh", 1, -7) + b"x", commit_value(1, 1)),
    "bad UTF-8": (commit_key(b"\xff\xfe", STILL, 0), commit_value(1, 1)),
}


@dataclass
class Started:
    """One Warren that knows one broker by several names, each watched in another way, and a broker without a commit."""

    main: Kafka
    fresh: Kafka
    run: WarrenRun
    record: Recorder
    ends_before: dict[int, int]
    """Where the offsets topic ended before Warren was started."""
    filled_s: float
    """When its topics were filled."""
    first: Seen = field(init=False)

    def group(self, cluster: str, group: str, snapshot: Snapshot) -> dict[int, dict[str, Any]]:
        """The partitions of a group of one topic."""
        found = snapshot.group(cluster, group)
        return {row["partition"]: row for row in found[1].to_pylist()} if found else {}


def prepare(main: Kafka) -> dict[int, int]:
    """What is there before Warren comes."""
    bootstrap = main.bootstrap
    create_topics(bootstrap, {STILL: 2, MOVING: 2, OWN_OFFSETS: 1})
    fill_topic(bootstrap, STILL, FILLED)
    fill_topic(bootstrap, MOVING, FILLED)
    commit(bootstrap, "silent", STILL, SILENT)
    commit(bootstrap, "silent-behind", MOVING, {0: 900})
    for group in LISTED:
        commit(bootstrap, group, STILL, {0: FILLED})
    now_ms = time.time_ns() // 1_000_000
    good = [
        (commit_key("custom", STILL, 0), commit_value(100 + i, now_ms - 10_000 + i * 100, version=i % 5))
        for i in range(GOOD_COMMITS)
    ]
    produce(bootstrap, OWN_OFFSETS, [*good[:6], *BROKEN.values(), *good[6:]])
    ends: dict[int, int] = {}
    for record in read_topic(bootstrap, "__consumer_offsets"):
        ends[record.partition] = max(ends.get(record.partition, 0), record.offset + 1)
    return ends


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Started]:
    with Kafka() as main, Kafka() as fresh:
        filled_s = time.time()
        ends_before = prepare(main)
        names = dict.fromkeys(("latest", "earliest", "lists", "custom"), main.bootstrap)
        sections = sections_for({**names, "fresh": fresh.bootstrap}, trigger=1.0)
        sections["consumer.latest"]["start-latest"] = True
        sections["consumer.custom"]["offsets-topic"] = OWN_OFFSETS
        sections["consumer.lists"] |= {"group-allowlist": "^keep-", "group-denylist": "secret"}
        sections["consumer.lists-too"] = {**sections["consumer.lists"], "group-allowlist": "^other-"}
        run = WarrenRun(tmp_path_factory.mktemp("start"), sections)
        workers = [
            Producer(main.bootstrap, MOVING, 100.0),
            Healthy(main.bootstrap, MOVING, "moving-healthy", commit_every_s=0.5),
            Stalled(main.bootstrap, MOVING, "moving-stalled", commit_every_s=0.5, behind=200),
        ]
        for worker in workers:
            worker.start()
        try:
            with Recorder(run.data) as record, run:
                stage = Started(main, fresh, run, record, ends_before, filled_s)
                run.wait_for(lambda s: s.manifest.is_ready and s.manifest.cycle_ms, "the first verdicts")
                stage.first = wait_for(lambda: record.seen[0] if record.seen else None, "the first snapshot")
                yield stage
        finally:
            stop_all(workers)


def test_from_latest_a_silent_group_is_known_by_what_the_broker_holds(started: Started) -> None:
    first = started.record.seen[0].partitions
    rows = {key: first["latest", *key] for key in SILENT_PARTITIONS}
    assert [row["committed_offset"] for row in rows.values()] == [900, FILLED, 900]
    assert [row["current_lag"] for row in rows.values()][:2] == [FILLED - 900, 0]
    assert rows["silent-behind", MOVING, 0]["current_lag"] > FILLED - 900
    for row in rows.values():
        assert (row["offsets"], Status(row["status"]), Reason(row["reason"])) == ([], Status.OK, Reason.NO_COMMITS)


def test_from_latest_a_silent_group_that_stays_behind_has_stopped(started: Started) -> None:
    def stopped(snapshot: Snapshot) -> tuple[dict[tuple[str, str, int], dict[str, Any]], int] | None:
        groups = [snapshot.group("latest", name) for name in ("silent", "silent-behind")]
        found = [row for group in groups if group for row in group[1].to_pylist()]
        rows = {(row["group"], row["topic"], row["partition"]): row for row in found}
        has_stopped = [row["reason"] == Reason.SILENT for row in rows.values()].count(True) == 2
        return (rows, snapshot.manifest.now_ms) if has_stopped else None

    rows, now_ms = started.run.wait_for(stopped, "both groups that are behind to have stopped")
    assert now_ms - started.first.manifest.now_ms >= RECENT_MS
    caught_up = rows.pop(SILENT_PARTITIONS[1])
    assert (Status(caught_up["status"]), caught_up["seconds_behind"]) == (Status.OK, 0.0)
    for row in rows.values():
        assert (Status(row["status"]), row["behind_method"]) == (Status.STOP, TimeLagMethod.RECORD_TIME)
        assert row["seconds_behind"] == pytest.approx(now_ms / 1000 - started.filled_s, abs=15)


def test_from_latest_nothing_older_than_the_start_is_read(started: Started) -> None:
    started.run.wait_for(lambda s: _is_full(started.group("latest", "moving-healthy", s)), "a full window")
    partition_of = {
        (group, topic, partition): source for source, group, topic, partition in _sources(started.main.bootstrap)
    }
    for seen in started.record.seen:
        for key, slots in windows_of(seen, "latest").items():
            assert all(order >= started.ends_before.get(partition_of[key], 0) for _, _, order in slots)


def test_from_earliest_what_was_committed_before_is_read(started: Started) -> None:
    rows = started.group("earliest", "silent", _snapshot(started.first, started.run))
    assert {partition: row["offsets"] for partition, row in rows.items()} == {0: [900], 1: [FILLED]}


def test_a_start_raises_no_false_alarm(started: Started) -> None:
    # Heads of before the start are known by the times of records: a lag is unknown, or one that a commit had then.
    rows = {key: row for key, row in started.first.partitions.items() if key[0] in ("earliest", "latest", "lists")}
    assert rows
    bad = {"moving-stalled": Status.STALL, "silent-behind": Status.STOP}
    for key, row in rows.items():
        assert Status(row["status"]) in (Status.OK, bad.get(key[1], Status.OK)), key
        lags = zip(row["lags"], row["offsets"], strict=True)
        assert all(lag == UNKNOWN or 0 <= lag <= max(row["head"] - offset, 0) for lag, offset in lags), key


def test_several_consumer_sections_with_lists_of_their_own_on_one_cluster(started: Started) -> None:
    seen = started.first
    assert {group for cluster, group in seen.groups if cluster == "lists"} == {"keep-1", "keep-2", "other-1"}
    assert {*LISTED, "silent"} <= {group for cluster, group in seen.groups if cluster == "earliest"}


def test_a_broker_without_an_offsets_topic_has_no_groups_and_gets_them_later(started: Started) -> None:
    assert not [group for cluster, group in started.first.groups if cluster == "fresh"]
    assert started.first.manifest.clusters["fresh"].unknown_since_ms is None
    assert started.first.manifest.clusters["fresh"].error is None
    create_topics(started.fresh.bootstrap, {STILL: 1})
    fill_topic(started.fresh.bootstrap, STILL, 50)
    commit(started.fresh.bootstrap, "first-ever", STILL, {0: 20})
    row = started.run.wait_for(lambda s: started.group("fresh", "first-ever", s), "the first group")[0]
    assert (row["committed_offset"], row["offsets"]) == (20, [20])
    started.run.wait_for(
        lambda s: started.group("fresh", "first-ever", s)[0]["current_lag"] == 30, "the lag of the first group"
    )


def test_broken_records_are_counted_by_reason_and_sampled_in_the_log(started: Started) -> None:
    counts = started.first.manifest.rejects["custom"]
    assert sum(counts.values()) == len(BROKEN)
    assert len(counts) >= 5
    said = [line for line in started.run.log.splitlines() if "records rejected" in line and "custom:" in line]
    assert len(said) == len(counts)
    for reason in counts:
        assert any(f"({reason})" in line and "partition 0 offset" in line for line in said)


def test_good_records_beside_broken_ones_count(started: Started) -> None:
    window = windows_of(started.first, "custom")["custom", STILL, 0]
    assert [offset for offset, _, _ in window] == [100 + i for i in range(2, GOOD_COMMITS)]
    assert {group for cluster, group in started.first.groups if cluster == "custom"} == {"custom"}


def test_a_topic_that_is_deleted_and_made_again_starts_anew(started: Started) -> None:
    bootstrap, run = started.main.bootstrap, started.run
    create_topics(bootstrap, {"remade": 1})
    fill_topic(bootstrap, "remade", 500)
    commit(bootstrap, "remade-group", "remade", {0: 400})

    def lag(snapshot: Snapshot) -> int | None:
        row = started.group("earliest", "remade-group", snapshot).get(0)
        return row["current_lag"] if row else None

    run.wait_for(lambda s: lag(s) == 100, "the group of the first topic")
    delete_topic(bootstrap, "remade")
    run.wait_for(lambda s: not started.group("earliest", "remade-group", s), "the group goes with its topic")
    create_topics(bootstrap, {"remade": 1})
    fill_topic(bootstrap, "remade", 10)
    commit(bootstrap, "remade-group", "remade", {0: 4})
    run.wait_for(lambda s: lag(s) == 6, "the group of the second topic")
    rows = run.wait_for(lambda s: started.group("earliest", "remade-group", s), "the same")
    assert rows[0]["offsets"] == [4]
    at = "earliest", "remade-group", "remade", 0
    again = [(s.manifest.now_ms, row) for s in started.record.seen if (row := s.partitions.get(at))]
    # On a slow machine the one commit may come to be older than the recent past; then, and only then, it has stopped.
    is_fresh = [now_ms - row["end_ms"] <= RECENT_MS for now_ms, row in again]
    assert {Status(row["status"]).name for (_, row), fresh in zip(again, is_fresh, strict=True) if fresh} == {"OK"}
    assert {Status(row["status"]).name for _, row in again} <= {"OK", "STOP"}, "going back to 4 is no rewind"


def test_an_open_transaction_that_holds_back_the_offsets_topic_is_shown(started: Started) -> None:
    def stuck(snapshot: Snapshot) -> list[int]:
        positions = snapshot.manifest.clusters["earliest"].sources["__consumer_offsets"].positions
        return [at.stuck_since_ms for at in positions.values() if at.stuck_since_ms is not None]

    started.run.wait_for(lambda s: not stuck(s), "nothing is held back")
    opened_ms = time.time_ns() // 1_000_000
    with open_transaction(started.main.bootstrap, "held-open", "held-group", STILL):
        since = started.run.wait_for(stuck, "an offsets partition stands still")
        assert len(since) == 1
        assert since[0] >= opened_ms
        later = started.run.wait_for_cycles(2)
        assert stuck(later) == since
    started.run.wait_for(lambda s: not stuck(s), "it moves on")
    assert not started.group("earliest", "held-group", started.run.wait_for_cycles(1))


@pytest.mark.long
def test_an_open_transaction_is_named_after_a_minute(started: Started) -> None:
    def names(snapshot: Snapshot) -> list[str]:
        return [at.held_by for at in snapshot.manifest.clusters["earliest"].positions() if at.held_by is not None]

    with open_transaction(started.main.bootstrap, "orders-tx-3", "named-group", STILL):
        assert started.run.wait_for(names, "the transaction is named", 180) == ["orders-tx-3"]
        [warning] = [line for line in started.run.log.splitlines() if "earliest/" in line and "orders-tx-3" in line]
        assert warning.endswith("is held back by transaction 'orders-tx-3'")
    started.run.wait_for(lambda s: not names(s), "it moves on")


def test_a_restart_has_full_windows_and_right_verdicts_in_its_first_cycle(started: Started) -> None:
    run = started.run
    run.wait_for(lambda s: see(s).verdicts("earliest", "moving-stalled") == {"STALL"}, "the verdict before")
    run.wait_for(lambda s: _is_full(started.group("earliest", "moving-healthy", s)), "a full window before")
    before = wait_for(lambda: started.record.seen[-1], "a snapshot")
    assert run.stop() == 0
    stopped_at = max(run.store.sequences())
    run.start()
    run.wait_for(lambda s: s.manifest.sequence > stopped_at + 1, "the first cycle after the restart")
    seen = wait_for(
        lambda: next((s for s in started.record.seen if s.manifest.sequence > stopped_at + 1), None), "its record"
    )
    assert seen.manifest.sequence == stopped_at + 2
    assert seen.manifest.epoch == before.manifest.epoch + 1
    assert seen.verdicts("earliest", "moving-stalled") == {"STALL"}
    assert seen.verdicts("earliest", "moving-healthy") == {"OK"}
    assert before.groups.keys() <= seen.groups.keys()
    for key, row in before.partitions.items():
        assert seen.partitions[key]["complete"] >= row["complete"]


def _is_full(rows: Mapping[int, Mapping[str, Any]]) -> bool:
    return bool(rows) and all(row["complete"] == 1.0 for row in rows.values())


def _snapshot(seen: Seen, run: WarrenRun) -> Snapshot:
    return Snapshot(run.store, seen.manifest)


def _sources(bootstrap: str) -> Iterator[tuple[int, str, str, int]]:
    """Which partition of the offsets topic holds which key."""
    records = read_topic(bootstrap, "__consumer_offsets")
    keys = decode_keys(pa.array([record.key for record in records], pa.binary()))
    groups, topics = keys.group.to_pylist(), keys.topic.to_pylist()
    for row, record in enumerate(records):
        if keys.kind[row] == RecordKind.COMMIT:
            yield record.partition, groups[row], topics[row], int(keys.partition[row])
