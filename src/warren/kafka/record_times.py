"""When the records at given offsets were made, by asking the brokers for offsets by time, or by reading the records.

A broker tells the first record from a time on, with its offset and its own timestamp. Guessing the time of an offset,
and guessing better with every answer, finds its record in a few rounds, for all partitions at once and without reading
any message. Where the user wants it, the record itself is read. What was found never changes, so it is kept.
"""

import logging
import math
import queue
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from confluent_kafka import KafkaException, TopicPartition

from warren.config.kafka import Connection
from warren.domain.arrays import Ints
from warren.errors import ClusterError
from warren.kafka.admin import READ_UNCOMMITTED, Admin, AdminOf, batches
from warren.kafka.partition_reader import PartitionReader, read_times
from warren.kafka.samples import KnownTime, Partition, RecordTime, SampleQuestions, UnreadOffset
from warren.kafka.topics import MAX_REQUEST_PARTITIONS, PartitionLayout

_log = logging.getLogger(__name__)

MAX_ROUNDS = 9
MAX_LOOKUPS = 2_000
"""How many offsets are looked up at once; the others follow when these are known."""
MAX_READ_RECORDS = 200
"""How many records are read at once, each by a fetch of `_FETCH_BYTES` or of one batch."""
_FETCH_BYTES = 16_384
_READ_TIMEOUT_S = 5.0
_WITHOUT_RIGHT = "until then times of its records are looked up without reading them"
_MAX_KEPT_PARTITIONS = 50_000
_MAX_KEPT_OFFSETS = 20
"""How many of the offsets of one partition are kept: one per group that is behind on it."""
_TIMEOUT_S = 10.0
_GOOD_SHARE = 0.01
"""A time is exact enough when it is off by at most so much of the record's age."""
_GOOD_MS = 1_000

TimedOffset = tuple[int, int]
"""An offset and the timestamp of its record; (-1, -1) if there is none from that time on."""

AskByTime = Callable[[Mapping[Partition, int], float], Mapping[Partition, TimedOffset]]
"""Asks for the first record of each partition from a time on, until a deadline; those that do not answer lack."""


def offsets_by_time(admin: Admin, times: Mapping[Partition, int], deadline: float) -> dict[Partition, TimedOffset]:
    """The first record of each partition from a time on; those that do not answer in time lack."""
    request = [TopicPartition(*partition, time_ms) for partition, time_ms in times.items()]
    futures = [
        admin.list_offsets(batch, READ_UNCOMMITTED, deadline) for batch in batches(request, MAX_REQUEST_PARTITIONS)
    ]
    answers: dict[Partition, TimedOffset] = {}
    for future in futures:
        try:
            answered = future.result(max(deadline - time.monotonic(), 0.0))
        except (KafkaException, TimeoutError):
            continue
        for partition, answer in answered.items():
            if hasattr(answer, "offset"):
                answers[partition.topic, partition.partition] = (answer.offset, answer.timestamp)
    return answers


@dataclass(slots=True)
class _Search:
    """What is known of the time of one offset: it is from `low_ms` on, and before `high_ms`."""

    offset: int
    low_offset: int
    low_ms: int
    high_offset: int
    high_ms: int
    found_ms: int | None = None
    rounds: int = 0

    def is_done(self, now_ms: int) -> bool:
        """Whether the time is known as exactly as it is needed."""
        good_ms = max(_GOOD_MS, round(_GOOD_SHARE * (now_ms - self.low_ms)))
        return self.found_ms is not None or self.high_ms - self.low_ms <= good_ms or self.rounds >= MAX_ROUNDS

    def guess_ms(self) -> int:
        """The time at which the record is expected: on a steady line, soon after a burst has begun, or anywhere."""
        span_ms, offsets = self.high_ms - self.low_ms, self.high_offset - self.low_offset
        on_line = (self.offset - self.low_offset + 0.5) / max(offsets, 1) * span_ms
        guess = (on_line, on_line, math.sqrt(span_ms), span_ms / 2)[self.rounds % 4]
        return self.low_ms + min(max(round(guess), 1), max(span_ms - 1, 1))

    def take(self, asked_ms: int, answer: TimedOffset) -> None:
        """Narrow the span by the first record from a time on."""
        self.rounds += 1
        offset, time_ms = answer
        if offset == self.offset:
            self.found_ms = time_ms
        elif 0 <= offset < self.offset:
            # The record is a later one, so its time is that of the answer or later, if times rise with offsets.
            self.low_offset, self.low_ms = offset, max(time_ms, self.low_ms)
            self.high_ms = max(self.high_ms, self.low_ms)
        else:
            self.high_ms = max(asked_ms, self.low_ms)
            self.high_offset = min(self.high_offset, offset) if offset >= 0 else self.high_offset


class RecordTimes:
    """The times of records of one cluster; a thread finds the requested ones, one batch after the other."""

    def __init__(self, cluster: str, client: AdminOf, connection: Connection) -> None:
        self._cluster, self._client = cluster, client
        self._reader = PartitionReader(cluster, connection, _FETCH_BYTES, _WITHOUT_RIGHT)
        self._lock = threading.Lock()
        self._known: dict[tuple[str, str, int], dict[int, KnownTime]] = {}
        """By topic id, topic and partition, and then by offset."""
        self._requests: queue.SimpleQueue[_Requested | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._is_busy = False

    def known(self, questions: SampleQuestions, layout: PartitionLayout, heads: Ints) -> tuple[RecordTime, ...]:
        """The times of those of the records that are known, or of the last two known ones before them.

        The others are found for later samples. Without an id a topic may be another one of that name.
        """
        located = layout.locate((topic, partition) for topic, partition, _ in questions.unread_offsets)
        to_read = set(questions.unread_records)
        found: dict[RecordTime, None] = {}
        missing = _Requested({}, {}, {})
        with self._lock:
            for unread in questions.unread_offsets:
                topic, partition, offset = unread
                topic_id, index = located.get((topic, partition), ("", 0))
                times = self._known.get((topic_id, topic, partition), {})
                if topic_id and offset not in times:
                    missing.add(unread, topic_id, int(heads[index]), is_read=unread in to_read)
                wanted = [offset] if offset in times else sorted(known for known in times if known < offset)[-2:]
                found |= {(topic, partition, each, *times[each]): None for each in wanted}
        if missing.topic_ids:
            self._request(missing)
        return tuple(found)

    def close(self) -> None:
        """End the thread, after what it is looking up."""
        self._requests.put(None)

    def _request(self, unread: "_Requested") -> None:
        if self._is_busy:
            return
        self._is_busy = True
        if self._thread is None:
            self._thread = threading.Thread(target=self._look_up_forever, daemon=True)
            self._thread.start()
        self._requests.put(unread)

    def _look_up_forever(self) -> None:
        def ask(times: Mapping[Partition, int], deadline: float) -> dict[Partition, TimedOffset]:
            return offsets_by_time(self._client.admin(), times, deadline)

        while (request := self._requests.get()) is not None:
            try:
                read = self._read(request.to_read)
                self._keep((request.topic_ids[unread], unread, known) for unread, known in read.items())
                # Records that could not be read are looked up.
                heads = request.to_look_up | {u: head for u, head in request.to_read.items() if u not in read}
                found = look_up(ask, heads, _now_ms(), time.monotonic() + _TIMEOUT_S)
                self._keep((request.topic_ids[unread], unread, (*times, False)) for unread, times in found.items())
            except ClusterError as error:
                _log.debug("cluster %s: times of records: %s", self._cluster, error)
            except Exception:  # noqa: BLE001 - samples go on without these times
                _log.exception("cluster %s: times of records", self._cluster)
            finally:
                self._is_busy = False

    def _read(self, unread: Iterable[UnreadOffset]) -> dict[UnreadOffset, KnownTime]:
        try:
            return read_times(self._reader, unread, time.monotonic() + _READ_TIMEOUT_S)
        except KafkaException as error:
            _log.warning("cluster %s: records could not be read: %s", self._cluster, error)
            return {}

    def _keep(self, found: Iterable[tuple[str, UnreadOffset, KnownTime]]) -> None:
        with self._lock:
            for topic_id, (topic, partition, offset), known in found:
                kept = self._known.pop((topic_id, topic, partition), {})
                newest = list({**kept, offset: known}.items())[-_MAX_KEPT_OFFSETS:]
                self._known[topic_id, topic, partition] = dict(newest)
            for oldest in list(self._known)[: max(len(self._known) - _MAX_KEPT_PARTITIONS, 0)]:
                del self._known[oldest]


@dataclass(frozen=True, slots=True)
class _Requested:
    """Offsets whose times are to be found, with the heads of their partitions and the ids of their topics."""

    to_look_up: dict[UnreadOffset, int]
    to_read: dict[UnreadOffset, int]
    topic_ids: dict[UnreadOffset, str]

    def add(self, unread: UnreadOffset, topic_id: str, head: int, *, is_read: bool) -> None:
        """Add an offset, unless there are enough of its kind."""
        requested, limit = (self.to_read, MAX_READ_RECORDS) if is_read else (self.to_look_up, MAX_LOOKUPS)
        if len(requested) < limit:
            requested[unread], self.topic_ids[unread] = head, topic_id


def look_up(
    ask: AskByTime, unread: Mapping[UnreadOffset, int], now_ms: int, deadline: float
) -> dict[UnreadOffset, tuple[int, int]]:
    """The times of records by their offsets, and how far off each may be; those that the brokers do not tell lack.

    `unread` has the head of the partition of each. An offset whose record is gone has the time of the first one left.
    """
    searches: dict[UnreadOffset, _Search] = {}
    first = ask({each[:2]: 0 for each in unread}, deadline)
    for each, head in unread.items():
        offset, time_ms = first.get(each[:2], (-1, -1))
        if offset >= 0 and time_ms >= 0:
            searches[each] = _Search(each[2], offset, min(time_ms, now_ms), head, now_ms)
            if each[2] <= offset:
                searches[each].found_ms = time_ms
    while open_searches := _one_per_partition(searches, now_ms):
        asked = {each[:2]: search.guess_ms() for each, search in open_searches.items()}
        answers = ask(asked, deadline)
        for each, search in open_searches.items():
            if each[:2] in answers:
                search.take(asked[each[:2]], answers[each[:2]])
            else:
                del searches[each]
    return {each: _time_and_error(search) for each, search in searches.items()}


def _one_per_partition(searches: Mapping[UnreadOffset, _Search], now_ms: int) -> dict[UnreadOffset, _Search]:
    """Searches that are not done; a request has one time per partition."""
    is_open = {each: search for each, search in searches.items() if not search.is_done(now_ms)}
    return {each: is_open[each] for each in {each[:2]: each for each in is_open}.values()}


def _time_and_error(search: _Search) -> tuple[int, int]:
    if search.found_ms is not None:
        return search.found_ms, 0
    middle_ms = (search.low_ms + search.high_ms) // 2
    return middle_ms, search.high_ms - middle_ms


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
