"""A producer that keeps to its rate."""

import math
import time

import confluent_kafka

from warren.demo.workload.topics import PAYLOAD, client_config, count_partitions
from warren.demo.workload.worker import CLIENT_LOG, Worker

_TICK_S = 0.02
_FLUSH_S = 10.0
_FULL_QUEUE_WAIT_S = 0.1


def messages_due(rate: float, elapsed_s: float, burst_every_s: float = 0.0) -> int:
    """How many messages a rate asks for after so long, smoothly or in bursts of what has gathered."""
    if burst_every_s > 0:
        elapsed_s = math.floor(elapsed_s / burst_every_s) * burst_every_s
    return math.floor(rate * elapsed_s)


class Producer(Worker):
    """Writes `rate` messages a second to a topic, dealt evenly over its partitions.

    The rate holds over any stretch of time: what a busy moment left out is made up for. With `burst_every_s`
    the messages of that many seconds come at once. None is written twice when a broker goes and comes back.
    """

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        rate: float,
        *,
        partitions: int | None = None,
        burst_every_s: float = 0.0,
        payload: bytes = PAYLOAD,
    ) -> None:
        super().__init__(f"producer of {topic}")
        self.bootstrap = bootstrap
        self.topic = topic
        self.rate = rate
        self.partitions = partitions
        self.burst_every_s = burst_every_s
        self.payload = payload
        self.produced = 0
        """How many messages it has written since it was made."""
        self._lost = 0
        self._began: float | None = None
        self._written_before = 0

    @property
    def delivered(self) -> int:
        """How many of its messages Kafka has; exact once it has stopped."""
        return self.produced - self._lost

    def _reset(self) -> None:
        self._began = None
        self._written_before = self.produced

    def _session(self) -> None:
        producer = confluent_kafka.Producer(
            {
                **client_config(self.bootstrap, f"demo-producer-{self.topic}"),
                "enable.idempotence": True,
                "linger.ms": 2,
                "delivery.report.only.error": True,
            },
            logger=CLIENT_LOG,
        )
        try:
            partitions = self.partitions or count_partitions(producer, self.topic)
            if self._began is None:
                # The clock starts with the first message that is there: Kafka takes a second to let one in.
                self._write(producer, 1, partitions)
                producer.flush(_FLUSH_S)
                self._began = time.monotonic() - 1 / self.rate
            tick_s = max(_TICK_S, min(1 / self.rate, 0.2))
            while not self._stopping.wait(tick_s):
                due = messages_due(self.rate, time.monotonic() - self._began, self.burst_every_s)
                self._write(producer, due - (self.produced - self._written_before), partitions)
                producer.poll(0)
        finally:
            self._lost += producer.flush(_FLUSH_S)

    def _write(self, producer: confluent_kafka.Producer, count: int, partitions: int) -> None:
        for _ in range(count):
            try:
                producer.produce(
                    self.topic,
                    self.payload,
                    partition=self.produced % partitions,
                    on_delivery=self._on_failure,
                )
            except BufferError:
                # The brokers are away and the queue is full: the rest is still due at the next tick.
                self._stopping.wait(_FULL_QUEUE_WAIT_S)
                return
            self.produced += 1

    def _on_failure(self, error: confluent_kafka.KafkaError | None, _: confluent_kafka.Message) -> None:
        if error is not None:
            self._lost += 1
