"""The Admin API of a cluster, typed and bounded in time."""

from __future__ import annotations

import concurrent.futures
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import confluent_kafka
import numpy as np
import numpy.typing as npt
from confluent_kafka import ConsumerGroupType, KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient

from warren.domain.windows import UNKNOWN
from warren.errors import ClusterError
from warren.kafka.samples import Offsets

LATEST = -1
EARLIEST = -2
READ_UNCOMMITTED = 0
READ_COMMITTED = 1

# librdkafka searches a request's list once for every answer in it, so the cost grows with the square of the
# request. At 200 partitions that still hides behind the round trip; 5,000 in one cost six times as much.
REQUEST_SIZE = 200
_TOPICS_A_REQUEST = 100
_GROUPS_A_REQUEST = 100
_GROUPS_IN_FLIGHT = 200

_DEFAULTS: dict[str, str | int] = {
    # A broker that is down is said once in the sample, not by librdkafka on stderr at every attempt.
    "log_level": 0,
    "reconnect.backoff.ms": 100,
    "reconnect.backoff.max.ms": 2_000,
}
# What a cluster says of one topic or group; anything else is about the cluster.
_NOT_TO_BE_SEEN = (
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.TOPIC_EXCEPTION,
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.GROUP_ID_NOT_FOUND,
    KafkaError.INVALID_GROUP_ID,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
)

_offset_of = attrgetter("offset")

Request = list[TopicPartition]


@dataclass(frozen=True, slots=True)
class TopicLayout:
    """A topic's id, the broker that leads each of its partitions, UNKNOWN where none does, and those in sync.

    `in_sync` is empty where it was not asked for.
    """

    id: str
    leaders: npt.NDArray[np.int32]
    in_sync: tuple[frozenset[int], ...] = ()


@dataclass(frozen=True, slots=True)
class Member:
    """A consumer of a group and what it is assigned."""

    group: str
    owner: str
    client_id: str
    assigned: list[tuple[str, int]]


class _Client(AdminClient):
    def list_raw(
        self, request: Request, isolation: int, timeout_s: float
    ) -> concurrent.futures.Future[dict[TopicPartition, Any]]:
        # The public list_offsets copies the request and makes a future for every partition, twice the work.
        future: concurrent.futures.Future[dict[TopicPartition, Any]] = concurrent.futures.Future()
        future.set_running_or_notify_cancel()
        super(AdminClient, self).list_offsets(
            request, future, isolation_level_value=isolation, request_timeout=timeout_s
        )
        return future


class Admin:
    """Asks one cluster; raises ClusterError when the cluster as a whole does not answer or refuses."""

    def __init__(self, client_config: Mapping[str, str]) -> None:
        self._trouble = ""
        settings: dict[str, Any] = {**_DEFAULTS, **client_config, "error_cb": self._on_error}
        try:
            self._client = _Client(settings)
        except KafkaException as e:
            raise ClusterError(e.args[0].str()) from e

    def topic_names(self, deadline: float) -> list[str]:
        """The names of all topics, internal ones too."""
        try:
            return list(self._client.list_topics(timeout=_left(deadline)).topics)
        except KafkaException as e:
            raise self._error(e) from e

    def describe_topics(
        self, names: Sequence[str], deadline: float, *, with_in_sync: bool = False
    ) -> dict[str, TopicLayout]:
        """The layout of each of these topics that exists and may be seen."""
        futures: dict[str, concurrent.futures.Future[Any]] = {}
        for some in _parts(names, _TOPICS_A_REQUEST):
            futures |= self._client.describe_topics(TopicCollection(some), request_timeout=_left(deadline))
        described = {name: self._result(future, deadline) for name, future in futures.items()}
        self._client.poll(0)
        self._trouble = ""
        return {
            name: _to_layout(topic, with_in_sync=with_in_sync) for name, topic in described.items() if topic is not None
        }

    def ask_offsets(
        self, requests: Iterable[Request], isolation: int, deadline: float
    ) -> list[concurrent.futures.Future[dict[TopicPartition, Any]]]:
        """Sends all the requests; `take_offsets` waits for what they give."""
        return [self._client.list_raw(request, isolation, _left(deadline)) for request in requests]

    def take_offsets(
        self,
        requests: Sequence[Request],
        futures: Sequence[concurrent.futures.Future[dict[TopicPartition, Any]]],
        deadline: float,
    ) -> Offsets:
        """The offsets in the order of the requests, UNKNOWN where no answer came in time."""
        parts = [_to_offsets(request, future, deadline) for request, future in zip(requests, futures, strict=True)]
        return np.concatenate(parts) if parts else np.empty(0, np.int64)

    def list_groups(self, deadline: float, *, only_consumer_protocol: bool) -> list[str]:
        """The names of all groups, or of the "consumer" protocol's; fails if any broker did not answer."""
        wish = {"types": {ConsumerGroupType.CONSUMER}} if only_consumer_protocol else {}
        try:
            listed = self._client.list_consumer_groups(request_timeout=_left(deadline), **wish)
            answer = listed.result(_left(deadline))
        except (KafkaException, TimeoutError) as e:
            raise self._error(e) from e
        if answer.errors:
            raise self._error(answer.errors[0])
        return sorted(group.group_id for group in answer.valid)

    def describe_members(self, groups: Sequence[str], deadline: float) -> list[Member]:
        """The members of these groups; a group that cannot be described has none."""
        futures: dict[str, concurrent.futures.Future[Any]] = {}
        for some in _parts(groups, _GROUPS_A_REQUEST):
            futures |= self._client.describe_consumer_groups(some, request_timeout=_left(deadline))
        described = [self._result(future, deadline) for future in futures.values()]
        return [
            Member(
                group.group_id,
                member.host or "",
                member.client_id or "",
                [(tp.topic, tp.partition) for tp in member.assignment.topic_partitions],
            )
            for group in described
            if group is not None
            for member in group.members
        ]

    def committed(self, groups: Sequence[str], deadline: float) -> list[tuple[str, list[TopicPartition]]]:
        """What each of these groups has committed; a group that is gone or may not be seen has nothing."""
        found = []
        for some in _parts(groups, _GROUPS_IN_FLIGHT):
            # The API takes one group a call.
            futures = {
                group: self._client.list_consumer_group_offsets(
                    [confluent_kafka.ConsumerGroupTopicPartitions(group)], request_timeout=_left(deadline)
                )[group]
                for group in some
            }
            answers = {group: self._result(future, deadline) for group, future in futures.items()}
            found += [(group, answer.topic_partitions) for group, answer in answers.items() if answer is not None]
        return found

    def _result(self, future: concurrent.futures.Future[Any], deadline: float) -> Any:  # noqa: ANN401
        """What the future gives, None if the cluster says that this one does not exist or may not be seen."""
        try:
            return future.result(_left(deadline) + 0.1)
        except TimeoutError as e:
            raise self._error(e) from e
        except KafkaException as e:
            if e.args[0].code() in _NOT_TO_BE_SEEN:
                return None
            raise self._error(e) from e

    def _error(self, cause: Exception | KafkaError) -> ClusterError:
        # Timeouts say nothing; what librdkafka reported beside them does, once its events have been let out.
        self._client.poll(0)
        said = cause.args[0] if isinstance(cause, KafkaException) else cause
        words = said.str() if isinstance(said, KafkaError) else str(said) or "no answer in time"
        return ClusterError(f"{words} ({self._trouble})" if self._trouble not in ("", words) else words)

    def _on_error(self, error: KafkaError) -> None:
        # "All brokers down" only sums up the errors before it, which name the broker and the reason.
        if error.code() != KafkaError._ALL_BROKERS_DOWN or not self._trouble:
            self._trouble = error.str()


def to_request(topics: Sequence[str], partitions: Sequence[int], kind: int) -> Request:
    """The LATEST or EARLIEST offset of these partitions as a request."""
    return [TopicPartition(t, p, kind) for t, p in zip(topics, partitions, strict=True)]


def _left(deadline: float) -> float:
    return max(deadline - time.monotonic(), 0.001)


def _parts(names: Sequence[str], size: int) -> Iterable[list[str]]:
    return (list(names[i : i + size]) for i in range(0, len(names), size))


def _to_layout(topic: Any, *, with_in_sync: bool) -> TopicLayout:  # noqa: ANN401
    leaders = np.full(len(topic.partitions), UNKNOWN, np.int32)
    for partition in topic.partitions:
        if partition.leader is not None:
            leaders[partition.id] = partition.leader.id
    if not with_in_sync:
        return TopicLayout(str(topic.topic_id), leaders)
    by_number = sorted(topic.partitions, key=attrgetter("id"))
    return TopicLayout(
        str(topic.topic_id), leaders, tuple(frozenset(node.id for node in partition.isr) for partition in by_number)
    )


def _to_offsets(
    request: Request, future: concurrent.futures.Future[dict[TopicPartition, Any]], deadline: float
) -> Offsets:
    try:
        answers = future.result(_left(deadline))
    except (KafkaException, TimeoutError):
        return np.full(len(request), UNKNOWN, np.int64)
    try:
        offsets = np.fromiter(map(_offset_of, map(answers.get, request)), np.int64, len(request))
    except AttributeError:  # some of the answers are errors, which have no offset
        found = (getattr(answers.get(tp), "offset", UNKNOWN) for tp in request)
        offsets = np.fromiter(found, np.int64, len(request))
    # A broker that has just died leaves librdkafka's own mark for "no offset", which is below 0 as well.
    return np.where(offsets < 0, UNKNOWN, offsets)
