"""Of several Warrens one notifies: the one that has the lock, in ZooKeeper or by Kafka."""

import logging
import socket
import threading
from collections.abc import Callable, Mapping
from typing import Protocol

from confluent_kafka import Consumer, KafkaError, TopicPartition
from kazoo.client import KazooClient
from kazoo.exceptions import CancelledError, KazooException
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.protocol.states import KazooState
from kazoo.recipe.lock import Lock as Recipe
from kazoo.retry import KazooRetry

from warren.config import Tls, ZooKeeper
from warren.errors import WarrenError

log = logging.getLogger(__name__)

Wake = Callable[[], None]

BURROWS_NAME = "lock-"
"""What Burrow's contenders for the same lock are called, so that it and Warren never notify both."""
JOIN_S = 5.0


class Lock(Protocol):
    """Who has it notifies."""

    def is_held(self) -> bool:
        """Whether this one has it, for sure, now."""
        ...

    @property
    def trouble(self) -> str:
        """Why nobody can tell who has it; empty while that is known."""
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
        self._has_it = False
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
        return self._has_it and bool(self._client.connected)

    @property
    def trouble(self) -> str:
        """Why nobody can tell who has it."""
        return "" if self._client.connected else f"ZooKeeper at {self._where} cannot be reached"

    def _heard(self, state: str) -> None:
        if state == KazooState.LOST:
            # The session is over, and with it the lock; it is asked for anew.
            self._has_it = False
        self._moved.set()
        self._on_change()

    def _run(self) -> None:
        while not self._closed:
            self._moved.clear()
            if self._client.connected and not self._has_it:
                self._ask()
            else:
                self._moved.wait(1.0)

    def _ask(self) -> None:
        self._lock = Recipe(self._client, self._path, socket.gethostname(), extra_lock_patterns=(BURROWS_NAME,))
        try:
            session = self._client.client_id
            has_it = bool(self._lock.acquire())
            # A session that ended meanwhile took the lock with it.
            self._has_it = has_it and self._client.client_id == session and self._client.state != KazooState.LOST
            if self._has_it:
                log.info("has the lock %s: this Warren notifies", self._path)
                self._on_change()
        except CancelledError:
            return
        except (KazooException, KazooTimeoutError) as error:
            log.debug("the lock %s was not to be had: %r", self._path, error)
            self._moved.wait(0.5)

    def close(self) -> None:
        """Give it up at once; ZooKeeper ends the session with the connection."""
        self._closed = True
        self._has_it = False
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

    def _run(self) -> None:
        while not self._closed.is_set() and not self._is_made():
            self._closed.wait(2.0)
        self._consumer.subscribe(
            [self._topic], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._revoked
        )
        while not self._closed.is_set():
            message = self._consumer.poll(0.5)
            error = None if message is None else message.error()
            if error is not None and not self._has_it:
                self._set(trouble=f"the lock is not to be had: {error.str()}")
        self._consumer.close()

    def _is_made(self) -> bool:
        try:
            self._make_topic()
        except WarrenError as error:
            self._set(trouble=str(error))
            return False
        return True

    def _assigned(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        consumer.assign(partitions)
        # What is in the topic is read by others.
        consumer.pause(partitions)
        self._set(has_it=bool(partitions))

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
