"""Whether this Warren notifies: alone always, of several the one that has the lock, and none while nobody can tell."""

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterator

from warren.config import Config
from warren.errors import ReplicationError
from warren.incidents.pipeline import IncidentPipeline
from warren.incidents.store.changelog import Changelog
from warren.incidents.store.database import StoreError
from warren.incidents.store.replicated import ReplicatedStore
from warren.incidents.store.store import IncidentStore
from warren.kafka.options import to_librdkafka
from warren.notify.locks import KafkaLock, Lock, ZooKeeperLock
from warren.notify.notifiers import office
from warren.snapshot.manifest import Manifest
from warren.snapshot.store import Store

log = logging.getLogger(__name__)

LOOK_S = 1.0
FAILURES_MOST = 5
"""After so many failures to take over another may try."""
NOTE_MS = 10_000
"""How often it is said anew that all is as it was, so that readers can tell that nobody says anything any more."""
STOP_S = 30.0


class Leadership:
    """Keeps the book and the postmen at work while it is this Warren's turn."""

    def __init__(
        self,
        config: Config,
        store: Store,
        book: IncidentStore,
        lock_of: Callable[[Callable[[], None]], Lock | None] = lambda _: None,
    ) -> None:
        self._config = config
        self._store = store
        self._book = book
        self._moved = threading.Event()
        self._mutex = threading.RLock()
        self._closed = False
        self._at_work = contextlib.ExitStack()
        self._keeper: IncidentPipeline | None = None
        self._newest: Manifest | None = None
        self._said: tuple[str, str] | None = None
        self._since_ms = self._noted_ms = self._failures = 0
        self._is_lost = False
        self._lock = lock_of(self._moved.set)
        self._say("standby", "it has just started")
        # Not at once: the start of a Warren must not wait for brokers that are away.
        self._moved.set()
        self._thread = threading.Thread(target=self._run, name="notifier duty", daemon=True)
        self._thread.start()

    def take(self, manifest: Manifest) -> None:
        """Take up a snapshot, if it is this Warren's turn."""
        with self._mutex:
            self._newest = manifest
            if self._keeper is not None and self._may_send():
                try:
                    self._keeper.process(manifest)
                except ReplicationError as error:
                    self._stand_down(str(error))

    def _run(self) -> None:
        while not self._closed:
            self._moved.wait(LOOK_S)
            self._moved.clear()
            if not self._closed:
                self._look()

    def _look(self) -> None:
        try:
            with self._mutex:
                self._tend()
        except Exception:
            log.exception("whether this Warren notifies could not be looked after")

    def _tend(self) -> None:
        if not self._may_send():
            trouble = "" if self._lock is None else self._lock.trouble
            if self._keeper is not None:
                self._stand_down(trouble)
            self._follow()
            self._say("away" if trouble else "standby", trouble or "another Warren notifies")
            return
        if self._keeper is not None and not self._book.is_writable:
            self._stand_down("what it wrote is not sure to be known to the others")
        if self._keeper is None:
            self._take_over()
        else:
            self._follow()
            if self._said is not None:
                self._say(*self._said)

    def _may_send(self) -> bool:
        return self._lock is None or self._lock.is_held()

    def _may_speak(self) -> bool:
        return self._may_send() and self._book.is_writable

    def _take_over(self) -> None:
        try:
            self._book.take_over()
            self._begin_work()
        except Exception as error:  # noqa: BLE001 - whatever it is, another may do better
            self._book.stand_by()
            self._say("away", str(error))
            self._failures += 1
            if self._lock is not None and self._failures >= FAILURES_MOST:
                log.error("the lock is given up, so that another Warren may notify")
                self._failures = 0
                self._lock.step_back()
            return
        self._failures = 0
        self._say("alone" if self._lock is None else "active", "")
        if self._newest is not None:
            self.take(self._newest)

    def _begin_work(self) -> None:
        with contextlib.ExitStack() as parts:
            audiences, wake = parts.enter_context(office(self._config, self._book, self._may_speak))
            days = self._config.pipeline.history_days
            self._keeper = IncidentPipeline(
                self._book, self._store, days, audiences, wake, _partially_known(self._config)
            )
            self._at_work = parts.pop_all()

    def _stand_down(self, why: str) -> None:
        log.warning("this Warren does not notify any more%s", f": {why}" if why else "")
        self._keeper = None
        self._at_work.close()
        self._book.stand_by()

    def _follow(self) -> None:
        try:
            self._book.sync()
            self._is_lost = False
        except (ReplicationError, StoreError) as error:
            if not self._is_lost:
                log.warning("what other Warrens say about incidents is not known: %s; it is tried again", error)
            self._is_lost = True

    def _say(self, state: str, why: str) -> None:
        now_ms = time.time_ns() // 1_000_000
        is_new = (state, why) != self._said
        if not is_new and 0 <= now_ms - self._noted_ms < NOTE_MS:
            return
        self._since_ms = now_ms if is_new else self._since_ms
        if is_new and state == "away":
            log.error("nobody is notified by this Warren: %s; it is tried again", why)
        elif is_new and state == "standby" and self._said is not None:
            log.info("another Warren notifies; this one is ready to")
        self._said, self._noted_ms = (state, why), now_ms
        with contextlib.suppress(StoreError):
            self._book.set_leadership(state, self._since_ms, why, now_ms)

    def close(self) -> None:
        """Stop, and let another take over."""
        self._closed = True
        self._moved.set()
        self._thread.join(STOP_S)
        with self._mutex:
            self._keeper = None
            self._at_work.close()
            if self._lock is not None:
                self._lock.close()
            self._say("stopped", "")


@contextlib.contextmanager
def desk(config: Config, store: Store) -> Iterator[Leadership]:
    """A desk as the configuration wants it."""
    made = (
        ReplicatedStore(store.root, _journal(config)) if config.has_replicated_incidents else IncidentStore(store.root)
    )
    try:
        at_desk = Leadership(config, store, made, lambda wake: _lock(config, wake))
        try:
            yield at_desk
        finally:
            at_desk.close()
    finally:
        made.close()


def _settings(config: Config, cluster: str | None) -> dict[str, str]:
    """How to reach the cluster that is named, or else the first."""
    section = config.clusters[cluster] if cluster else next(iter(config.clusters.values()))
    return to_librdkafka(section, config.profile_of(section))


def _partially_known(config: Config) -> set[str]:
    """The clusters of which a Warren does not know all groups that others may have told of."""
    if not config.has_replicated_incidents:
        return set()
    return {consumer.cluster for consumer in config.consumers.values() if consumer.start_latest}


def _journal(config: Config) -> Changelog:
    return Changelog(_settings(config, config.incidents.cluster), config.incidents.topic)


def _lock(config: Config, wake: Callable[[], None]) -> Lock | None:
    if not config.has_leader_election:
        return None
    if config.zookeeper is not None:
        named = config.zookeeper.tls
        return ZooKeeperLock(config.zookeeper, config.tls[named] if named else None, wake)
    lock = config.notifier_lock
    assert lock is not None
    settings, topic = _settings(config, lock.cluster or config.incidents.cluster), f"{config.incidents.topic}-lock"
    make = Changelog(settings, topic).create_topic
    return KafkaLock(settings, topic, lock.group, lock.session_timeout, make, wake)
