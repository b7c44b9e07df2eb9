"""A group on a real Kafka that moves between the classic and the consumer protocol, and is deleted."""

import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.kit.plans import NOW, Commit, Record, Rehearsal, mapped, plan
from tests.kit.warrens import wait_for
from warren.demo.broker import Kafka
from warren.demo.workload.topics import create_topics
from warren.domain.matching import GroupFilter
from warren.pipeline.plan import PlannedSource
from warren.pipeline.schemas import TableKind


@dataclass
class Group:
    """A group with members of both protocols, and Warren's rows of it, cycle by cycle."""

    bootstrap: str
    cycles: Rehearsal
    name: str = field(default_factory=lambda: f"moves-{uuid.uuid4().hex[:8]}")
    members: list[Consumer] = field(default_factory=list)
    _positions: dict[int, int] = field(default_factory=dict)

    def join(self, protocol: str) -> Consumer:
        """A new member; returns when every member owns partitions."""
        settings = {"bootstrap.servers": self.bootstrap, "group.id": self.name, "group.protocol": protocol}
        member = Consumer({**settings, "enable.auto.commit": False, "client.id": protocol, "log_level": 0})
        member.subscribe([self.name])
        self.members.append(member)
        self._wait()
        return member

    def leave(self, member: Consumer) -> None:
        """Returns when the others own all partitions."""
        self.members.remove(member)
        member.close()
        self._wait()

    def _wait(self) -> None:
        def is_assigned() -> bool:
            for member in self.members:
                member.poll(0.1)
            owned = [len(member.assignment()) for member in self.members]
            return not owned or (min(owned) > 0 and sum(owned) == 2)

        wait_for(is_assigned, "both partitions have an owner", 60)

    def seen(self) -> dict[int, tuple[list[int], str]]:
        """The offsets in the windows and the owner's client id of each partition, after one more cycle."""
        source = PlannedSource(0, (GroupFilter(self.name),))
        rows = mapped(plan(self.cycles.root, sources=(source,)), list(self._records()))
        commits = [
            Commit(row["group"], row["topic"], row["partition"], None if row["is_tombstone"] else row["offset"],
                   row["time_ms"], row["order"]) for row in rows[TableKind.COMMITS]
        ]  # fmt: skip
        now_ms = max([NOW, *(commit.time_ms for commit in commits)])
        found = self.cycles.cycle(now_ms, commits, rows[TableKind.OWNERS])
        return {key[3]: (row["offsets"], row["client_id"]) for key, row in found.items()}

    def _records(self) -> Iterator[Record]:
        settings = {"bootstrap.servers": self.bootstrap, "group.id": "reads-only", "enable.partition.eof": True}
        reader = Consumer({**settings, "enable.auto.commit": False, "auto.offset.reset": "earliest"})
        unread = set(reader.list_topics("__consumer_offsets", 30).topics["__consumer_offsets"].partitions)
        reader.assign([TopicPartition("__consumer_offsets", p, self._positions.get(p, 0)) for p in unread])
        while unread:
            message = reader.poll(30)
            assert message is not None
            partition, offset = message.partition(), message.offset()
            assert partition is not None
            assert offset is not None
            if message.error():
                unread.discard(partition)
            else:
                self._positions[partition] = offset + 1
                yield Record(offset, message.key(), message.value(), partition=partition)
        reader.close()


@pytest.fixture
def group(kafka: Kafka, tmp_path: Path) -> Iterator[Group]:
    made = Group(kafka.bootstrap, Rehearsal(tmp_path, plan(tmp_path)))
    create_topics(kafka.bootstrap, {made.name: 2})
    yield made
    for member in made.members:
        member.close()


def _move_empty(group: Group, to: str) -> None:
    group.leave(group.members[0])
    group.join(to)


def _move_online(group: Group, to: str) -> None:
    member = group.members[0]
    group.join(to)
    group.leave(member)


@pytest.mark.parametrize("move", [_move_empty, _move_online])
def test_a_group_keeps_its_windows_in_moves_both_ways_and_goes_when_it_is_deleted(
    group: Group, move: Callable[[Group, str], None]
) -> None:
    member = group.join("consumer")
    member.commit(offsets=[TopicPartition(group.name, 0, 3), TopicPartition(group.name, 1, 4)], asynchronous=False)
    assert group.seen() == {0: ([3], ""), 1: ([4], "")}
    move(group, "classic")
    assert group.seen() == {0: ([3], "classic"), 1: ([4], "classic")}
    move(group, "consumer")
    assert {partition: offsets for partition, (offsets, _) in group.seen().items()} == {0: [3], 1: [4]}

    # As a refresh of owners shows it, before the last member leaves and the group is deleted.
    owners = [
        {"cluster": 0, "group": group.name, "topic": group.name, "partition": p, "owner": "/h", "client_id": "consumer"}
        for p in (0, 1)
    ]
    rows = group.cycles.cycle(group.cycles.plan.now_ms, owners=owners)
    assert {row["client_id"] for row in rows.values()} == {"consumer"}
    group.leave(group.members[0])
    assert set(group.seen()) == {0, 1}
    admin = AdminClient({"bootstrap.servers": group.bootstrap})
    admin.delete_consumer_groups([group.name])[group.name].result(30)
    assert group.seen() == {}
