"""The store of incidents: one open incident per group, one writer, and few rows however long an incident lasts."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.kit.incidents import STOP, IncidentScene, incident, notification
from tests.kit.plans import manifest, plan
from warren.errors import Fenced
from warren.incidents.model import Event
from warren.incidents.pipeline import IncidentPipeline
from warren.incidents.store.database import FILE, open_database
from warren.incidents.store.reader import read_leadership
from warren.incidents.store.store import IncidentStore
from warren.snapshot.store import Store


def publish_claim(data_dir: Path, epoch: int) -> None:
    """Publish the first manifest of a Warren."""
    store = Store(data_dir)
    store.create()
    sequence = max(store.sequences(), default=0) + 1
    store.publish(replace(manifest(plan(data_dir)), epoch=epoch, sequence=sequence))


def opened_store(data_dir: Path, epoch: int) -> IncidentStore:
    """The store of a Warren that has just started."""
    publish_claim(data_dir, epoch)
    return IncidentStore(data_dir, epoch)


def test_a_group_has_one_open_incident(tmp_path: Path) -> None:
    store = IncidentStore(tmp_path)
    store.write([incident("a", "g"), incident("b", "h"), incident("c", "g", "two")])
    with pytest.raises(sqlite3.IntegrityError):
        store.write([incident("d", "g")], [notification(1, "d")])
    assert {each.id for each in store.open_incidents()} == {"a", "b", "c"}
    assert store.next_notification("hook") is None, "nothing of the transaction is stored"
    store.write([incident("a", "g", closed_ms=2000)])
    store.write([incident("d", "g")])
    assert {each.id for each in store.open_incidents()} == {"b", "c", "d"}


def test_of_two_open_incidents_of_an_older_version_the_older_one_stays(tmp_path: Path) -> None:
    with closing(IncidentStore(tmp_path)) as store, closing(open_database(tmp_path)) as database:
        database.execute("DROP INDEX one_open")
        store.write([replace(incident(name, "g"), opened_ms=at) for name, at in (("new", 9), ("old", 5), ("mid", 7))])
    with closing(IncidentStore(tmp_path)) as store:
        assert [each.id for each in store.open_incidents()] == ["old"]
    with closing(sqlite3.connect(tmp_path / FILE)) as database:
        closed = database.execute("SELECT id, closed_ms FROM incidents WHERE closed_ms IS NOT NULL ORDER BY id")
        assert closed.fetchall() == [("mid", 7), ("new", 9)]


def test_a_pipeline_that_does_not_know_an_incident_takes_it_over(tmp_path: Path) -> None:
    scene = IncidentScene(tmp_path)
    other = IncidentPipeline(IncidentStore(tmp_path), scene.store, 30)
    bad = {("one", "g"): [(STOP, 5)]}
    scene.process(1_000, bad)
    with pytest.raises(sqlite3.IntegrityError):
        other.process(scene.manifest(2_000, bad))
    other.process(scene.manifest(3_000, bad))
    other.process(scene.manifest(4_000, {("one", "g"): [(STOP, 0)]}))
    [opened] = scene.incidents()
    assert (opened.opened_ms, opened.closed_ms) == (1_000, None)


def test_a_later_warren_fences_the_store_of_an_earlier_one(tmp_path: Path) -> None:
    earlier = opened_store(tmp_path, 1)
    earlier.write([incident("a", "g")], [notification(1, "a")])
    earlier.set_leadership("alone", 1, "", 1)
    later = opened_store(tmp_path, 2)
    assert (earlier.is_fenced(), later.is_fenced()) == (True, False)
    with pytest.raises(Fenced, match="another Warren has taken over"):
        earlier.write([incident("b", "h")])
    with pytest.raises(Fenced):
        earlier.update_notification("a/hook/1", sent_ms=5)
    with pytest.raises(Fenced):
        earlier.set_leadership("stopped", 2, "", 2)
    assert [each.id for each in later.open_incidents()] == ["a"]
    assert read_leadership(tmp_path).state == "alone"
    later.write([incident("a", "g", closed_ms=2000)])
    assert later.open_incidents() == []


def test_of_two_warrens_that_start_together_the_later_one_gets_the_store(tmp_path: Path) -> None:
    publish_claim(tmp_path, 1)
    publish_claim(tmp_path, 2)
    later = IncidentStore(tmp_path, 2)
    with pytest.raises(Fenced):
        IncidentStore(tmp_path, 1)
    assert not later.is_fenced()


def test_epochs_may_start_over_in_a_data_directory_that_was_emptied(tmp_path: Path) -> None:
    before = opened_store(tmp_path, 7)
    for path in (tmp_path / "manifests").iterdir():
        path.unlink()
    after = opened_store(tmp_path, 1)
    assert (before.is_fenced(), after.is_fenced()) == (True, False)


def test_a_long_incident_has_one_reminder_per_notifier(tmp_path: Path) -> None:
    store, groups = IncidentStore(tmp_path), 20
    ids = [f"i{group}" for group in range(groups)]
    store.write([incident(each, each) for each in ids], [notification(1, each, event=Event.OPEN) for each in ids])
    for minute in range(2, 2 * 24 * 60, 30):
        reminders = [notification(minute, each, name) for each in ids for name in ("hook", "mail")]
        store.write(notifications=reminders)
        for each in reminders:
            if minute % 3:
                store.update_notification(each.key, sent_ms=minute)
    with closing(sqlite3.connect(tmp_path / FILE)) as database:
        counts = database.execute("SELECT listener, event, count(*) FROM letters GROUP BY 1, 2 ORDER BY 1, 2")
        assert counts.fetchall() == [
            ("hook", "open", groups),
            ("hook", "reminder", groups),
            ("mail", "reminder", groups),
        ]


def test_one_report_per_group_and_notifier(tmp_path: Path) -> None:
    store = IncidentStore(tmp_path)
    for minute in range(5):
        reports = [
            replace(
                notification(minute, "", event=Event.REPORT), key=f"report/{group}/{minute}", group=group, sent_ms=1
            )
            for group in ("a", "b")
        ]
        store.write(notifications=reports)
    with closing(sqlite3.connect(tmp_path / FILE)) as database:
        assert database.execute("SELECT key FROM letters ORDER BY key").fetchall() == [("report/a/4",), ("report/b/4",)]


def test_the_receipt_of_a_reminder_outlives_it(tmp_path: Path) -> None:
    store = IncidentStore(tmp_path)
    store.write(notifications=[notification(1, "i", event=Event.OPEN, given_up_ms=1), notification(2, "i")])
    store.update_notification("i/hook/2", sent_ms=2, receipt="thread")
    store.write(notifications=[notification(3, "i")])
    reminder = store.next_notification("hook")
    assert reminder is not None
    assert (reminder.sequence, reminder.receipt) == (3, "thread")
