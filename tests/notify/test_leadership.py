"""Several Warrens: the leader notifies, another takes over when it dies, none without a lock; each event is sent once.

Real Kafka, real ZooKeeper, a real receiver, and processes that are killed with -9; only the snapshots are made by hand.
"""

import time
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from kazoo.client import KazooClient
from msgspec.structs import replace

from tests.kit.incidents import OK, STALL, IncidentScene, count_deliveries
from tests.kit.leaderships import LeadershipProcess
from tests.kit.receivers import Receiver, receiving
from tests.kit.warrens import wait_for
from tests.kit.zookeeper import ZooKeeperServer
from warren.config import Config, Notifier
from warren.config.notifiers import Incidents, ZooKeeper
from warren.demo.broker import Kafka
from warren.domain.status import Status
from warren.errors import WarrenError
from warren.incidents.silences import Acknowledgement, Silence
from warren.incidents.store.operator_actions import read_silences, write_action
from warren.incidents.store.reader import IncidentQuery, read_incidents, read_leadership
from warren.incidents.store.store import IncidentStore
from warren.notify import leadership
from warren.notify.locks import ZooKeeperLock
from warren.snapshot.manifest import Manifest

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


class TwoWarrens:
    """Two Warrens that follow the same snapshots, and the receiver of their notifications."""

    def __init__(self, root: Path, kafka: str, receiver: Receiver, lock: str, send_interval: int = 3600) -> None:
        self.scene = IncidentScene(root / "snapshots")
        self.receiver = receiver
        self.faults = root / "faults"
        self.faults.mkdir()
        topic = f"incidents-{uuid.uuid4().hex[:8]}"
        toml = CONFIG.format(kafka=kafka, receiver=receiver.url, topic=topic, lock=lock, send_interval=send_interval)
        self.warrens = [LeadershipProcess(root / name, self.scene.root, toml, self.faults) for name in ("a", "b")]

    def publish(self, *groups: str, status: Status = STALL) -> None:
        """Publish a snapshot in which these groups have a status."""
        now_ms = time.time_ns() // 1_000_000
        self.scene.store.publish(self.scene.manifest(now_ms, {("one", group): [(status, 7)] for group in groups}))

    def state(self, warren: LeadershipProcess) -> tuple[str, str]:
        """The leadership state that a Warren reports, and the reason."""
        recorded = read_leadership(warren.data)
        return recorded.state, recorded.why

    def leader(self) -> LeadershipProcess:
        """The leader; there must be exactly one."""

        def find() -> LeadershipProcess | None:
            leaders = [warren for warren in self.warrens if warren.is_running and self.state(warren)[0] == "active"]
            return leaders[0] if len(leaders) == 1 else None

        try:
            return wait_for(find, "one of them leads", 40)
        except AssertionError as error:
            raise AssertionError(f"{error} {[self.state(warren) for warren in self.warrens]}\n{self._logs()}") from None

    def other(self, than: LeadershipProcess) -> LeadershipProcess:
        """The Warren that is not the given one."""
        return next(warren for warren in self.warrens if warren is not than)

    def wait_sent(self, *events: str) -> None:
        """Wait until exactly these events were sent, each with one key."""

        def is_sent() -> bool:
            return self.sent() == list(events)

        try:
            wait_for(is_sent, f"sent are {events}", 40)
        except AssertionError as error:
            raise AssertionError(f"{error}, but {self.sent()}\n{self._logs()}") from None

    def sent(self) -> list[str]:
        """The events that a receiver sees if it drops messages with a known key."""
        return [request.event for request in {request.key: request for request in self.receiver.got}.values()]

    def _logs(self) -> str:
        return "\n".join(
            f"{warren.home.name}: {line}" for warren in self.warrens for line in warren.log.splitlines()[-15:]
        )

    def start(self) -> "TwoWarrens":
        for warren in self.warrens:
            warren.start()
        return self

    def close(self) -> None:
        for warren in self.warrens:
            warren.kill()


@pytest.fixture
def parts() -> Iterator[ExitStack]:
    with ExitStack() as parts:
        yield parts


def zookeeper_lock(zookeeper: ZooKeeperServer) -> str:
    root = f"/burrow-{uuid.uuid4().hex[:6]}"
    return f'[zookeeper]\nservers = ["{zookeeper.address}"]\ntimeout = {SESSION_S}\nroot-path = "{root}"'


def two_warrens(parts: ExitStack, root: Path, kafka: Kafka, lock: str, send_interval: int = 3600) -> TwoWarrens:
    receiver = parts.enter_context(receiving())
    warrens = TwoWarrens(root, kafka.bootstrap, receiver, lock, send_interval)
    parts.callback(warrens.close)
    return warrens.start()


@pytest.mark.parametrize("kind", ["zookeeper", "kafka"])
def test_the_leader_notifies_and_when_it_dies_the_other_continues(
    tmp_path: Path, kafka: Kafka, zookeeper: ZooKeeperServer, parts: ExitStack, kind: str
) -> None:
    group = uuid.uuid4().hex
    by_kafka = f'[notifier-lock]\nclass-name = "kafka"\ngroup = "{group}"\nsession-timeout = 6'
    two = two_warrens(parts, tmp_path, kafka, zookeeper_lock(zookeeper) if kind == "zookeeper" else by_kafka)
    first = two.leader()
    wait_for(lambda: two.state(two.other(first)) == ("standby", "another Warren notifies"), "the other waits", 20)
    assert not any("cannot notify" in warren.log for warren in two.warrens), "all is well: nothing is an error"
    two.publish("g")
    two.wait_sent("open")
    # A leader that dies before it has recorded a notification as sent leaves it to the next one, which sends it again.
    wait_for(lambda: count_deliveries(two.other(first).data) == {"hook": (1, 0, 0)}, "the other knows of it too", 20)
    first.kill()
    second = two.leader()
    assert second is not first
    two.publish("g")
    two.publish("g", status=OK)
    two.wait_sent("open", "close")
    [incident] = read_incidents(second.data, IncidentQuery())
    assert {request.key.split("/")[0] for request in two.receiver.got} == {incident.id}
    assert len(two.receiver.got) == 2, "nothing was sent twice"


@pytest.mark.parametrize(
    "course",
    [
        pytest.param([(point, "open" if index % 2 else "close") for index, point in enumerate(FAULTS, 1)], id="some"),
        pytest.param(
            [(point, event) for point in FAULTS for event in ("open", "close")], id="all", marks=pytest.mark.long
        ),
    ],
)
def test_killed_at_any_instant_each_event_is_sent_with_one_key(
    tmp_path: Path, kafka: Kafka, zookeeper: ZooKeeperServer, parts: ExitStack, course: list[tuple[str, str]]
) -> None:
    two = two_warrens(parts, tmp_path, kafka, zookeeper_lock(zookeeper))
    expected: list[str] = []
    for point, event in course:
        leader = two.leader()
        (two.faults / point).touch()
        two.publish("g", status=STALL if event == "open" else OK)
        wait_for(lambda: not leader.is_running, f"killed at {point}", 30)  # noqa: B023 - called at once
        expected.append(event)
        two.wait_sent(*expected)
        leader.start()
    incidents = read_incidents(two.leader().data, IncidentQuery())
    assert len(incidents) == expected.count("open"), "no second incident after a crash"
    assert all(incident.closed_ms for incident in incidents)
    keys = [request.key for request in two.receiver.got]
    assert len(keys) <= len(set(keys)) + len(course), "a repeated notification has its key"


def test_nobody_notifies_while_zookeeper_is_down(tmp_path: Path, kafka: Kafka, parts: ExitStack) -> None:
    zookeeper = parts.enter_context(ZooKeeperServer())
    two = two_warrens(parts, tmp_path, kafka, zookeeper_lock(zookeeper))
    two.publish("g")
    two.wait_sent("open")
    zookeeper.kill()
    away = ("away", f"ZooKeeper at {zookeeper.address} cannot be reached")
    wait_for(lambda: all(two.state(warren) == away for warren in two.warrens), "both report it", 20)
    two.publish("g", status=OK)
    time.sleep(SESSION_S)
    assert two.sent() == ["open"]
    zookeeper.start()
    two.leader()
    two.wait_sent("open", "close")


def test_a_leader_that_hung_cannot_notify_any_more(
    tmp_path: Path, kafka: Kafka, zookeeper: ZooKeeperServer, parts: ExitStack
) -> None:
    two = two_warrens(parts, tmp_path, kafka, zookeeper_lock(zookeeper))
    first = two.leader()
    two.publish("g")
    two.wait_sent("open")
    first.suspend()
    other = two.other(first)
    wait_for(lambda: two.state(other)[0] == "active", "the other takes over", 30)
    two.publish("g", "h")
    two.wait_sent("open", "open")
    first.resume()
    wait_for(lambda: two.state(first)[0] == "standby", "it has noticed", 30)
    two.publish("g", "h", status=OK)
    two.wait_sent("open", "open", "close", "close")
    wait_for(
        lambda: all(incident.closed_ms for incident in read_incidents(first.data, IncidentQuery())),
        "it reads that they are closed",
        20,
    )


def test_a_silence_or_acknowledgement_made_at_any_warren_applies_to_all(
    tmp_path: Path, kafka: Kafka, zookeeper: ZooKeeperServer, parts: ExitStack
) -> None:
    two = two_warrens(parts, tmp_path, kafka, zookeeper_lock(zookeeper), send_interval=1)
    first = two.leader()
    second = two.other(first)
    two.publish("g")
    two.wait_sent("open")
    [incident] = wait_for(lambda: read_incidents(second.data, IncidentQuery()), "the other knows it", 20)
    now_ms = time.time_ns() // 1_000_000
    write_action(second.data, Acknowledgement(incident.id, now_ms, "bob", "mine"))
    write_action(second.data, Silence("quiet", "*", "h*", now_ms, now_ms + 600_000, "bob", "release"))
    wait_for(lambda: read_silences(first.data, now_ms), "the leader knows", 20)
    for _ in range(3):
        time.sleep(1.1)
        two.publish("g", "h")
    two.publish("g", "h", "i")
    two.wait_sent("open", "open")
    [incident] = read_incidents(first.data, IncidentQuery(group="g"))
    assert incident.acknowledged_by == "bob"


def test_a_later_warren_on_the_same_data_directory_ends_the_notifications_of_the_earlier_one(
    tmp_path: Path, parts: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leadership, "CHECK_S", 0.05)
    receiver = parts.enter_context(receiving())
    template = tmp_path / "open.tmpl"
    template.write_text("{{.Group}}")
    notifier = Notifier("hook", "http", url_open=f"{receiver.url}/hook", template_open=template)
    config = Config({}, {}, notifiers={"hook": notifier})
    scene = IncidentScene(tmp_path)

    def snapshot(epoch: int, *groups: str) -> Manifest:
        bad = {("one", group): [(STALL, 7)] for group in groups}
        made = replace(scene.manifest(time.time_ns() // 1_000_000, bad), epoch=epoch)
        scene.store.publish(made)
        return made

    def started(epoch: int) -> leadership.Leadership:
        snapshot(epoch)
        return parts.enter_context(closing(leadership.Leadership(config, scene.store, epoch)))

    earlier = started(1)
    wait_for(lambda: read_leadership(tmp_path).is_active, "the earlier one notifies", 20)
    earlier.process(snapshot(1, "a"))
    wait_for(lambda: receiver.events() == ["open"], "it has sent the first", 20)
    receiver.hold.clear()
    later = started(2)
    newest = snapshot(2, "a", "b")
    earlier.process(newest)
    later.process(newest)
    # While the receiver takes its time, both would send what is not stored as sent yet.
    time.sleep(0.5)
    receiver.hold.set()
    wait_for(lambda: count_deliveries(tmp_path) == {"hook": (2, 0, 0)}, "both are stored as sent", 20)
    earlier.process(snapshot(2, "a", "b", "c"))
    assert sorted(incident.group for incident in read_incidents(tmp_path, IncidentQuery())) == ["a", "b"]
    earlier.close()
    assert read_leadership(tmp_path).state == "alone", "the state of the later one"
    assert len({request.key for request in receiver.got}) == len(receiver.got) == 2


def test_a_leader_that_cannot_take_over_leaves_the_lock_to_another_for_a_while(
    tmp_path: Path, zookeeper: ZooKeeperServer, parts: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: IncidentStore) -> None:
        raise WarrenError("the disk is full")

    monkeypatch.setattr(IncidentStore, "take_over", fail)
    monkeypatch.setattr(leadership, "CHECK_S", 0.01)
    monkeypatch.setattr(leadership, "STEP_BACK_S", 0.5)
    notifier = Notifier("hook", "null", template_open=Path("config/default-http-post.tmpl"))
    section = ZooKeeper((zookeeper.address,), SESSION_S, f"/burrow-{uuid.uuid4().hex[:6]}")
    incidents = Incidents(class_name="local")
    config = Config({}, {}, notifiers={"hook": notifier}, incidents=incidents, zookeeper=section)
    parts.enter_context(closing(leadership.Leadership(config, IncidentScene(tmp_path).store)))
    wait_for(lambda: read_leadership(tmp_path).why == "the disk is full", "it holds the lock", 20)
    other = parts.enter_context(closing(ZooKeeperLock(section)))
    wait_for(other.is_held, "the other has it", 20)
    client = KazooClient(zookeeper.address)
    client.start()
    parts.callback(client.stop)
    wait_for(lambda: len(client.get_children(f"{section.root_path}/notifier")) == 2, "it competes again", 20)
    assert other.is_held()
