"""The admin client of a cluster, with typed answers and a deadline for every call."""

import contextlib
import threading
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, TypeVar

import confluent_kafka
import numpy as np
from confluent_kafka import ConsumerGroupType, KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import ConfigResource
from confluent_kafka.admin._resource import ResourceType

from warren.config.kafka import Connection
from warren.domain.arrays import Codes
from warren.domain.windows import UNKNOWN
from warren.errors import ClusterError, SecretError
from warren.kafka.broker_versions import BrokerVersions, ask_versions
from warren.kafka.error_callback import ErrorCallback
from warren.kafka.options import to_librdkafka

LATEST = -1
EARLIEST = -2
READ_UNCOMMITTED = 0
READ_COMMITTED = 1

_MAX_REQUEST_TOPICS = 100
_MAX_REQUEST_GROUPS = 100
_MAX_GROUPS_IN_FLIGHT = 200
_NO_TOPIC_ID = "A" * 22
_CONTROLLER_CHECK_S = 1.0
_CONTROLLER_TIMEOUT_S = 5.0

_DEFAULTS: dict[str, str | int] = {
    # The sample reports a broker that is down once; librdkafka would log every attempt to stderr.
    "log_level": 0,
    "reconnect.backoff.ms": 100,
    "reconnect.backoff.max.ms": 2_000,
}
# These errors are about one topic or group; any other error is about the cluster.
_NOT_VISIBLE = (
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.TOPIC_EXCEPTION,
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.GROUP_ID_NOT_FOUND,
    KafkaError.INVALID_GROUP_ID,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
)

_Item = TypeVar("_Item")

OffsetRequest = list[TopicPartition]
OffsetsFuture = Future[dict[TopicPartition, Any]]


@dataclass(frozen=True, slots=True)
class TopicDescription:
    """A topic's id and, for each partition, its leader (UNKNOWN if it has none) and its in-sync replicas.

    The id is "" if the brokers have none, as those before 2.8.
    """

    id: str
    leaders: Codes
    in_sync: tuple[frozenset[int], ...]


@dataclass(frozen=True, slots=True)
class TopicDescriptions:
    """Topics by name, the names that Warren may not see, whether they exist or not, and those that do not exist."""

    topics: dict[str, TopicDescription]
    hidden: list[str]
    absent: list[str]


class _Client(AdminClient):
    def list_raw(self, request: OffsetRequest, isolation: int, timeout_s: float) -> OffsetsFuture:
        # The public list_offsets copies the request and creates one future per partition, which doubles the work.
        future: OffsetsFuture = Future()
        future.set_running_or_notify_cancel()
        super(AdminClient, self).list_offsets(
            request, future, isolation_level_value=isolation, request_timeout=timeout_s
        )
        return future


class AdminOf:
    """The admin client of a connection; a new one when its options have changed, for example a password in a file."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._lock = threading.Lock()
        self._options: dict[str, Any] = {}
        self._admin: Admin | None = None
        self._former: Admin | None = None
        """The client before; its requests under way would fail with it."""

    def admin(self) -> "Admin":
        """The client with the current options; ClusterError if they cannot be used."""
        try:
            options = to_librdkafka(self._connection)
        except SecretError as error:
            raise ClusterError(str(error)) from None
        with self._lock:
            if self._admin is None or options != self._options:
                self._former, self._admin, self._options = self._admin, Admin(options), options
            return self._admin


class Admin:
    """Asks one cluster; raises ClusterError when the cluster as a whole does not answer or refuses."""

    def __init__(self, client_config: Mapping[str, Any]) -> None:
        self._options = client_config
        self._errors = ErrorCallback(client_config)
        settings: dict[str, Any] = {**_DEFAULTS, **client_config, "error_cb": self._errors}
        try:
            self._client = _Client(settings)
        except KafkaException as e:
            raise ClusterError(e.args[0].str()) from e

    def ask_versions(self) -> BrokerVersions | None:
        """What the brokers understand, as one of them tells; None if none does."""
        return ask_versions(self._options, str(self._options["bootstrap.servers"]).split(","))

    def topic_names(self, deadline: float) -> list[str]:
        """The names of all topics, including internal topics."""
        try:
            return list(self._client.list_topics(timeout=_left(deadline)).topics)
        except KafkaException as e:
            raise self._to_error(e) from e

    def describe_topics(self, names: Sequence[str], deadline: float) -> TopicDescriptions:
        """The description of each of these topics that exists and is visible, and which of the others are neither."""
        futures: dict[str, Future[Any]] = {}
        for batch in batches(names, _MAX_REQUEST_TOPICS):
            futures |= self._client.describe_topics(TopicCollection(batch), request_timeout=_left(deadline))
        self._follow_controller(futures.values(), deadline)
        topics = {name: self._result(future, deadline) for name, future in futures.items()}
        self._client.poll(0)
        self._errors.newest = ""
        errors = {name: _error_code(futures[name]) for name, topic in topics.items() if topic is None}
        return TopicDescriptions(
            {name: _to_description(topic) for name, topic in topics.items() if topic is not None},
            hidden=[name for name, code in errors.items() if code == KafkaError.TOPIC_AUTHORIZATION_FAILED],
            absent=[name for name, code in errors.items() if code == KafkaError.UNKNOWN_TOPIC_OR_PART],
        )

    def _follow_controller(self, futures: Collection[Future[Any]], deadline: float) -> None:
        """Wait for descriptions; librdkafka waits for a dead controller until a list of topics names another one."""
        rest_s = _CONTROLLER_CHECK_S
        while wait(futures, min(rest_s, _left(deadline))).not_done and time.monotonic() < deadline:
            started = time.monotonic()
            with contextlib.suppress(KafkaException):
                self._client.list_topics(timeout=min(_CONTROLLER_TIMEOUT_S, _left(deadline)))
            # A large cluster that is only slow is not asked without pause.
            rest_s = max(_CONTROLLER_CHECK_S, 3 * (time.monotonic() - started))

    def describe_configs(self, topics: Sequence[str], deadline: float) -> dict[str, dict[str, str] | None]:
        """The configuration of each topic; None if Warren may not see it, or if there is no such topic."""
        resources = [ConfigResource(ResourceType.TOPIC, topic) for topic in topics]
        futures = self._client.describe_configs(resources, request_timeout=_left(deadline))
        results = {resource.name: self._result(future, deadline) for resource, future in futures.items()}
        return {
            topic: found and {name: entry.value for name, entry in found.items()} for topic, found in results.items()
        }

    def list_offsets(self, request: OffsetRequest, isolation: int, deadline: float) -> OffsetsFuture:
        """Send a request for offsets."""
        return self._client.list_raw(request, isolation, _left(deadline))

    def list_groups(self, deadline: float, *, only_consumer_protocol: bool) -> list[str]:
        """The names of all groups, or of those of the "consumer" protocol; raises if any broker did not answer."""
        types = {"types": {ConsumerGroupType.CONSUMER}} if only_consumer_protocol else {}
        try:
            future = self._client.list_consumer_groups(request_timeout=_left(deadline), **types)
            groups = future.result(_left(deadline))
        except (KafkaException, TimeoutError) as e:
            raise self._to_error(e) from e
        if groups.errors:
            raise self._to_error(groups.errors[0])
        # Brokers before 3.8 know nothing of protocols and list all groups.
        is_wanted = (lambda group: group.type == ConsumerGroupType.CONSUMER) if only_consumer_protocol else None
        return sorted(group.group_id for group in filter(is_wanted, groups.valid))

    def list_owners(self, groups: Sequence[str], deadline: float) -> list[tuple[str, str, int, str, str]]:
        """Group, topic, partition, host and client id of every assigned partition of the groups that are visible."""
        futures: dict[str, Future[Any]] = {}
        for batch in batches(groups, _MAX_REQUEST_GROUPS):
            futures |= self._client.describe_consumer_groups(batch, request_timeout=_left(deadline))
        described = [self._result(future, deadline) for future in futures.values()]
        return [
            (group.group_id, tp.topic, tp.partition, member.host or "", member.client_id or "")
            for group in described
            if group is not None
            for member in group.members
            for tp in member.assignment.topic_partitions
        ]

    def list_committed(self, groups: Sequence[str], deadline: float) -> list[tuple[str, str, int, int]]:
        """Group, topic, partition and offset of everything that the groups that are visible have committed."""
        return [
            (group, tp.topic, tp.partition, tp.offset)
            for group, committed in self._committed(groups, deadline)
            for tp in committed or ()
        ]

    def groups_without_offsets(self, groups: Sequence[str], deadline: float) -> list[str]:
        """Those of the groups that are visible and have nothing committed, which is so when they do not exist."""
        return [group for group, committed in self._committed(groups, deadline) if committed == []]

    def _committed(self, groups: Sequence[str], deadline: float) -> Iterator[tuple[str, list[TopicPartition] | None]]:
        """Each group with its committed offsets, None if the group is not visible."""
        for batch in batches(groups, _MAX_GROUPS_IN_FLIGHT):
            # The API takes one group per call.
            futures = {
                group: self._client.list_consumer_group_offsets(
                    [confluent_kafka.ConsumerGroupTopicPartitions(group)], request_timeout=_left(deadline)
                )[group]
                for group in batch
            }
            for group, future in futures.items():
                result = self._result(future, deadline)
                yield group, result and [tp for tp in result.topic_partitions if tp.offset >= 0]

    def _result(self, future: Future[Any], deadline: float) -> Any:  # noqa: ANN401
        """The result of a future; None if this topic or group does not exist or is not visible."""
        try:
            return future.result(_left(deadline) + 0.1)
        except TimeoutError as e:
            raise self._to_error(e) from e
        except KafkaException as e:
            if e.args[0].code() in _NOT_VISIBLE:
                return None
            raise self._to_error(e) from e

    def _to_error(self, cause: Exception | KafkaError) -> ClusterError:
        # A timeout has no reason; the last error that librdkafka reported does. The poll delivers it.
        self._client.poll(0)
        if sentence := self._errors.explained():
            return ClusterError(sentence)
        error = cause.args[0] if isinstance(cause, KafkaException) else cause
        message = error.str() if isinstance(error, KafkaError) else str(error) or "no answer in time"
        newest = self._errors.newest
        return ClusterError(f"{message} ({newest})" if newest not in ("", message) else message)


def _error_code(failed: Future[Any]) -> int:
    error = failed.exception()
    return int(error.args[0].code()) if isinstance(error, KafkaException) else KafkaError.UNKNOWN


def _left(deadline: float) -> float:
    return max(deadline - time.monotonic(), 0.001)


def batches(items: Sequence[_Item], size: int) -> list[list[_Item]]:
    """The items in batches of at most so many."""
    return [list(items[i : i + size]) for i in range(0, len(items), size)]


def _to_description(topic: Any) -> TopicDescription:  # noqa: ANN401
    partitions = sorted(topic.partitions, key=attrgetter("id"))
    leaders = [UNKNOWN if partition.leader is None else partition.leader.id for partition in partitions]
    in_sync = tuple(frozenset(node.id for node in partition.isr) for partition in partitions)
    # Brokers before 2.8 have no ids of topics.
    topic_id = "" if str(topic.topic_id) == _NO_TOPIC_ID else str(topic.topic_id)
    return TopicDescription(topic_id, np.array(leaders, np.int32), in_sync)
