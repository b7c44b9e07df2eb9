"""The incident pipeline: what snapshots open, change and close, over restarts and crashes."""

import logging
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.kit.incidents import OK, SECOND, STALL, START, STOP, WARN, Groups, IncidentScene, notifier
from warren.domain.status import Status
from warren.errors import WarrenError
from warren.incidents.pipeline import DAY_MS, MAX_PARTITIONS, IncidentPipeline
from warren.incidents.routing import NotificationRouter
from warren.incidents.store.database import FILE, open_read_only
from warren.incidents.store.reader import IncidentQuery, read_incidents
from warren.incidents.store.store import IncidentStore


@pytest.fixture
def scene(tmp_path: Path) -> IncidentScene:
    return IncidentScene(tmp_path)


def test_the_course_of_an_incident(scene: IncidentScene) -> None:
    group = ("one", "g")
    course = [[(OK, 0)], [(WARN, 5)], [(WARN, 7)], [(STALL, 9)], [(WARN, 9)], [(OK, 0)], [(OK, 0)], [(STOP, 1)]]
    for second, partitions in enumerate(course):
        scene.process(START + second * SECOND, {group: partitions, ("two", "g"): [(OK, 0)]})
    assert scene.courses() == ["one/g 1-5 WARN ERR WARN OK", "one/g 7- ERR"]
    ids = [incident.id for incident in scene.incidents()]
    assert len(set(ids)) == 2


def test_the_most_severe_partitions_are_stored(scene: IncidentScene) -> None:
    partitions = [(OK, 0), (WARN, 50), (STOP, 1), (STALL, -1), (STALL, 9), *[(WARN, n) for n in range(30)]]
    scene.process(START, {("one", "a"): [(OK, 0)], ("one", "g"): partitions, ("two", "g"): [(STALL, 4)]})
    [incident] = scene.incidents(cluster="one")
    assert [(partition.partition, partition.status.name, partition.lag) for partition in incident.partitions[:5]] == [
        (4, "STALL", 9), (3, "STALL", None), (2, "STOP", 1), (1, "WARN", 50), (34, "WARN", 29),
    ]  # fmt: skip
    assert (len(incident.partitions), incident.partition_count) == (MAX_PARTITIONS, 34)
    [other] = scene.incidents(cluster="two")
    assert [(partition.topic, partition.partition) for partition in other.partitions] == [("t", 0)]
    scene.process(START + SECOND, {("one", "g"): [(OK, 0)], ("two", "g"): [(STALL, 4)]})
    assert scene.incidents(cluster="one")[0].partition_count == 34, "a closed incident keeps its partitions"


def test_an_incident_keeps_the_most_messages_that_were_lost(scene: IncidentScene) -> None:
    group = ("one", "g")
    scene.pipeline.configure(NotificationRouter([notifier("hook", send_close=True)]), 30)
    sent = []
    for second, (status, lost) in enumerate([(STOP, 0), (STOP, 700), (STOP, 900), (WARN, 20), (OK, 0)]):
        lags = {group: {"seconds_behind": 60.0 + second, "behind_method": 1, "lost": lost}}
        scene.process(START + second * SECOND, {group: [(status, 5)]}, time_lags=lags)
        if (due := scene.incident_store.next_notification("hook")) is not None:
            scene.incident_store.update_notification(due.key, sent_ms=1)
            sent.append((str(due.event), due.result.seconds_behind, due.result.lost_messages))
        if second == 2:
            scene.start()
            scene.pipeline.configure(NotificationRouter([notifier("hook", send_close=True)]), 30)
    [incident] = scene.incidents()
    assert incident.lost_messages == 900
    assert sent == [("open", 60.0, 0), ("close", 64.0, 900)]


def test_what_a_group_lost_is_told_when_it_is_gone(scene: IncidentScene) -> None:
    scene.pipeline.configure(NotificationRouter([notifier("hook", send_close=True)]), 30)
    scene.process(START, {("one", "g"): [(STOP, 5)]}, time_lags={("one", "g"): {"lost": 7}})
    scene.process(START + SECOND, {})
    opened = scene.incident_store.next_notification("hook")
    assert opened is not None
    scene.incident_store.update_notification(opened.key, sent_ms=1)
    closed = scene.incident_store.next_notification("hook")
    assert closed is not None
    assert (closed.result.status, closed.result.seconds_behind, closed.result.lost_messages) == ("NOTFOUND", None, 7)


def test_a_restart_opens_nothing_twice_and_misses_no_close(scene: IncidentScene) -> None:
    bad: Groups = {("one", "g"): [(STOP, 5)], ("one", "h"): [(STOP, 5)]}
    scene.process(START, bad)
    before = {incident.id for incident in scene.incidents()}
    scene.start()
    scene.process(START + 9 * SECOND, {**bad, ("one", "h"): [(OK, 0)]})
    assert sorted(scene.courses()) == ["one/g 0- ERR", "one/h 0-9 ERR OK"]
    assert {incident.id for incident in scene.incidents()} == before


def test_while_a_cluster_is_unknown_nothing_opens_or_closes(scene: IncidentScene) -> None:
    scene.process(START, {("one", "g"): [(STOP, 5)], ("two", "h"): [(OK, 0)]})
    for second in (1, 2):
        at = START + second * SECOND
        scene.process(
            at, {("one", "g"): [(OK, 0)], ("one", "new"): [(STOP, 1)], ("two", "h"): [(WARN, 3)]}, unknown=["one"]
        )
    assert scene.courses() == ["one/g 0- ERR", "two/h 1- WARN"]
    scene.process(START + 3 * SECOND, {("two", "h"): [(WARN, 3)]}, unknown=["one"])
    assert scene.courses()[0] == "one/g 0- ERR", "nor when its groups are not in the snapshot"
    scene.process(START + 4 * SECOND, {("one", "g"): [(OK, 0)], ("two", "h"): [(OK, 3)]})
    assert scene.courses() == ["one/g 0-4 ERR OK", "two/h 1-4 WARN OK"]


def test_while_a_group_is_unknown_it_neither_opens_nor_closes(scene: IncidentScene) -> None:
    held = [("one", "g"), ("one", "new")]
    scene.process(START, {("one", "g"): [(STOP, 5)], ("one", "h"): [(OK, 0)]})
    for second in (1, 2):
        groups: Groups = {("one", "g"): [(OK, 0)], ("one", "new"): [(STOP, 1)], ("one", "h"): [(WARN, 3)]}
        scene.process(START + second * SECOND, groups, unknown=held)
    assert scene.courses() == ["one/g 0- ERR", "one/h 1- WARN"]
    scene.process(START + 3 * SECOND, {("one", "h"): [(WARN, 3)]}, unknown=held)
    assert scene.courses() == ["one/g 0-3 ERR NOTFOUND", "one/h 1- WARN"], "a group that is gone is known to be"


def test_an_incident_closes_when_its_group_or_cluster_is_gone(scene: IncidentScene) -> None:
    scene.process(START, {("one", "g"): [(STOP, 5)], ("two", "g"): [(STOP, 5)]})
    scene.process(START + SECOND, {("two", "g"): [(STOP, 5)]})
    assert sorted(scene.courses()) == ["one/g 0-1 ERR NOTFOUND", "two/g 0- ERR"]
    scene.process(START + 2 * SECOND, {}, clusters=["one"])
    assert sorted(scene.courses()) == ["one/g 0-1 ERR NOTFOUND", "two/g 0-2 ERR NOTFOUND"]


def test_unusual_group_names(scene: IncidentScene) -> None:
    names = ["", "a'b\"c", "%", "g\u0308", "消費", "drop table incidents; --"]
    scene.process(START, {("one", name): [(STOP, 1)] for name in names})
    scene.process(START + SECOND, {("one", name): [(OK, 0)] for name in names[1:]})
    for name in names:
        [incident] = scene.incidents(group=name)
        assert incident.status == (OK if name else Status.NOTFOUND)


def test_queries_filter_and_page_with_the_newest_first(scene: IncidentScene) -> None:
    for second in range(6):
        scene.process(START + second * SECOND, {("one", f"g{n}"): [(STOP, 1)] for n in range(second + 1)})
    scene.process(START + 9 * SECOND, {("one", f"g{n}"): [(STOP, 1) if n < 4 else (OK, 0)] for n in range(6)})

    def names(**query: object) -> list[str]:
        return [incident.group for incident in scene.incidents(**query)]

    assert names() == ["g5", "g4", "g3", "g2", "g1", "g0"]
    assert names(is_open=True) == ["g3", "g2", "g1", "g0"]
    assert names(is_open=False) == ["g5", "g4"]
    assert names(cluster="two") == []
    assert names(limit=2) == ["g5", "g4"]
    assert names(limit=2, before_ms=START + 4 * SECOND) == ["g3", "g2"]


def test_old_closed_incidents_are_deleted_and_open_ones_never(tmp_path: Path) -> None:
    scene = IncidentScene(tmp_path, keep_days=2)
    scene.process(START, {("one", "short"): [(STOP, 1)], ("one", "long"): [(STOP, 1)]})
    scene.process(START + SECOND, {("one", "short"): [(OK, 1)], ("one", "long"): [(STOP, 1)]})
    scene.process(START + 3 * DAY_MS, {("one", "long"): [(STOP, 1)], ("one", "new"): [(WARN, 1)]})
    assert [incident.group for incident in scene.incidents()] == ["new", "long"]


def test_a_snapshot_without_changes_writes_nothing(scene: IncidentScene) -> None:
    scene.process(START, {("one", "g"): [(STOP, 1)]})
    with closing(sqlite3.connect(scene.root / FILE)) as other:
        version = other.execute("PRAGMA data_version").fetchone()
        for second in range(3):
            scene.process(START + second * SECOND, {("one", "g"): [(STOP, 1 + second)], ("two", "h"): [(OK, 0)]})
        assert other.execute("PRAGMA data_version").fetchone() == version


def test_after_a_failed_write_the_next_snapshot_decides_again(
    scene: IncidentScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(IncidentStore, "write", fail)
        with pytest.raises(sqlite3.OperationalError):
            scene.process(START, {("one", "g"): [(STOP, 1)]})
    assert scene.incidents() == []
    scene.process(START + SECOND, {("one", "g"): [(STOP, 1)]})
    assert scene.courses() == ["one/g 1- ERR"]


def test_a_damaged_file_is_renamed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / FILE).write_bytes(b"this is no database, but as long as one" * 20)
    with caplog.at_level(logging.ERROR):
        scene = IncidentScene(tmp_path)
    assert "renamed to incidents.broken" in caplog.text
    scene.process(START, {("one", "g"): [(STOP, 1)]})
    assert scene.courses() == ["one/g 0- ERR"]


def test_a_file_that_cannot_be_opened_is_an_error(tmp_path: Path) -> None:
    (tmp_path / FILE).mkdir()
    with pytest.raises(WarrenError, match=r"incidents\.db cannot be opened"):
        IncidentStore(tmp_path)


def test_without_a_store_there_are_no_incidents(tmp_path: Path) -> None:
    assert read_incidents(tmp_path, IncidentQuery()) == []
    (tmp_path / FILE).touch()
    assert read_incidents(tmp_path, IncidentQuery()) == []


def test_ten_thousand_groups_at_once_get_one_notification_each(scene: IncidentScene, tmp_path: Path) -> None:
    scene.pipeline = IncidentPipeline(scene.incident_store, scene.store, 30, NotificationRouter([notifier("hook")]))
    scene.process(START, {("one", f"g{index}"): [(STALL, index), (OK, 0)] for index in range(10_000)})
    assert len(scene.incidents(limit=20_000)) == 10_000
    with open_read_only(tmp_path) as database:
        assert database.execute("SELECT count(*), count(DISTINCT key) FROM letters").fetchone() == (10_000, 10_000)
