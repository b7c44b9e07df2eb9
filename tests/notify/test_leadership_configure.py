"""Notifiers and routes that change while a Warren notifies: nothing is lost, nothing is sent twice."""

import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path

import pytest

from tests.kit.incidents import OK, STALL, IncidentScene, count_deliveries
from tests.kit.receivers import Receiver, receiving
from tests.kit.warrens import wait_for
from tests.kit.zookeeper import ZooKeeperServer
from warren.config import Config, Notifier, Route
from warren.config.notifiers import Incidents, ZooKeeper
from warren.incidents.store.reader import IncidentQuery, read_incidents, read_leadership
from warren.notify import leadership
from warren.notify.leadership import Leadership


class Desk:
    """A leadership on snapshots that the test publishes, and its receiver."""

    def __init__(self, root: Path, receiver: Receiver, parts: ExitStack) -> None:
        self.root, self.receiver, self._parts = root, receiver, parts
        self.scene = IncidentScene(root)
        self._template = root / "open.tmpl"
        self._template.write_text("{{.Group}}")
        self.config = Config({}, {}, notifiers={"hook": self.notifier("hook")})

    def notifier(self, name: str, **changes: object) -> Notifier:
        made = Notifier(
            name, "http", self._template, self._template, send_close=True, url_open=f"{self.receiver.url}/{name}"
        )
        return replace(made, **changes)  # type: ignore[arg-type]

    def start(self) -> None:
        self.leadership = self._parts.enter_context(closing(Leadership(self.config, self.scene.store)))
        wait_for(lambda: read_leadership(self.root).is_active, "it notifies", 20)

    def configure(self, **changes: object) -> None:
        self.config = replace(self.config, **changes)  # type: ignore[arg-type]
        self.leadership.configure(self.config)

    def publish(self, *bad: str, ok: tuple[str, ...] = ()) -> None:
        groups = {("one", group): [(STALL, 7)] for group in bad} | {("one", group): [(OK, 0)] for group in ok}
        self.leadership.process(self.scene.manifest(time.time_ns() // 1_000_000, groups))

    def sent(self) -> list[tuple[str, str]]:
        """The paths and the events that the receiver got."""
        return [(got.path, event) for got, event in zip(self.receiver.got, self.receiver.events(), strict=True)]

    def wait_sent(self, *expected: tuple[str, str]) -> None:
        wait_for(lambda: len(self.sent()) >= len(expected), f"{expected} are sent", 20)
        assert self.sent() == [*expected]


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    monkeypatch.setattr(leadership, "CHECK_S", 0.05)
    with ExitStack() as parts:
        yield Desk(tmp_path, parts.enter_context(receiving()), parts)


def test_an_open_incident_stays_one_incident_and_each_notifier_is_notified_of_it_once(desk: Desk) -> None:
    desk.start()
    desk.publish("g")
    desk.wait_sent(("/hook", "open"))
    since = read_leadership(desk.root).since_ms
    desk.configure(notifiers={**desk.config.notifiers, "pager": desk.notifier("pager")})
    desk.publish("g")
    desk.publish("g")
    desk.wait_sent(("/hook", "open"), ("/pager", "open"))
    desk.configure(routes=(Route("1", notifiers=("pager",), group="h"),))
    desk.publish("g", "h")
    wait_for(lambda: len(desk.receiver.got) == 4, "both are notified of h", 20)
    desk.publish(ok=("g", "h"))
    wait_for(lambda: count_deliveries(desk.root) == {"hook": (4, 0, 0), "pager": (4, 0, 0)}, "all closed", 20)
    assert len(read_incidents(desk.root, IncidentQuery())) == 2
    assert len({got.key for got in desk.receiver.got}) == len(desk.receiver.got) == 8
    assert read_leadership(desk.root).since_ms == since, "it was the leader all the time"


def test_a_notification_that_is_being_sent_is_not_sent_again_by_the_new_settings(desk: Desk) -> None:
    desk.start()
    desk.receiver.hold.clear()
    desk.publish("g")
    wait_for(lambda: desk.receiver.arrived, "it is being sent", 20)
    for path in ("moved", "moved-again"):
        desk.configure(notifiers={"hook": desk.notifier("hook", url_open=f"{desk.receiver.url}/{path}")})
    desk.publish("g", "h")
    desk.receiver.hold.set()
    desk.wait_sent(("/hook", "open"), ("/moved-again", "open"))
    wait_for(lambda: count_deliveries(desk.root) == {"hook": (2, 0, 0)}, "both are stored as sent", 20)


def test_what_waits_for_a_notifier_that_is_removed_is_given_up(desk: Desk) -> None:
    desk.config = replace(desk.config, notifiers={"hook": desk.notifier("hook"), "gone": desk.notifier("gone")})
    desk.receiver.answers += [503] * 100
    desk.start()
    desk.publish("g")
    wait_for(lambda: len(desk.receiver.got) == 2, "both were tried", 20)
    desk.configure(notifiers={"hook": desk.notifier("hook")})
    assert count_deliveries(desk.root) == {"hook": (0, 1, 0), "gone": (0, 0, 1)}
    desk.receiver.answers.clear()
    desk.configure(notifiers={"hook": desk.notifier("hook"), "gone": desk.notifier("gone")})
    wait_for(lambda: count_deliveries(desk.root)["hook"] == (1, 0, 0), "what waited for the other is sent", 20)
    assert [got.path for got in desk.receiver.got].count("/gone") == 1


def test_the_lock_is_kept_unless_its_own_settings_change(desk: Desk, zookeeper: ZooKeeperServer) -> None:
    lock = ZooKeeper((zookeeper.address,), 6, "/burrow-configure")
    desk.config = replace(desk.config, incidents=Incidents(class_name="local"), zookeeper=lock)
    desk.start()
    held = desk.leadership._lock
    desk.publish("g")
    desk.wait_sent(("/hook", "open"))
    desk.configure(notifiers={**desk.config.notifiers, "null": Notifier("null", "null", desk._template)})
    assert desk.leadership._lock is held
    desk.configure(zookeeper=replace(lock, root_path="/burrow-configure-2"))
    assert desk.leadership._lock is not held
    wait_for(lambda: read_leadership(desk.root).state == "active", "it has the other lock", 20)
    desk.publish("g")
    desk.publish(ok=("g",))
    desk.wait_sent(("/hook", "open"), ("/hook", "close"))
