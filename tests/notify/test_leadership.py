"""Several Warrens: one notifies, another takes over when it dies, none while nobody can tell; each event is told once.

Real Kafka, real ZooKeeper, a real receiver, and processes that are killed with -9; only the snapshots are made by hand.
"""

import time
import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.kit.incidents import OK, STALL, IncidentScene
from tests.kit.leaderships import DeskRun
from tests.kit.receivers import Receiver, receiving
from tests.kit.warrens import wait_for
from tests.kit.zookeeper import ZooKeeperServer
from warren.demo.broker import Kafka
from warren.domain.status import Status
from warren.incidents.silences import Acknowledgement, Silence
from warren.incidents.store.operator_actions import read_silences, write_action
from warren.incidents.store.reader import IncidentQuery, read_incidents, read_leadership

pytestmark = pytest.mark.timeout(240)

SESSION_S = 2
FAULTS = ("before-update", "after-changelog", "after-update", "before-send", "after-send", "after-sent")
CONFIG = """
[cluster.one]
class-name = "kafka"
servers = ["{kafka}"]
[consumer.one]
class-name = "kafka"
cluster = "one"
servers = ["{kafka}"]
[notifier.hook]
class-name = "http"
url-open = "{receiver}/hook"
template-open = "config/default-http-post.tmpl"
template-close = "config/default-http-delete.tmpl"
send-close = true
send-interval = {send_interval}
[incidents]
topic = "{topic}"
{lock}
"""


class Rivals:
    """Two Warrens that see the same snapshots, and who hears of them."""

    def __init__(self, root: Path, kafka: str, receiver: Receiver, lock: str, send_interval: int = 3600) -> None:
        self.scene = IncidentScene(root / "snapshots")
        self.receiver = receiver
        self.faults = root / "faults"
        self.faults.mkdir()
        topic = f"incidents-{uuid.uuid4().hex[:8]}"
        toml = CONFIG.format(kafka=kafka, receiver=receiver.url, topic=topic, lock=lock, send_interval=send_interval)
        self.desks = [DeskRun(root / name, self.scene.root, toml, self.faults) for name in ("a", "b")]

    def see(self, *groups: str, status: Status = STALL) -> None:
        """Publish a snapshot in which these groups are so."""
        now_ms = time.time_ns() // 1_000_000
        self.scene.store.publish(self.scene.manifest(now_ms, {("one", group): [(status, 7)] for group in groups}))

    def state(self, desk: DeskRun) -> tuple[str, str]:
        """Whether a desk notifies, by its own word."""
        duty = read_leadership(desk.data)
        return duty.state, duty.why

    def active(self) -> DeskRun:
        """The one that notifies; there must be one, and no more."""

        def only() -> DeskRun | None:
            found = [one for one in self.desks if one.is_running and self.state(one)[0] == "active"]
            return found[0] if len(found) == 1 else None

        try:
            return wait_for(only, "one of them notifies", 40)
        except AssertionError as error:
            raise AssertionError(f"{error} {[self.state(one) for one in self.desks]}\n{self._logs()}") from None

    def other(self, than: DeskRun) -> DeskRun:
        """The one that does not."""
        return next(one for one in self.desks if one is not than)

    def wait_told(self, *events: str) -> None:
        """Wait until these events, each under one key, are all that was told."""

        def told() -> bool:
            return self.told() == list(events)

        try:
            wait_for(told, f"told are {events}", 40)
        except AssertionError as error:
            raise AssertionError(f"{error}, but {self.told()}\n{self._logs()}") from None

    def told(self) -> list[str]:
        """What a receiver knows that tells messages apart by their keys."""
        return [one.event for one in {one.key: one for one in self.receiver.got}.values()]

    def _logs(self) -> str:
        return "\n".join(f"{one.home.name}: {line}" for one in self.desks for line in one.log.splitlines()[-15:])

    def start(self) -> "Rivals":
        for one in self.desks:
            one.start()
        return self

    def close(self) -> None:
        for one in self.desks:
            one.kill()


@pytest.fixture
def parts() -> Iterator[ExitStack]:
    with ExitStack() as parts:
        yield parts


def in_zookeeper(zookeeper: ZooKeeperServer) -> str:
    root = f"/burrow-{uuid.uuid4().hex[:6]}"
    return f'[zookeeper]\nservers = ["{zookeeper.address}"]\ntimeout = {SESSION_S}\nroot-path = "{root}"'


def rivals(parts: ExitStack, root: Path, kafka: Kafka, lock: str, send_interval: int = 3600) -> Rivals:
    receiver = parts.enter_context(receiving())
    made = Rivals(root, kafka.bootstrap, receiver, lock, send_interval)
    parts.callback(made.close)
    return made.start()


@pytest.mark.parametrize("kind", ["zookeeper", "kafka"])
def test_one_notifies_and_when_it_dies_the_other_goes_on(
    tmp_path: Path, kafka: Kafka, zookeeper: ZooKeeperServer, parts: ExitStack, kind: str
) -> None:
    group = uuid.uuid4().hex
    by_kafka = f'[notifier-lock]\nclass-name = "kafka"\ngroup = "{group}"\nsession-timeout = 6'
    two = rivals(parts, tmp_path, kafka, in_zookeeper(zookeeper) if kind == "zookeeper" else by_kafka)
    first = two.active()
    wait_for(lambda: two.state(two.other(first)) == ("standby", "another Warren notifies"), "the other waits", 20)
    two.see("g")
    two.wait_told("open")
    wait_for(lambda: read_incidents(two.other(first).data, IncidentQuery()), "the other knows the incident too", 20)
    first.kill()
    second = two.active()
    assert second is not first
    two.see("g")
    two.see("g", status=OK)
    two.wait_told("open", "close")
    [entry] = read_incidents(second.data, IncidentQuery())
    assert {one.key.split("/")[0] for one in two.receiver.got} == {entry.id}
    assert len(two.receiver.got) == 2, "nothing was said twice"


@pytest.mark.parametrize(
    "course",
    [
        pytest.param([(point, "open" if place % 2 else "close") for place, point in enumerate(FAULTS, 1)], id="some"),
        pytest.param(
            [(point, event) for point in FAULTS for event in ("open", "close")], id="all", marks=pytest.mark.long
        ),
    ],
)
def test_killed_at_any_instant_each_event_is_told_under_one_key(
    tmp_path: Path, kafka: Kafka, zookeeper: ZooKeeperServer, parts: ExitStack, course: list[tuple[str, str]]
) -> None:
    two = rivals(parts, tmp_path, kafka, in_zookeeper(zookeeper))
    expected: list[str] = []
    for point, event in course:
        active = two.active()
        (two.faults / point).touch()
        two.see("g", status=STALL if event == "open" else OK)
        wait_for(lambda: not active.is_running, f"killed at {point}", 30)  # noqa: B023 - called at once
        expected.append(event)
        two.wait_told(*expected)
        active.start()
    entries = read_incidents(two.active().data, IncidentQuery())
    assert len(entries) == expected.count("open"), "no second incident after a crash"
    assert all(one.closed_ms for one in entries)
    keys = [one.key for one in two.receiver.got]
    assert len(keys) <= len(set(keys)) + len(course), "what was sent again has its key"


def test_nobody_notifies_while_zookeeper_is_away(tmp_path: Path, kafka: Kafka, parts: ExitStack) -> None:
    zookeeper = parts.enter_context(ZooKeeperServer())
    two = rivals(parts, tmp_path, kafka, in_zookeeper(zookeeper))
    two.see("g")
    two.wait_told("open")
    zookeeper.kill()
    away = ("away", f"ZooKeeper at {zookeeper.address} cannot be reached")
    wait_for(lambda: all(two.state(one) == away for one in two.desks), "both say so", 20)
    two.see("g", status=OK)
    time.sleep(SESSION_S)
    assert two.told() == ["open"]
    zookeeper.start()
    two.active()
    two.wait_told("open", "close")


def test_one_that_hangs_and_comes_back_cannot_speak_any_more(
    tmp_path: Path, kafka: Kafka, zookeeper: ZooKeeperServer, parts: ExitStack
) -> None:
    two = rivals(parts, tmp_path, kafka, in_zookeeper(zookeeper))
    first = two.active()
    two.see("g")
    two.wait_told("open")
    first.stop()
    other = two.other(first)
    wait_for(lambda: two.state(other)[0] == "active", "the other takes over", 30)
    two.see("g", "h")
    two.wait_told("open", "open")
    first.go_on()
    wait_for(lambda: two.state(first)[0] == "standby", "it has noticed", 30)
    two.see("g", "h", status=OK)
    two.wait_told("open", "open", "close", "close")
    wait_for(
        lambda: all(one.closed_ms for one in read_incidents(first.data, IncidentQuery())),
        "it reads the ends",
        20,
    )


def test_what_is_said_to_any_of_them_counts_for_all(
    tmp_path: Path, kafka: Kafka, zookeeper: ZooKeeperServer, parts: ExitStack
) -> None:
    two = rivals(parts, tmp_path, kafka, in_zookeeper(zookeeper), send_interval=1)
    first = two.active()
    second = two.other(first)
    two.see("g")
    two.wait_told("open")
    [entry] = wait_for(lambda: read_incidents(second.data, IncidentQuery()), "the other knows it", 20)
    now_ms = time.time_ns() // 1_000_000
    write_action(second.data, Acknowledgement(entry.id, now_ms, "bob", "mine"))
    write_action(second.data, Silence("quiet", "*", "h*", now_ms, now_ms + 600_000, "bob", "release"))
    wait_for(lambda: read_silences(first.data, now_ms), "the active one knows", 20)
    for _ in range(3):
        time.sleep(1.1)
        two.see("g", "h")
    two.see("g", "h", "i")
    two.wait_told("open", "open")
    [held] = read_incidents(first.data, IncidentQuery(group="g"))
    assert held.acknowledged_by == "bob"
