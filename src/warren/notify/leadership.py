"""Whether this Warren notifies. A single one always does; of several, only the leader, which holds the lock."""

import contextlib
import logging
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from warren.config import Config
from warren.errors import Fenced, ReplicationError
from warren.incidents.pipeline import IncidentPipeline
from warren.incidents.store.changelog import Changelog
from warren.incidents.store.database import StoreError
from warren.incidents.store.replicated import ReplicatedStore
from warren.incidents.store.store import IncidentStore
from warren.notify.locks import KafkaLock, Lock, ZooKeeperLock
from warren.notify.notifiers import NotifierDeliveries
from warren.snapshot.manifest import Manifest
from warren.snapshot.store import Store

log = logging.getLogger(__name__)

CHECK_S = 1.0
MAX_FAILURES = 5
"""After so many failed attempts to take over, the lock is left to another Warren."""
STEP_BACK_S = 15.0
"""How long it is left to another Warren."""
REPORT_MS = 10_000
"""How often an unchanged state is stored again, so that readers notice when this process is gone."""
STOP_S = 30.0
STARTED = "it has just started"
ANOTHER_NOTIFIES = "another Warren notifies"


class Leadership:
    """Runs the incident pipeline and the deliveries while this Warren is the leader.

    A thread checks the lock. A Warren that does not lead follows the replicated store, to be ready to take over.
    """

    def __init__(self, config: Config, snapshots: Store, epoch: int | None = None) -> None:
        self._config = config
        self._snapshots = snapshots
        self._epoch = epoch
        self._wake = threading.Event()
        self._mutex = threading.RLock()
        self._is_closed = threading.Event()
        self._pipeline: IncidentPipeline | None = None
        """Set while this Warren leads."""
        self._newest: Manifest | None = None
        self._failures = 0
        self._is_following = True
        self._state = ("", "")
        self._noticed: tuple[object, ...] = ()
        self._since_ms = self._reported_ms = 0
        self._open()
        self._report("standby", STARTED)
        # The thread takes over, not the constructor: the start must not wait for brokers that do not answer.
        self._thread = threading.Thread(target=self._run, name="notifier leadership", daemon=True)
        self._thread.start()

    def _open(self) -> None:
        self._incidents = _open_store(self._config, self._snapshots.root, self._epoch)
        self._deliveries = NotifierDeliveries(self._incidents, self._may_send)
        self._lock = _make_lock(self._config, self._wake.set)
        self._settings = _settings(self._config)

    def configure(self, config: Config) -> None:
        """Notify as another configuration says; the lock and the store change only if their own settings do."""
        with self._mutex:
            self._config = config
            if _settings(config) != self._settings:
                if self._pipeline is not None:
                    self._stand_down("its lock or its store of incidents is configured anew")
                self._close()
                self._open()
            elif self._pipeline is not None:
                try:
                    router = self._deliveries.configure(config)
                    self._pipeline.configure(router, config.pipeline.history_days, _partially_known(config))
                except (ReplicationError, StoreError, Fenced) as error:
                    self._stand_down(str(error))
        self._wake.set()

    def process(self, manifest: Manifest) -> None:
        """Process a snapshot, if this Warren is the leader."""
        with self._mutex:
            self._newest = manifest
            if self._pipeline is not None and self._has_lock():
                try:
                    self._pipeline.process(manifest)
                except (ReplicationError, Fenced) as error:
                    self._stand_down(str(error))
                    self._report("away", str(error))

    def _run(self) -> None:
        while not self._is_closed.is_set():
            try:
                with self._mutex:
                    self._check()
                if self._lock is not None and self._failures >= MAX_FAILURES:
                    self._step_back(self._lock)
            except Exception:
                log.exception("checking the leadership failed")
            self._wake.wait(CHECK_S)
            self._wake.clear()

    def _check(self) -> None:
        if not self._has_lock():
            if self._pipeline is not None:
                self._stand_down(self._lock.error if self._lock else "")
            self._follow()
            self._report_lock()
            return
        if self._pipeline is not None and not self._incidents.is_writable:
            self._stand_down("the other Warrens may not know what it wrote")
        if self._pipeline is None:
            self._take_over()
        else:
            self._follow()
            self._report(*self._state)

    def _report_lock(self) -> None:
        """Report why this Warren does not hold the lock; it may have taken it meanwhile."""
        if self._has_lock():
            self._wake.set()
        elif self._lock is not None and self._lock.is_starting:
            self._report("standby", STARTED)
        else:
            error = self._lock.error if self._lock else ""
            self._report("away" if error else "standby", error or ANOTHER_NOTIFIES)

    def _has_lock(self) -> bool:
        return (self._lock is None or self._lock.is_held()) and not self._incidents.is_fenced()

    def _may_send(self) -> bool:
        return self._has_lock() and self._incidents.is_writable

    def _take_over(self) -> None:
        try:
            self._incidents.take_over()
            router, wake = self._deliveries.configure(self._config), self._deliveries.wake
            days, partially_known = self._config.pipeline.history_days, _partially_known(self._config)
            pipeline = IncidentPipeline(self._incidents, self._snapshots, days, router, wake, partially_known)
            if self._newest is not None and self._has_lock():
                pipeline.process(self._newest)
        except Exception as error:  # noqa: BLE001 - whatever it is, another Warren may succeed
            self._deliveries.close()
            self._incidents.stand_by()
            self._report("away", str(error))
            self._failures += 1
            return
        self._pipeline, self._failures = pipeline, 0
        self._report("alone" if self._lock is None else "active", "")

    def _step_back(self, lock: Lock) -> None:
        """Let another Warren take the lock, and compete again after a pause."""
        log.error("taking over failed %d times; the lock is left to another Warren", self._failures)
        lock.close()
        self._failures = 0
        self._is_closed.wait(STEP_BACK_S)
        with self._mutex:
            # Another configuration may have brought another lock meanwhile.
            if self._lock is lock:
                self._lock = _make_lock(self._config, self._wake.set)

    def _stand_down(self, why: str) -> None:
        log.warning("this Warren no longer notifies%s", f": {why}" if why else "")
        self._pipeline = None
        self._deliveries.close()
        self._incidents.stand_by()

    def _follow(self) -> None:
        try:
            self._incidents.sync()
            self._is_following = True
        except (ReplicationError, StoreError, Fenced) as error:
            if self._is_following:
                log.warning("incidents of other Warrens cannot be read: %s; trying again", error)
            self._is_following = False

    def _report(self, state: str, why: str) -> None:
        """Store the leadership state where the API reads it, when it changes and every `REPORT_MS`."""
        now_ms = time.time_ns() // 1_000_000
        is_new = (state, why) != self._state
        strangers = self._lock.strangers if self._lock else 0
        noticed = strangers, *self._incidents.rejects.items()
        if not is_new and noticed == self._noticed and 0 <= now_ms - self._reported_ms < REPORT_MS:
            return
        self._since_ms = now_ms if is_new else self._since_ms
        if is_new and state == "away":
            log.error("this Warren cannot notify: %s; trying again", why)
        elif is_new and why == ANOTHER_NOTIFIES:
            log.info("another Warren notifies; this one is on standby")
        self._state, self._noticed, self._reported_ms = (state, why), noticed, now_ms
        with contextlib.suppress(StoreError, Fenced):
            self._incidents.set_leadership(state, self._since_ms, why, now_ms, strangers)

    def close(self) -> None:
        """Stop, and let another Warren take over."""
        self._is_closed.set()
        self._wake.set()
        self._thread.join(STOP_S)
        with self._mutex:
            self._pipeline = None
            self._deliveries.close()
            self._report("stopped", "")
            self._close()

    def _close(self) -> None:
        if self._lock is not None:
            self._lock.close()
        self._incidents.close()


def _open_store(config: Config, data_dir: Path, epoch: int | None) -> IncidentStore:
    if not config.has_replicated_incidents:
        return IncidentStore(data_dir, epoch)
    connection = config.connection_of(config.cluster_or_first(config.incidents.cluster))
    return ReplicatedStore(data_dir, Changelog(connection, config.incidents.topic), epoch)


def _settings(config: Config) -> list[object]:
    """All that the lock and the store of incidents are made of."""
    settings: list[object] = [config.has_replicated_incidents, config.has_leader_election, config.incidents]
    if config.has_replicated_incidents:
        settings.append(config.connection_of(config.cluster_or_first(config.incidents.cluster)))
    if config.has_leader_election:
        settings += [config.zookeeper, config.tls.get((config.zookeeper and config.zookeeper.tls) or "")]
        settings.append(config.notifier_lock)
    if config.has_leader_election and config.notifier_lock:
        lock_cluster = config.notifier_lock.cluster or config.incidents.cluster
        settings.append(config.connection_of(config.cluster_or_first(lock_cluster)))
    return settings


def _partially_known(config: Config) -> set[str]:
    """Clusters read from the latest offset: other Warrens may have opened incidents of groups unknown here."""
    if not config.has_replicated_incidents:
        return set()
    return {consumer.cluster for consumer in config.consumers.values() if consumer.start_latest}


def _make_lock(config: Config, on_change: Callable[[], None]) -> Lock | None:
    if not config.has_leader_election:
        return None
    if config.zookeeper is not None:
        tls = config.zookeeper.tls
        return ZooKeeperLock(config.zookeeper, config.tls[tls] if tls else None, on_change)
    lock = config.notifier_lock
    assert lock is not None
    connection = config.connection_of(config.cluster_or_first(lock.cluster or config.incidents.cluster))
    topic = config.incidents.lock_topic
    # Nothing is ever written to it, so there is nothing to compact.
    create_topic = partial(Changelog(connection, topic).create_topic, is_compacted=False)
    return KafkaLock(connection, topic, lock.group, lock.session_timeout, create_topic, on_change)
