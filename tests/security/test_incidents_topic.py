"""The shared incidents topic on a real Kafka, to which somebody else writes: no record stops or divides the Warrens."""

import json
import sqlite3
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from msgspec.structs import replace

from tests.kit.incidents import incident, notification
from tests.kit.kafka import produce
from tests.kit.servers import new_api, server_config
from tests.kit.warrens import wait_for
from warren.config import Notifier
from warren.config.kafka import Connection
from warren.config.notifiers import Incidents, NotifierLock
from warren.demo.broker import Kafka
from warren.incidents.model import Event
from warren.incidents.silences import MAX_SILENCES, Silence
from warren.incidents.store.changelog import Changelog
from warren.incidents.store.operator_actions import current_actions, read_silences, store_actions
from warren.incidents.store.records import RecordReject
from warren.incidents.store.replicated import ReplicatedStore
from warren.incidents.store.rows import COLUMNS, to_row
from warren.web.http import Request
from warren.web.metrics import metrics

Record = tuple[bytes | None, bytes | None]
DAY_MS = 86_400_000
NOW_MS = time.time_ns() // 1_000_000
SILENCE = Silence("s1", "*", "g", NOW_MS, NOW_MS + DAY_MS, "ann", "a release")
END = Silence("end", "*", "nobody", NOW_MS, NOW_MS + DAY_MS, "test", "written last")


class Scene:
    """Warrens that share a topic, and another client that writes to it."""

    def __init__(self, root: Path, kafka: Kafka) -> None:
        self.root = root
        self.kafka = kafka
        self.topic = f"incidents-{uuid.uuid4().hex[:8]}"
        self.open_stores = ExitStack()

    def store(self, name: str, topic: str = "") -> ReplicatedStore:
        """The store of one more Warren."""
        changelog = Changelog(Connection((self.kafka.bootstrap,)), topic or self.topic)
        return self.open_stores.enter_context(closing(ReplicatedStore(self.root / name, changelog)))

    def forge(self, *records: Record) -> None:
        """Write records as a client that is not a Warren."""
        produce(self.kafka.bootstrap, self.topic, list(records))

    def wait_synced(self, *stores: ReplicatedStore) -> None:
        """Wait until stores have read all that has been written so far."""
        mark = replace(END, why=uuid.uuid4().hex)
        self.forge((b"silences/end", record_of(mark)))
        for store in stores:

            def has_mark(store: ReplicatedStore = store) -> bool:
                store.sync()
                return mark in store.operator_actions(NOW_MS).silences

            wait_for(has_mark, "everything is read", 20)

    def compacted_copy(self) -> str:
        """A topic with the last record of each key, as Kafka's compaction leaves it."""
        consumer = Consumer(
            {"bootstrap.servers": self.kafka.bootstrap, "group.id": "raw", "enable.partition.eof": True}
        )
        consumer.assign([TopicPartition(self.topic, 0, 0)])
        last: dict[bytes | None, bytes | None] = {}
        while (message := consumer.poll(20)) is not None and message.error() is None:
            last.pop(message.key(), None)
            last[message.key()] = message.value()
        consumer.close()
        copy = f"{self.topic}-compacted"
        Changelog(Connection((self.kafka.bootstrap,)), copy).create_topic()
        produce(self.kafka.bootstrap, copy, list(last.items()))
        return copy


@pytest.fixture
def scene(tmp_path: Path, kafka: Kafka) -> Iterator[Scene]:
    scene = Scene(tmp_path, kafka)
    with scene.open_stores:
        yield scene


def record_of(item: Any, **changes: Any) -> bytes:
    """The value of a record; some columns of it may be forged."""
    return json.dumps({**to_row(item), **changes}).encode()


def rows(store: ReplicatedStore) -> dict[str, list[tuple[Any, ...]]]:
    """All rows of all tables."""
    with closing(sqlite3.connect(store._path)) as database:
        return {
            table: sorted(database.execute(f"SELECT {', '.join(COLUMNS[table])} FROM {table}")) for table in COLUMNS
        }


POISON: Sequence[Record] = [
    (b"incidents/i1", b'{"id":"i1","cluster":7}'),
    (b"incidents/i2", record_of(incident("i2", "g2"), opened_ms="yesterday")),
    (b"incidents/i3", record_of(incident("i3", "g3"), changes="[]")),
    (b"incidents/i4", record_of(incident("i4", "g4"), opened_ms=2**80)),
    (b"letters/n", record_of(notification(1, "i1"), event="party")),
    (b"letters/n", record_of(notification(1, "i1"), result="[" * 10_000)),
    (b"silences/s1", record_of(SILENCE, until_ms=NOW_MS + 3650 * DAY_MS)),
    (b"silences/s1", record_of(SILENCE, by=None)),
    (b"silences/s9", record_of(SILENCE)),
    (b"acknowledgements/a", b'"\xff"'),
    (b"storms/s", b"{}"),
    (b"writer/1", b'{"one":1,"epoch":99}'),
    (b"\xff\xfe", b"x"),
    (b"", b"{}"),
]


def test_no_record_stops_a_warren_and_all_have_the_same_rows(scene: Scene, caplog: pytest.LogCaptureFixture) -> None:
    leader, follower = scene.store("leader"), scene.store("follower")
    leader.take_over()
    leader.write([incident("i0", "g")], [notification(1, "i0", event=Event.OPEN)])
    follower.sync()
    scene.forge((b"silences/s1", record_of(SILENCE)), *POISON)
    scene.wait_synced(leader, follower)
    leader.write([incident("later", "h")])
    scene.wait_synced(leader, follower)
    late, after_compaction = scene.store("late"), scene.store("compacted", scene.compacted_copy())
    late.sync()
    after_compaction.sync()
    assert rows(leader) == rows(follower) == rows(late) == rows(after_compaction)
    assert [opened.id for opened in leader.open_incidents()] == ["i0", "later"]
    assert [silence.id for silence in read_silences(scene.root / "late", NOW_MS)] == ["end"]
    assert sum(late.rejects.values()) == len(POISON)
    assert caplog.text.count("no Warren has written") < 4 * len(RecordReject), "a sample for each reason"


def test_a_rejected_record_is_counted_once_and_shown_to_prometheus(scene: Scene) -> None:
    follower = scene.store("follower")
    follower.sync()
    scene.forge((b"silences/x", record_of(SILENCE, id="x", until_ms=NOW_MS + 3650 * DAY_MS)), (b"y", b"{}"))
    scene.wait_synced(follower)
    follower.stand_by()
    follower.sync()
    assert follower.rejects == {RecordReject.ACTION.value: 1, RecordReject.KEY.value: 1}
    # What was stored when this module was imported, many tests ago, is too old to be shown.
    follower.set_leadership("standby", 1, "another Warren notifies", time.time_ns() // 1_000_000)
    config = server_config(
        scene.root / "follower",
        notifiers={"x": Notifier("x", "null")},
        notifier_lock=NotifierLock("kafka"),
        incidents=Incidents("kafka"),
    )
    answer = metrics(new_api(config), Request("/metrics", {}))
    text = b"".join(bytes(part) for part in answer.body).decode()
    assert f'warren_incidents_rejected_records_total{{reason="{RecordReject.ACTION.value}"}} 1' in text
    assert f'warren_incidents_rejected_records_total{{reason="{RecordReject.VALUE.value}"}} 0' in text


def test_no_silence_lasts_longer_than_the_api_allows_whatever_time_its_writer_claims(scene: Scene) -> None:
    follower = scene.store("follower")
    follower.sync()
    years = 365 * DAY_MS
    far = replace(SILENCE, id="far", from_ms=NOW_MS + 5 * years, until_ms=NOW_MS + 6 * years)
    scene.forge((b"silences/far", record_of(far)), (b"silences/s1", record_of(SILENCE)))
    scene.wait_synced(follower)
    assert {silence.id for silence in follower.operator_actions(NOW_MS).silences} == {"s1", "end"}


def test_a_flood_of_silences_is_cut_to_as_many_as_the_api_allows(tmp_path: Path, scene: Scene) -> None:
    follower = scene.store("follower")
    with follower._transaction() as database:
        flood = [replace(SILENCE, id=f"s{number}") for number in range(MAX_SILENCES + 50)]
        store_actions(database, flood, is_shared=True)
        assert len(current_actions(database, NOW_MS).silences) == MAX_SILENCES


def test_the_leader_undoes_what_another_client_writes_to_its_tables(scene: Scene) -> None:
    leader, follower = scene.store("leader"), scene.store("follower")
    leader.take_over()
    real, sent = incident("real", "g"), notification(1, "real", event=Event.OPEN)
    leader.write([real], [sent])
    follower.sync()
    scene.forge(
        # Both would keep the group from being notified of.
        (b"incidents/forged", record_of(replace(real, id="forged"))),
        (b"letters/real/hook/1", record_of(sent, sent_ms=5, result="{}")),
        (b"incidents/real", None),
        (b"letters/new", record_of(replace(sent, key="new", reason="buy this"))),
    )
    scene.wait_synced(follower)
    assert [opened.id for opened in follower.open_incidents()] == ["forged"]
    scene.wait_synced(leader)
    # The leader has undone it now; this is written after that.
    scene.wait_synced(leader, follower)
    compacted = scene.store("compacted", scene.compacted_copy())
    compacted.sync()
    for store in (leader, follower, compacted):
        assert store.open_incidents() == [real]
        assert store.next_notification("hook") == sent
    assert leader.rejects == {RecordReject.NOT_THE_LEADER.value: 4}
    assert leader.is_writable


def test_a_second_open_incident_is_settled_by_the_next_leader(scene: Scene) -> None:
    first = scene.store("first")
    first.take_over()
    first.write([incident("real", "g")])
    first.stand_by()
    scene.forge((b"incidents/forged", record_of(incident("forged", "g"))))
    follower = scene.store("follower")
    scene.wait_synced(follower)
    second = scene.store("second")
    second.take_over()
    [opened] = second.open_incidents()
    second.write([replace(opened, closed_ms=5000)])
    scene.wait_synced(second, follower)
    compacted = scene.store("compacted", scene.compacted_copy())
    compacted.sync()
    assert rows(second) == rows(follower) == rows(compacted)
    assert compacted.open_incidents() == []


def test_a_leader_that_was_replaced_does_not_undo_what_the_new_one_writes(scene: Scene) -> None:
    first, second = scene.store("first"), scene.store("second")
    first.take_over()
    second.take_over()
    second.write([incident("new", "g")])
    with pytest.raises(Exception, match="fenced"):
        wait_for(first.sync, "it reads what the new one wrote", 20)
    assert not first.is_writable
    scene.wait_synced(second, first)
    assert [opened.id for opened in first.open_incidents()] == ["new"]
    assert second.rejects == {}
