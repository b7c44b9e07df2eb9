"""Asks brokers which transactions are open, through the Java admin client in Spark's driver.

confluent-kafka's admin client has no calls for transactions.
"""

import logging
import time
from collections.abc import Mapping
from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkContext

from warren.config import Config
from warren.errors import WarrenError
from warren.kafka.options import to_java
from warren.kafka.samples import Partition

log = logging.getLogger(__name__)

Java = Any
"""An object in the JVM of Spark's driver."""
MAX_ID_CHARS = 500
MAX_SEARCH_S = 20.0
"""How long to search the producers of partitions: each takes some calls into the JVM, and there may be thousands."""
_TIMEOUT_MS = 10_000
_TIMEOUTS = {"request.timeout.ms": "5000", "default.api.timeout.ms": str(_TIMEOUT_MS)}


def find_transactional_ids(config: Config, cluster: str, stable_ends: Mapping[Partition, int]) -> dict[Partition, str]:
    """The transactional ids of the transactions that have been open since the last stable offset of some partitions.

    A partition is missing if its brokers do not tell: they are too old, do not answer, or a right is missing.
    """
    section = config.clusters[cluster]
    # Not an argument, because Spark may be restarted at any time.
    jvm: Java = SparkContext._jvm
    if jvm is None:
        return {}
    try:
        settings = to_java(config.connection_of(section)) | _TIMEOUTS
        admin = jvm.org.apache.kafka.clients.admin.AdminClient.create(settings)
        try:
            producers = _find_producers(jvm, admin, stable_ends)
            ids = _list_transactional_ids(jvm, admin, set(producers.values())) if producers else {}
        finally:
            admin.close(jvm.java.time.Duration.ZERO)
    except (Py4JError, WarrenError) as error:
        log.debug("%s: its open transactions are unknown: %s", cluster, error)
        return {}
    return {partition: ids[producer] for partition, producer in producers.items() if producer in ids}


def _find_producers(jvm: Java, admin: Java, stable_ends: Mapping[Partition, int]) -> dict[Partition, int]:
    """The ids of the producers whose transactions begin at the last stable offsets."""
    partitions = {at: jvm.org.apache.kafka.common.TopicPartition(*at) for at in stable_ends}
    described = admin.describeProducers(list(partitions.values()))
    found: dict[Partition, int] = {}
    stop_at = time.monotonic() + MAX_SEARCH_S
    for at, partition in partitions.items():
        state = _result(jvm, described.partitionResult(partition))
        for producer in state.activeProducers() if state else ():
            if time.monotonic() > stop_at:
                return found
            if producer.currentTransactionStartOffset().orElse(-1) == stable_ends[at]:
                found[at] = producer.producerId()
                break
    return found


def _list_transactional_ids(jvm: Java, admin: Java, producers: set[int]) -> dict[int, str]:
    """The transactional ids of some producers, by the brokers that answer."""
    wanted = jvm.java.util.HashSet()
    for producer in producers:
        # A small number by itself would become an Integer, and the thread of the admin client would end by that.
        wanted.addAll(jvm.java.util.stream.LongStream.of(producer).boxed().toList())
    options = jvm.org.apache.kafka.clients.admin.ListTransactionsOptions().filterProducerIds(wanted)
    listings = _result(jvm, admin.listTransactions(options).byBrokerId())
    transactions = [own for listing in (listings or {}).values() for own in _result(jvm, listing) or ()]
    return {own.producerId(): own.transactionalId()[:MAX_ID_CHARS] for own in transactions}


def _result(jvm: Java, future: Java) -> Java:
    """The result of a call, None if it failed."""
    try:
        return future.get(_TIMEOUT_MS, jvm.java.util.concurrent.TimeUnit.MILLISECONDS)
    except Py4JError as error:
        log.debug("a call of the Java admin client failed: %s", error)
        return None
