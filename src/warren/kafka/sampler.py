"""Looks at all clusters at once, from processes beside the cycle, so that none of them can hold it up."""

from __future__ import annotations

import contextlib
import itertools
import logging
import multiprocessing
import pickle
import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from types import TracebackType
from typing import Self

import pyarrow as pa

from warren.errors import ClusterError
from warren.kafka.cluster import KnownVersions, SampleReply
from warren.kafka.sampler_process import ListCommitted, Message, Reply, SampleAll, main, send
from warren.kafka.samples import ClusterSample, Partition, SamplingTarget

_log = logging.getLogger(__name__)

# A process uses a little less than the time it is given, so that what it has arrives within it.
_WAY_BACK_SHARE = 0.1
_WAY_BACK_MOST_S = 0.5
_CLOSE_S = 2.0
# A process that is asked and says nothing at all for so long is stuck.
_SILENCE_S = 120.0

_Box = queue.SimpleQueue["Reply | _Worker"]


class ClusterSamplers:
    """Owns the processes that look at the clusters; may be used from several threads."""

    def __init__(self, targets: Sequence[SamplingTarget], processes: int) -> None:
        self._clusters = [target.cluster for target in targets]
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._boxes: dict[int, _Box] = {}
        self._held: dict[str, _Held] = {}
        self._unverified_tails: Mapping[str, Sequence[Partition]] = {}
        dealt = [list(targets[i :: max(processes, 1)]) for i in range(max(processes, 1))]
        self._workers = [_Worker(f"warren-watch-{i}", hand, self._deliver) for i, hand in enumerate(dealt) if hand]

    def verify_tails(self, partitions: Mapping[str, Sequence[Partition]]) -> None:
        """With the next sample, look whether the tails of these partitions of each cluster hold data at all."""
        with self._lock:
            self._unverified_tails = partitions

    def sample(self, timeout_s: float) -> dict[str, ClusterSample]:
        """Asks all clusters at once; one that did not answer in time has an error instead of a sample."""
        with self._lock:
            held, unverified_tails, self._unverified_tails = dict(self._held), self._unverified_tails, {}
        found: dict[str, ClusterSample] = {}
        known = {cluster: held[cluster].known for cluster in held}
        for reply in self._ask(self._workers, lambda n, by: SampleAll(n, by, known, unverified_tails), timeout_s):
            if isinstance(reply, _Worker):
                found |= {c: ClusterSample(c, error=reply.obituary) for c in reply.clusters if c not in found}
            elif isinstance(reply.body, SampleReply):
                found[reply.cluster] = self._complete(reply.body, held.get(reply.cluster))
            if len(found) == len(self._clusters):
                break
        late = f"no answer within {timeout_s:g} s"
        return {c: found.get(c) or ClusterSample(c, error=late) for c in self._clusters}

    def committed(self, cluster: str, timeout_s: float) -> pa.Table:
        """The committed offsets of all groups of a cluster: group, topic, partition, offset."""
        worker = next(worker for worker in self._workers if cluster in worker.clusters)
        for reply in self._ask([worker], lambda n, by: ListCommitted(n, by, cluster), timeout_s):
            if isinstance(reply, _Worker):
                raise ClusterError(f"cluster {cluster}: committed offsets: {reply.obituary}")
            if isinstance(reply.body, ClusterError):
                raise ClusterError(f"cluster {cluster}: committed offsets: {reply.body}")
            return reply.body
        raise ClusterError(f"cluster {cluster}: committed offsets: no answer within {timeout_s:g} s")

    def close(self) -> None:
        """Ends the processes."""
        for worker in self._workers:
            worker.hang_up()
        for worker in self._workers:
            worker.bury()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _ask(
        self, workers: Sequence[_Worker], message: Callable[[int, float], Message], timeout_s: float
    ) -> Iterator[Reply | _Worker]:
        """Yields replies until the time is up, and a worker that died twice over the question."""
        deadline = time.monotonic() + timeout_s
        way_back_s = min(timeout_s * _WAY_BACK_SHARE, _WAY_BACK_MOST_S)
        number = next(self._numbers)
        question = message(number, deadline - way_back_s)
        box: _Box = queue.SimpleQueue()
        with self._lock:
            self._boxes[number] = box
        try:
            for worker in workers:
                worker.ask(question)
            asked_again: set[_Worker] = set()
            while True:
                try:
                    reply = box.get(timeout=max(deadline - time.monotonic(), 0.0))
                except queue.Empty:
                    return
                if isinstance(reply, _Worker):
                    if reply not in workers:
                        continue
                    if reply not in asked_again:
                        asked_again.add(reply)
                        reply.ask(question)
                        continue
                yield reply
        finally:
            # A reply that comes later finds no box, so it is never taken for the answer to another question.
            with self._lock:
                del self._boxes[number]

    def _deliver(self, reply: Reply | _Worker) -> None:
        with self._lock:
            if isinstance(reply, Reply):
                boxes = [self._boxes[reply.number]] if reply.number in self._boxes else []
            else:
                boxes = list(self._boxes.values())
            for box in boxes:
                box.put(reply)

    def _complete(self, answer: SampleReply, held: _Held | None) -> ClusterSample:
        """Puts back what the process left out because it was held here already."""
        sample = answer.sample
        if sample.error is not None:
            return sample
        if held is not None and held.known.layout == answer.known.layout:
            sample = replace(sample, topics=held.sample.topics, log_starts=held.sample.log_starts)
        with self._lock:
            self._held[sample.cluster] = _Held(answer.known, sample)
        return sample


class _Held:
    """The last sample of a cluster and the versions it came with."""

    __slots__ = ("known", "sample")

    def __init__(self, known: KnownVersions, sample: ClusterSample) -> None:
        self.known = known
        self.sample = sample


class _Worker:
    """One process and its pipe; started again with the next question when it has died."""

    def __init__(
        self, name: str, targets: Sequence[SamplingTarget], deliver: Callable[[Reply | _Worker], None]
    ) -> None:
        self.clusters = tuple(target.cluster for target in targets)
        self.obituary = ""
        self._name = name
        self._targets = targets
        self._deliver = deliver
        self._lock = threading.Lock()
        self._is_closed = False
        self._silent_since: float | None = None
        self._process: SpawnProcess | None = None
        self._reader: threading.Thread | None = None
        self._pipe: Connection | None = None
        with self._lock:
            self._start()

    def ask(self, message: Message) -> None:
        with self._lock:
            if self._pipe is None and not self._is_closed:
                self._start()
            if self._pipe is None:
                return
            now = time.monotonic()
            self._silent_since = self._silent_since or now
            if self._process and now - self._silent_since > _SILENCE_S:
                self._process.kill()
            with contextlib.suppress(OSError):  # it has just died, and whoever reads from it will say so
                send(self._pipe, message)

    def hang_up(self) -> None:
        with self._lock:
            self._is_closed = True
            if self._pipe is not None:
                with contextlib.suppress(OSError):
                    send(self._pipe, None)

    def bury(self) -> None:
        # Only the thread that reads from it waits for the process: of two that do, one returns too early.
        if self._process is not None and self._reader is not None:
            self._reader.join(_CLOSE_S)
            self._process.kill()
            self._reader.join()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=main, args=(theirs, self._targets), name=self._name, daemon=True)
        process.start()
        theirs.close()  # ours would keep the pipe open after the process has died
        self._process, self._pipe, self._silent_since = process, ours, None
        self._reader = threading.Thread(target=self._read, args=(process, ours), name=self._name, daemon=True)
        self._reader.start()

    def _read(self, process: SpawnProcess, pipe: Connection) -> None:
        while True:
            try:
                reply = pickle.loads(pipe.recv_bytes())  # noqa: S301 - our own child's
            except (EOFError, OSError):
                break
            self._silent_since = None
            self._deliver(reply)
        process.join()
        with self._lock:
            if self._is_closed:
                return
            self._pipe = None
            self.obituary = f"the process that watches it died (exit code {process.exitcode})"
        pipe.close()
        _log.warning("%s died (exit code %s) and is started again", self._name, process.exitcode)
        self._deliver(self)
