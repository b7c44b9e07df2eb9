"""Of several Warrens one notifies: the one that has the lock, in ZooKeeper or by Kafka."""

import contextlib
import logging
import socket
import threading
from collections.abc import Callable, Mapping
from typing import Protocol

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from kazoo.client import KazooClient
from kazoo.exceptions import CancelledError, KazooException
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.protocol.states import KazooState
from kazoo.recipe.lock import Lock as Recipe
from kazoo.retry import KazooRetry

from warren.config import Tls, ZooKeeper

log = logging.getLogger(__name__)

Wake = Callable[[], None]

BURROWS_NAME = "lock-"
"""What Burrow's contenders for the same lock are called, so that it and Warren never notify both."""
JOIN_S = 5.0
REST_S = 15.0
"""How long one that could not work with the lock leaves it to others."""


class Lock(Protocol):
    """Who has it notifies."""

    def is_held(self) -> bool:
        """Whether this one has it, for sure, now."""
        ...

    @property
    def trouble(self) -> str:
        """Why nobody can tell who has it; empty while that is known."""
        ...

    def step_back(self) -> None:
        """Let another have it, and stand in line again after a while."""
        ...

    def close(self) -> None:
        """Give it up at once, so that another need not wait."""
        ...


class ZooKeeperLock:
    """The lock under root-path, as Burrow's: held for as long as the session is sure to be alive."""

    def __init__(self, zookeeper: ZooKeeper, tls: Tls | None = None, on_change: Wake = lambda: None) -> None:
        self._path = f"{zookeeper.root_path.rstrip('/')}/notifier"
        self._where = ", ".join(zookeeper.servers)
        self._on_change = on_change
        self._held_by: int | None = None
        """The session that has it."""
        self._is_tired = False
        self._closed = False
        self._lock: Recipe | None = None
        self._moved = threading.Event()
        forever = KazooRetry(max_tries=-1, delay=0.2, max_delay=5)
        secure = {} if tls is None else _secure(tls)
        self._client = KazooClient(
            ",".join(zookeeper.servers), timeout=zookeeper.timeout, connection_retry=forever, **secure
        )
        self._client.add_listener(self._heard)
        self._client.start_async()
        self._thread = threading.Thread(target=self._run, name="notifier lock", daemon=True)
        self._thread.start()

    def is_held(self) -> bool:
        """Whether this one has it; not while the connection is away, as the session may have ended."""
        session = self._client.client_id
        return bool(self._client.connected) and session is not None and session[0] == self._held_by

    @property
    def trouble(self) -> str:
        """Why nobody can tell who has it."""
        return "" if self._client.connected else f"ZooKeeper at {self._where} cannot be reached"

    def step_back(self) -> None:
        """Let another have it, and stand in line again after a while."""
        self._is_tired = True
        self._moved.set()

    def _heard(self, state: str) -> None:
        if state == KazooState.LOST:
            # The session is over, and with it the lock; it is asked for anew.
            self._held_by = None
        self._moved.set()
        self._on_change()

    def _run(self) -> None:
        while not self._closed:
            try:
                self._go_on()
            except Exception as error:  # noqa: BLE001 - whatever it is, the lock is asked for again
                log.warning("the lock %s is asked for again: %r", self._path, error)
                self._moved.wait(1.0)

    def _go_on(self) -> None:
        self._moved.clear()
        if self._is_tired:
            self._held_by = None
            self._release()
            self._is_tired = False
            self._moved.wait(REST_S)
        elif self._client.connected and not self.is_held():
            self._ask()
        else:
            self._moved.wait(1.0)

    def _ask(self) -> None:
        self._release()
        self._lock = Recipe(self._client, self._path, socket.gethostname(), extra_lock_patterns=(BURROWS_NAME,))
        try:
            if not self._lock.acquire():
                return
            # While it stood in line its session may have become another.
            node = self._client.exists(f"{self._path}/{self._lock.node}")
        except CancelledError:
            return
        except (KazooException, KazooTimeoutError) as error:
            log.debug("the lock %s was not to be had: %r", self._path, error)
            self._moved.wait(0.5)
            return
        session = self._client.client_id
        if node is not None and session is not None and node.ephemeralOwner == session[0]:
            self._held_by = session[0]
            log.info("has the lock %s: this Warren notifies", self._path)
            self._on_change()

    def _release(self) -> None:
        """Leave no place in line behind, where we would wait for ourselves."""
        if self._lock is not None:
            with contextlib.suppress(KazooException, KazooTimeoutError):
                self._lock.release()
        self._lock = None

    def close(self) -> None:
        """Give it up at once; ZooKeeper ends the session with the connection."""
        self._closed = True
        self._held_by = None
        self._moved.set()
        if self._lock is not None:
            self._lock.cancel()
        self._client.stop()
        self._client.close()
        self._thread.join(JOIN_S)


def _secure(tls: Tls) -> dict[str, object]:
    return {
        "use_ssl": True,
        "certfile": None if tls.certfile is None else str(tls.certfile),
        "keyfile": None if tls.keyfile is None else str(tls.keyfile),
        "ca": None if tls.cafile is None else str(tls.cafile),
        "verify_certs": not tls.noverify,
    }


class KafkaLock:
    """A consumer group on a topic of one partition: whoever is given the partition has the lock."""

    def __init__(
        self,
        settings: Mapping[str, str],
        topic: str,
        group: str,
        session_timeout_s: int,
        make_topic: Callable[[], None],
        on_change: Wake = lambda: None,
    ) -> None:
        self._on_change = on_change
        self._topic = topic
        self._make_topic = make_topic
        self._has_it = False
        self._is_tired = False
        self._closed = threading.Event()
        self._trouble = "the brokers have not answered yet"
        self._where = settings["bootstrap.servers"]
        self._consumer = Consumer(
            {
                **settings,
                "group.id": group,
                "session.timeout.ms": session_timeout_s * 1000,
                "heartbeat.interval.ms": session_timeout_s * 1000 // 4,
                "enable.auto.commit": False,
                "log_level": 3,
                "error_cb": self._failed,
            }
        )
        self._thread = threading.Thread(target=self._run, name="notifier lock", daemon=True)
        self._thread.start()

    def is_held(self) -> bool:
        """Whether this one has it; Kafka's client gives it up by itself when its session may have ended."""
        return self._has_it

    @property
    def trouble(self) -> str:
        """Why nobody can tell who has it."""
        return self._trouble

    def step_back(self) -> None:
        """Let another have it, and stand in line again after a while."""
        self._is_tired = True

    def _run(self) -> None:
        while not self._closed.is_set():
            try:
                self._stand_in_line()
            except Exception as error:  # noqa: BLE001 - whatever it is, the lock is asked for again
                self._set(trouble=f"the lock is not to be had: {error}")
                self._closed.wait(2.0)
        self._consumer.close()

    def _stand_in_line(self) -> None:
        self._make_topic()
        self._consumer.subscribe(
            [self._topic], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._revoked
        )
        while not self._closed.is_set():
            message = self._consumer.poll(0.5)
            error = None if message is None else message.error()
            if error is not None and not self._has_it:
                # Perhaps somebody has deleted the topic.
                raise KafkaException(error)
            if self._is_tired:
                self._consumer.unsubscribe()
                self._set()
                self._is_tired = False
                self._closed.wait(REST_S)
                return
            if self._trouble and not self._has_it:
                # The brokers say when they are gone, but not when they are back.
                self._consumer.list_topics(self._topic, timeout=5.0)
                self._set()

    def _assigned(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        consumer.assign(partitions)
        # What is in the topic is read by others.
        consumer.pause(partitions)
        # A topic that somebody else made may have several.
        self._set(has_it=any(one.partition == 0 for one in partitions))

    def _revoked(self, *_: object) -> None:
        self._set(has_it=False)

    def _failed(self, error: KafkaError) -> None:
        if error.code() == KafkaError._ALL_BROKERS_DOWN and not self._has_it:
            self._set(trouble=f"the brokers at {self._where} cannot be reached")

    def _set(self, *, has_it: bool = False, trouble: str = "") -> None:
        if has_it and not self._has_it:
            log.info("has the lock: this Warren notifies")
        self._has_it, self._trouble = has_it, trouble
        self._on_change()

    def close(self) -> None:
        """Leave the group at once."""
        self._closed.set()
        self._has_it = False
        self._thread.join(JOIN_S)
