"""The process beside the cycle: questions come by its pipe, a thread for each cluster answers them."""

from __future__ import annotations

import logging
import os
import pickle
import queue
import signal
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import TypeAlias

import pyarrow as pa

from warren.errors import ClusterError
from warren.kafka.cluster import ClusterSampler, KnownVersions, SampleReply
from warren.kafka.samples import ClusterSample, Partition, SamplingTarget

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SampleAll:
    """Sample every cluster of the process by the deadline, on the monotonic clock all processes share."""

    number: int
    deadline: float
    known: Mapping[str, KnownVersions]
    unverified_tails: Mapping[str, Sequence[Partition]]


@dataclass(frozen=True, slots=True)
class ListCommitted:
    """List what the groups of one cluster have committed."""

    number: int
    deadline: float
    cluster: str


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer of one cluster to the question of that number; an exception says why there is none."""

    number: int
    cluster: str
    body: SampleReply | pa.Table | ClusterError


Message: TypeAlias = SampleAll | ListCommitted


def send(connection: Connection, message: Message | Reply | None) -> None:
    """Sends with protocol 5, which copies arrays and tables as they are."""
    connection.send_bytes(pickle.dumps(message, protocol=5))


def main(connection: Connection, targets: Sequence[SamplingTarget]) -> None:
    """Serves questions until it is told to end or its parent is gone, killed without a word included."""
    # Ctrl-C reaches every process of a terminal; when to stop is for the parent to say.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    replies = _Replies(connection)
    desks = {target.cluster: _ClusterWorker(target, replies) for target in targets}
    try:
        while True:
            message: Message | None = pickle.loads(connection.recv_bytes())  # noqa: S301 - our own parent's
            if message is None:
                break
            asked = desks.values() if isinstance(message, SampleAll) else [desks[message.cluster]]
            for desk in asked:
                desk.take(message)
    except (EOFError, OSError):
        pass
    # At once: closing a client waits for brokers that may be away.
    os._exit(0)


class _Replies:
    """The way back, one reply at a time."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._lock = threading.Lock()

    def send(self, reply: Reply) -> None:
        with self._lock:
            try:
                send(self._connection, reply)
            except OSError:
                os._exit(0)


class _ClusterWorker:
    """Where questions about one cluster arrive; those it is too late for are dropped."""

    def __init__(self, target: SamplingTarget, replies: _Replies) -> None:
        self._cluster = target.cluster
        self._replies = replies
        self._questions: queue.SimpleQueue[SampleAll] = queue.SimpleQueue()
        self._watcher: ClusterSampler | None = None
        self._refusal = ""
        try:
            self._watcher = ClusterSampler(target)
        except ClusterError as e:
            self._refusal = str(e)
        else:
            threading.Thread(target=self._refresh, args=(self._watcher,), daemon=True).start()
        threading.Thread(target=self._answer_samples, daemon=True).start()

    def take(self, message: Message) -> None:
        if isinstance(message, SampleAll):
            self._questions.put(message)
        else:
            # In a thread of its own, as it may take long and samples must go on.
            threading.Thread(target=self._answer_committed, args=(message,), daemon=True).start()

    def _answer_samples(self) -> None:
        while True:
            question = self._questions.get()
            if question.deadline > time.monotonic():
                self._replies.send(Reply(question.number, self._cluster, self._sample(question)))

    def _sample(self, question: SampleAll) -> SampleReply:
        if self._watcher is None:
            return SampleReply(ClusterSample(self._cluster, error=self._refusal))
        try:
            known, unverified_tails = (
                question.known.get(self._cluster, KnownVersions()),
                question.unverified_tails.get(self._cluster, ()),
            )
            return self._watcher.sample(question.deadline, known, unverified_tails)
        except Exception as e:  # noqa: BLE001 - whatever is wrong with one cluster must be said, and leave the others alone
            _log.exception("cluster %s: sample", self._cluster)
            return SampleReply(ClusterSample(self._cluster, error=f"{type(e).__name__}: {e}"))

    def _answer_committed(self, question: ListCommitted) -> None:
        body: pa.Table | ClusterError
        try:
            if self._watcher is None:
                raise ClusterError(self._refusal)
            body = self._watcher.committed(question.deadline)
        except ClusterError as e:
            body = e
        except Exception as e:  # noqa: BLE001 - as above
            _log.exception("cluster %s: committed offsets", self._cluster)
            body = ClusterError(f"{type(e).__name__}: {e}")
        self._replies.send(Reply(question.number, self._cluster, body))

    def _refresh(self, watcher: ClusterSampler) -> None:
        while True:
            try:
                watcher.refresh_forever()
            except Exception:  # noqa: BLE001 - as above
                _log.exception("cluster %s: topics", self._cluster)
                time.sleep(1.0)
