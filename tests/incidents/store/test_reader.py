"""Notifications, delivery counts and the leadership state are read back from the store."""

from contextlib import closing
from pathlib import Path

import pytest

from tests.kit.incidents import notification
from warren.incidents.model import NO_RESULT, Notification
from warren.incidents.silences import Silence
from warren.incidents.store.database import FILE, open_database
from warren.incidents.store.operator_actions import count_silences, write_action
from warren.incidents.store.reader import (
    LEADERSHIP_TIMEOUT_MS,
    DeliveryCounts,
    LeadershipState,
    read_delivery_counts,
    read_last_errors,
    read_leadership,
    read_notifications,
)
from warren.incidents.store.store import IncidentStore


def write(data_dir: Path, *notifications: Notification) -> None:
    with closing(IncidentStore(data_dir)) as store:
        store.write([], notifications)


def test_without_a_store_there_is_nothing_to_read(tmp_path: Path) -> None:
    assert read_notifications(tmp_path, ["i"], 10) == ([], 0)
    assert read_delivery_counts(tmp_path) == {}
    assert read_last_errors(tmp_path) == {}
    assert read_leadership(tmp_path) == LeadershipState("unknown")
    assert not list(tmp_path.iterdir()), "and reading creates none"


def test_the_last_notifications_of_an_incident_are_read_in_order(tmp_path: Path) -> None:
    sent = [notification(sequence, "i", sent_ms=sequence + 1) for sequence in (5, 3, 9)]
    write(tmp_path, sent[0], notification(4, "other"), *sent[1:])
    read, count = read_notifications(tmp_path, ["i"], 2)
    assert [(each.due_ms, each.sent_ms, each.result) for each in read] == [(5, 6, NO_RESULT), (9, 10, NO_RESULT)]
    assert count == 3
    assert read_notifications(tmp_path, ["unknown"], 2) == ([], 0)


def test_delivery_counts_by_notifier(tmp_path: Path) -> None:
    write(
        tmp_path,
        notification(1, "a", sent_ms=10),
        notification(2, "b", sent_ms=30, last_error="was slow"),
        notification(3, "c", sent_ms=20),
        notification(4, "d", given_up_ms=40, last_error="refused"),
        notification(5, "e", last_error="away"),
        notification(6, "f", last_error="not asked yet"),
        notification(7, "a", "mail", sent_ms=50),
    )
    assert read_delivery_counts(tmp_path) == {
        "hook": DeliveryCounts(3, 1, 2, 30),
        "mail": DeliveryCounts(1, 0, 0, 50),
    }
    assert read_last_errors(tmp_path) == {"hook": "away"}


def test_a_covering_index_counts_notifications(tmp_path: Path) -> None:
    with closing(open_database(tmp_path)) as database:
        counted = "EXPLAIN QUERY PLAN SELECT listener, count(sent_ms), max(sent_ms) FROM letters GROUP BY listener"
        assert "COVERING INDEX" in str(database.execute(counted).fetchall())


@pytest.mark.parametrize(
    ("state", "is_active"), [("alone", True), ("active", True), ("standby", False), ("away", False), ("unknown", False)]
)
def test_the_leadership_state_is_read_as_recorded(tmp_path: Path, state: str, is_active: bool) -> None:
    with closing(open_database(tmp_path)) as database:
        database.execute("INSERT INTO duty VALUES (1, ?, 7, 'because', 9, '{}', 0)", (state,))
    assert read_leadership(tmp_path) == LeadershipState(state, 7, "because")
    assert read_leadership(tmp_path).is_active is is_active


def test_only_active_silences_are_counted(tmp_path: Path) -> None:
    for name, from_ms, until_ms in (("ended", 1, 10), ("now", 5, 11), ("later", 11, 20)):
        write_action(tmp_path, Silence(name, "*", "*", from_ms, until_ms, "ann", "a release"))
    assert [count_silences(tmp_path, now_ms) for now_ms in (0, 1, 9, 10, 11, 20)] == [0, 1, 2, 1, 1, 0]


def test_a_damaged_file_reads_as_unknown_leadership_and_no_silences(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"not a database at all, whatever its name says")
    assert read_leadership(tmp_path) == LeadershipState()
    assert count_silences(tmp_path, 1) == 0


def test_a_state_that_was_recorded_long_ago_means_stopped(tmp_path: Path) -> None:
    with closing(open_database(tmp_path)) as database:
        database.execute("INSERT INTO duty VALUES (1, 'active', 7, '', 1000, '{}', 0)")
    assert read_leadership(tmp_path, 1000 + LEADERSHIP_TIMEOUT_MS).state == "active"
    assert read_leadership(tmp_path, 1001 + LEADERSHIP_TIMEOUT_MS) == LeadershipState(
        "stopped", 1000, "it has not recorded its state since then"
    )
