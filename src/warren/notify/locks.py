"""The lock that elects the leader of several Warrens: in ZooKeeper, or by membership in a Kafka consumer group."""

import contextlib
import logging
import socket
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from kazoo.exceptions import KazooException
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.protocol.states import KazooState
from kazoo.recipe.lock import Lock as LockRecipe

from warren.config.kafka import Connection
from warren.config.notifiers import ZooKeeper
from warren.config.security import Tls
from warren.kafka.client_errors import explain
from warren.kafka.options import to_librdkafka
from warren.notify.lock_members import LOCK_CLIENT_ID, LockMembers
from warren.sources.zookeeper.session import new_client

log = logging.getLogger(__name__)

BURROW_NODE_PREFIX = "lock-"
"""How Burrow names its nodes in the same queue, so that Burrow and Warren never both notify."""
JOIN_S = 5.0
FIRST_ANSWER_S = 10.0
"""After how long a lock that is not held is held by another Warren, or cannot be reached."""
POLL_S = 1.0


class Lock(ABC):
    """At most one Warren holds the lock. A thread competes for it until `close`."""

    def __init__(self, on_change: Callable[[], None], error: str) -> None:
        self.error = error
        """Why nobody knows who holds the lock, or that no Warren does; empty while a Warren holds it."""
        self._on_change = on_change
        self._is_closed = False
        self._is_decided = False
        self._began = time.monotonic()
        self._wake = threading.Event()
        self._thread = threading.Thread(target=self._run, name="notifier lock", daemon=True)

    @property
    def is_starting(self) -> bool:
        """Whether it is not known yet, in the first moments, who holds the lock."""
        return not self._is_decided and time.monotonic() - self._began < FIRST_ANSWER_S

    @property
    def strangers(self) -> int:
        """How many clients compete for the lock that are not Warrens, as far as that can be known."""
        return 0

    @abstractmethod
    def is_held(self) -> bool:
        """Whether this Warren certainly holds the lock now."""

    def close(self) -> None:
        """Release the lock at once, so that no other Warren waits until the session expires."""
        self._is_closed = True
        self._wake.set()

    @abstractmethod
    def _compete(self) -> None:
        """Wait for the lock, or hold it; returns from time to time."""

    def _failed(self, error: Exception) -> None:
        """Report an error of `_compete`, which is called again."""
        log.warning("the lock could not be taken: %r; trying again", error)

    def _run(self) -> None:
        while not self._is_closed:
            self._wake.clear()
            try:
                self._compete()
            except Exception as error:  # noqa: BLE001 - whatever it is, the lock is asked for again
                if not self._is_closed:
                    self._failed(error)
                    self._wake.wait(POLL_S)


class ZooKeeperLock(Lock):
    """Burrow's lock under `root-path`. It counts as held only while the connection is up."""

    def __init__(
        self, zookeeper: ZooKeeper, tls: Tls | None = None, on_change: Callable[[], None] = lambda: None
    ) -> None:
        self._unreachable = f"ZooKeeper at {', '.join(zookeeper.servers)} cannot be reached"
        super().__init__(on_change, self._unreachable)
        self._path = f"{zookeeper.root_path.rstrip('/')}/notifier"
        self._holding_session: int | None = None
        self._lock: LockRecipe | None = None
        self._client = new_client(zookeeper.servers, zookeeper.timeout, tls)
        self._client.add_listener(self._state_changed)
        self._client.start_async()
        self._thread.start()

    def is_held(self) -> bool:
        """Whether this Warren holds the lock. Without a connection the session may have expired, so it does not."""
        session = self._client.client_id
        return bool(self._client.connected) and session is not None and session[0] == self._holding_session

    def _state_changed(self, state: str) -> None:
        self.error = "" if state == KazooState.CONNECTED else self._unreachable
        self._is_decided = self._is_decided or bool(self.error)
        if state == KazooState.LOST:
            # The lock ends with its session.
            self._holding_session = None
        self._wake.set()
        self._on_change()

    def _compete(self) -> None:
        if not self._client.connected or self.is_held():
            self._wake.wait(POLL_S)
            return
        if self._lock is not None:
            # Leave no node of ours in the queue: we would wait for ourselves.
            with contextlib.suppress(KazooException, KazooTimeoutError):
                self._lock.release()
        self._lock = LockRecipe(
            self._client, self._path, socket.gethostname(), extra_lock_patterns=(BURROW_NODE_PREFIX,)
        )
        if not self._lock.acquire():
            return
        # The session may have been replaced while the lock waited in the queue.
        node = self._client.exists(f"{self._path}/{self._lock.node}")
        session = self._client.client_id
        if node is not None and session is not None and node.ephemeralOwner == session[0]:
            self._holding_session = session[0]
            log.info("this Warren holds the lock %s", self._path)
            self._on_change()

    def close(self) -> None:
        """Release the lock at once: ZooKeeper ends the session with the connection."""
        super().close()
        self._holding_session = None
        if self._lock is not None:
            self._lock.cancel()
        self._client.stop()
        self._client.close()
        self._thread.join(JOIN_S)


class KafkaLock(Lock):
    """A consumer group on a topic with one partition: the member that is assigned the partition holds the lock.

    Kafka's client gives the partition up by itself when its session may have expired. The assignment is cooperative
    and sticky, so that a leader keeps the lock when another Warren joins the group.
    """

    def __init__(
        self,
        connection: Connection,
        topic: str,
        group: str,
        session_timeout_s: int,
        create_topic: Callable[[], None],
        on_change: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(on_change, "the brokers have not answered yet")
        self._topic = topic
        self._create_topic = create_topic
        self._connection = connection
        self._is_assigned = False
        self._members = LockMembers(group)
        self._settings = {
            "group.id": group,
            "client.id": LOCK_CLIENT_ID,
            "partition.assignment.strategy": "cooperative-sticky",
            "session.timeout.ms": session_timeout_s * 1000,
            "heartbeat.interval.ms": session_timeout_s * 1000 // 4,
            "enable.auto.commit": False,
            "log_level": 0,
        }
        self._explanation: str | None = None
        """Why the brokers refuse this Warren, if they do."""
        self._thread.start()

    def is_held(self) -> bool:
        """Whether the partition is assigned to this Warren."""
        return self._is_assigned

    @property
    def strangers(self) -> int:
        """How many members of the group are not Warrens."""
        return len(self._members.strangers)

    def _compete(self) -> None:
        self._explanation = None
        self._create_topic()
        # A new client each time, with the options of now: a password may have changed.
        options = to_librdkafka(self._connection)
        consumer = Consumer({**options, **self._settings, "error_cb": self._client_error})
        self._members.connect(options)
        try:
            consumer.subscribe([self._topic], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._revoked)
            while not self._is_closed:
                self._poll(consumer)
        finally:
            consumer.close()

    def _poll(self, consumer: Consumer) -> None:
        if self._members.check() and not self._is_assigned:
            self._set(error=self._members.holder)
        message = consumer.poll(0.5)
        error = None if message is None else message.error()
        if error is not None and not self._is_assigned:
            # The topic may have been deleted: it is created again.
            raise KafkaException(error)
        if self.error and self.error != self._members.holder and not self._is_assigned:
            # Kafka's client reports when all brokers are down, but not when one is back.
            consumer.list_topics(self._topic, timeout=5.0)
            self._set(error=self._members.holder)

    def _assigned(self, consumer: Consumer, added: list[TopicPartition]) -> None:
        consumer.incremental_assign(added)
        # Nothing is read, so no right to read the topic is needed.
        consumer.pause(added)
        self._set(is_assigned=self._is_assigned or _has_lock(added))

    def _revoked(self, _: Consumer, removed: list[TopicPartition]) -> None:
        self._set(is_assigned=self._is_assigned and not _has_lock(removed))

    def _client_error(self, error: KafkaError) -> None:
        self._explanation = explain(error.str()) or self._explanation
        if error.code() == KafkaError._ALL_BROKERS_DOWN and not self._is_assigned:
            brokers = ", ".join(self._connection.servers)
            self._set(error=self._explanation or f"the brokers at {brokers} cannot be reached")

    def _failed(self, error: Exception) -> None:
        # A client with another strategy of assignment keeps all others out of the group.
        self._members.check()
        cause = self._explanation or self._members.holder or error
        self._set(error=f"the lock could not be taken: {cause}")

    def _set(self, *, is_assigned: bool = False, error: str = "") -> None:
        is_new = is_assigned and not self._is_assigned
        self._is_assigned, self.error = is_assigned, error
        self._is_decided = self._is_decided or is_assigned or bool(error)
        if is_new:
            log.info("this Warren holds the lock of the topic %s", self._topic)
        self._on_change()

    def close(self) -> None:
        """Leave the consumer group at once."""
        super().close()
        self._is_assigned = False
        self._thread.join(JOIN_S)


def _has_lock(partitions: list[TopicPartition]) -> bool:
    """Whether the lock is among some partitions; of a topic that somebody else created the first partition is it."""
    return any(partition.partition == 0 for partition in partitions)
