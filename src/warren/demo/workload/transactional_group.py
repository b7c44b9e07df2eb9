"""A group that consumes and produces in transactions, some of which it aborts on purpose."""

import contextlib
from dataclasses import dataclass, field

import confluent_kafka
from confluent_kafka import Consumer, KafkaException, TopicPartition

from warren.demo.workload.consumer_group import REQUEST_TIMEOUT_S
from warren.demo.workload.consuming_groups import Healthy
from warren.demo.workload.thread import CLIENT_LOG, is_fatal
from warren.demo.workload.topics import PAYLOAD, client_config


@dataclass(eq=False, repr=False, kw_only=True)
class Transactional(Healthy):
    """Writes one message to `output` per message it consumes, in a transaction with its offsets: always OK.

    It aborts every `abort_every`-th transaction after sending its offsets, and consumes those messages again.
    """

    output: str
    abort_every: int = 4
    transactions: int = field(init=False, default=0)
    """How many transactions it has committed or aborted."""
    aborted: int = field(init=False, default=0)
    """How many of them it aborted on purpose."""
    _restart_positions: dict[int, int] = field(init=False, default_factory=dict)
    _unwritten: int = field(init=False, default=0)

    def _work(self, consumer: Consumer) -> None:
        self._restart_positions = {}
        self._unwritten = 0
        self._producer = confluent_kafka.Producer(
            {
                **client_config(self.bootstrap, self.client_id),
                "transactional.id": f"{self.group}:{self.topic}",
                "transaction.timeout.ms": 10_000,
                "linger.ms": 5,
            },
            logger=CLIENT_LOG,
        )
        self._producer.init_transactions(REQUEST_TIMEOUT_S)
        super()._work(consumer)

    def _consume(self, consumer: Consumer, timeout_s: float) -> int:
        count = super()._consume(consumer, timeout_s)
        self._unwritten += count
        return count

    def _commit_positions(self, consumer: Consumer) -> None:
        if not self._positions:
            return
        producer = self._producer
        is_aborted = (self.transactions + 1) % self.abort_every == 0
        offsets = dict(self._positions)
        producer.begin_transaction()
        try:
            producer.produce_batch(self.output, [{"value": PAYLOAD}] * self._unwritten)
            producer.send_offsets_to_transaction(
                self._topic_partitions(offsets), consumer.consumer_group_metadata(), REQUEST_TIMEOUT_S
            )
            if is_aborted:
                producer.flush(REQUEST_TIMEOUT_S)
                producer.abort_transaction(REQUEST_TIMEOUT_S)
            else:
                producer.commit_transaction(REQUEST_TIMEOUT_S)
        except KafkaException as error:
            if not is_fatal(error):
                producer.abort_transaction(REQUEST_TIMEOUT_S)
                self._consume_again(consumer)
            raise
        self.transactions += 1
        if is_aborted:
            self.aborted += 1
            self._consume_again(consumer)
        else:
            self._restart_positions.update(offsets)
            self._unwritten = 0
            self._count_commit(offsets)

    def _consume_again(self, consumer: Consumer) -> None:
        self._unwritten = 0
        for partition in self._positions:
            self._positions[partition] = self._restart_positions[partition]
            with contextlib.suppress(KafkaException):
                consumer.seek(TopicPartition(self.topic, partition, self._positions[partition]))

    def _on_assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        super()._on_assign(consumer, partitions)
        self._restart_positions.update({tp.partition: self._positions[tp.partition] for tp in partitions})

    def _commit_revoked(self, consumer: Consumer, offsets: dict[int, int]) -> None:
        """Nothing: offsets are committed in transactions only, and none is open during a rebalance."""
