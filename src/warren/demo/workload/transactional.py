"""A group that consumes, processes and produces in transactions, some of which it gives up on purpose."""

import contextlib
from typing import ClassVar

import confluent_kafka
from confluent_kafka import Consumer, KafkaException, TopicPartition

from warren.demo.workload.behaviour import ASK_S, OK, POLL_S
from warren.demo.workload.readers import Healthy
from warren.demo.workload.topics import PAYLOAD, client_config
from warren.demo.workload.worker import CLIENT_LOG, Schedule, is_fatal


class Transactional(Healthy):
    """Writes one message to `output` for each it reads, its offsets go with the transaction: always OK.

    Every `abort_every`-th transaction (0: none) is aborted after its offsets were sent, and its messages are
    read again.
    """

    expected: ClassVar[frozenset[str]] = OK
    kind: ClassVar[str] = "transactional"

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        group: str,
        *,
        output: str,
        commit_every_s: float = 1.0,
        abort_every: int = 4,
    ) -> None:
        super().__init__(bootstrap, topic, group, commit_every_s=commit_every_s)
        self.output = output
        self.abort_every = abort_every
        self.transactions = 0
        """How many transactions it has ended, committed or aborted."""
        self.aborted = 0
        """How many of them it aborted on purpose."""
        self._safe: dict[int, int] = {}
        self._unsent = 0

    def _session(self) -> None:
        self._safe = {}
        self._unsent = 0
        super()._session()

    def _read_and_commit(self, consumer: Consumer) -> None:
        producer = confluent_kafka.Producer(
            {
                **client_config(self.bootstrap, self.client_id),
                "transactional.id": f"{self.group}:{self.topic}",
                "transaction.timeout.ms": 10_000,
                "linger.ms": 5,
            },
            logger=CLIENT_LOG,
        )
        producer.init_transactions(ASK_S)
        schedule = Schedule(self._gaps_s())
        while not self._is_done():
            self._unsent += self._read(consumer, schedule.wait_s(POLL_S))
            if schedule.is_due() and self._positions:
                with self._going_on():
                    self._transact(consumer, producer)

    def _transact(self, consumer: Consumer, producer: confluent_kafka.Producer) -> None:
        gives_up = self.abort_every > 0 and (self.transactions + 1) % self.abort_every == 0
        offsets = dict(self._positions)
        producer.begin_transaction()
        try:
            producer.produce_batch(self.output, [{"value": PAYLOAD}] * self._unsent)
            producer.send_offsets_to_transaction(self._places(offsets), consumer.consumer_group_metadata(), ASK_S)
            if gives_up:
                producer.flush(ASK_S)
                producer.abort_transaction(ASK_S)
            else:
                producer.commit_transaction(ASK_S)
        except KafkaException as error:
            if not is_fatal(error):
                producer.abort_transaction(ASK_S)
                self._read_again(consumer)
            raise
        self.transactions += 1
        if gives_up:
            self.aborted += 1
            self._read_again(consumer)
        else:
            self._safe.update(offsets)
            self._unsent = 0
            self._note_commit(offsets)

    def _read_again(self, consumer: Consumer) -> None:
        self._unsent = 0
        for partition in self._positions:
            self._positions[partition] = self._safe[partition]
            with contextlib.suppress(KafkaException):
                consumer.seek(TopicPartition(self.topic, partition, self._safe[partition]))

    def _on_assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        super()._on_assign(consumer, partitions)
        self._safe.update({each.partition: self._positions[each.partition] for each in partitions})

    def _hand_over(self, consumer: Consumer, offsets: dict[int, int]) -> None:
        """Nothing: offsets go with a transaction only, and none is open while the group rebalances."""
