"""Where the data of a partition ends: markers of transactions and aborted messages take offsets, and nobody reads them.

A group that has read everything is then a little behind the head for ever. Which partitions to look at is asked for;
the tail of each is read once for every head.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from warren.domain.lag import SHORT_LAG
from warren.domain.windows import UNKNOWN
from warren.kafka.samples import Offsets, Partition
from warren.kafka.topics import Layout

_log = logging.getLogger(__name__)

_AT_ONCE = 200
_LIMIT_S = 10.0
_MOST_KNOWN = 20_000

_SETTINGS: dict[str, str | int | bool] = {
    "log_level": 0,
    # Partitions are assigned by hand and nothing is committed: the group is a name and never comes to be.
    "group.id": "warren-tails",
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "auto.offset.reset": "earliest",
    "isolation.level": "read_committed",
    "enable.partition.eof": True,
    "fetch.wait.max.ms": 50,
    "fetch.max.bytes": 4_194_304,
    "max.partition.fetch.bytes": 262_144,
    "queued.max.messages.kbytes": 8_192,
}


@dataclass(frozen=True, slots=True)
class Tail:
    """The end of the data of a partition when its head was `head`."""

    head: int
    end: int


class Tails:
    """The tails of one cluster's partitions; a thread reads those that are asked for, one batch after the other."""

    def __init__(self, client_config: Mapping[str, str]) -> None:
        self._config = client_config
        self._known: dict[Partition, Tail] = {}
        self._wanted: queue.SimpleQueue[dict[Partition, int]] = queue.SimpleQueue()
        self._reader: threading.Thread | None = None
        self._is_busy = False

    def look_at(self, partitions: Sequence[Partition], layout: Layout, heads: Offsets) -> None:
        """Read the tails of these partitions, in the background; while some are being read others have to wait."""
        if not partitions or self._is_busy:
            return
        place = _places(layout)
        wanted = {p: int(heads[place[p[0]] + p[1]]) for p in partitions if p[0] in place}
        wanted = {
            p: head
            for p, head in wanted.items()
            if head != UNKNOWN and (p not in self._known or self._known[p].head != head)
        }
        if not wanted:
            return
        self._is_busy = True
        if self._reader is None:
            self._reader = threading.Thread(target=self._read_forever, daemon=True)
            self._reader.start()
        self._wanted.put(wanted)

    def apply(self, layout: Layout, heads: Offsets) -> tuple[Offsets, tuple[Partition, ...]]:
        """The heads without what nobody reads, and the partitions whose tail is known at their present head."""
        known = dict(self._known)
        if not known:
            return heads, ()
        place = _places(layout)
        heads = heads.copy()
        looked_at = []
        for partition, tail in known.items():
            first = place.get(partition[0])
            if first is not None and heads[first + partition[1]] == tail.head:
                heads[first + partition[1]] = tail.end
                looked_at.append(partition)
            else:
                del self._known[partition]
        return heads, tuple(looked_at)

    def _read_forever(self) -> None:
        consumer: Consumer | None = None
        while True:
            wanted = self._wanted.get()
            try:
                consumer = consumer or Consumer({**_SETTINGS, **self._config})
                for some in _parts(list(wanted.items())):
                    self._remember(read_tails(consumer, dict(some), time.monotonic() + _LIMIT_S))
            except Exception as error:  # noqa: BLE001 - what cannot be read is taken as data, and said
                _log.warning("tails of %d partitions could not be read: %s", len(wanted), error)
                self._remember({partition: Tail(head, head) for partition, head in wanted.items()})
            finally:
                self._is_busy = False

    def _remember(self, tails: Mapping[Partition, Tail]) -> None:
        if len(self._known) + len(tails) > _MOST_KNOWN:
            self._known = {}
        self._known.update(tails)


def read_tails(consumer: Consumer, heads: Mapping[Partition, int], deadline: float) -> dict[Partition, Tail]:
    """The tail of each partition up to its head; where it cannot be read all of it counts as data."""
    starts = {p: max(head - SHORT_LAG, 0) for p, head in heads.items()}
    ends = dict(starts)
    is_open = set(heads)
    consumer.assign([TopicPartition(topic, partition, starts[topic, partition]) for topic, partition in heads])
    try:
        while is_open and (left := deadline - time.monotonic()) > 0:
            message = consumer.poll(min(left, 1.0))
            if message is None:
                continue
            place, offset = _place(message)
            if place not in is_open:
                continue
            if (error := message.error()) is None:
                ends[place] = offset + 1
                is_done = ends[place] >= heads[place]
            elif error.code() == KafkaError._PARTITION_EOF:
                # Short of the head there is an open transaction: what it holds may become data.
                is_done = True
                if offset < heads[place]:
                    ends[place] = heads[place]
            else:
                is_done = True
                ends[place] = heads[place]
            if is_done:
                is_open.discard(place)
                consumer.incremental_unassign([TopicPartition(*place)])
    finally:
        _unassign(consumer)
    ends |= {place: heads[place] for place in is_open}
    return {place: Tail(head, min(ends[place], head)) for place, head in heads.items()}


def _place(message: Message) -> tuple[Partition, int]:
    topic, partition, offset = message.topic(), message.partition(), message.offset()
    return (topic or "", UNKNOWN if partition is None else partition), UNKNOWN if offset is None else offset


def _unassign(consumer: Consumer) -> None:
    try:
        consumer.unassign()
    except KafkaException as error:
        _log.debug("unassign: %s", error)


def _places(layout: Layout) -> dict[str, int]:
    return {topic.name: first for topic, first in zip(layout.topics, layout.starts.tolist(), strict=True)}


def _parts(items: Sequence[Any]) -> list[Sequence[Any]]:
    return [items[i : i + _AT_ONCE] for i in range(0, len(items), _AT_ONCE)]
