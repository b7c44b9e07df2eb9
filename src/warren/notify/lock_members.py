"""The members of the consumer group that is the notifier lock: which of them are not Warrens."""

import logging
import time
from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._group import ConsumerGroupDescription
from msgspec import Struct

log = logging.getLogger(__name__)

LOCK_CLIENT_ID = "warren-notifier-lock"
"""The client id of every Warren in the group."""
CHECK_S = 10.0
TIMEOUT_S = 10.0
MAX_NAMED = 3
MAX_CLIENT_ID_CHARS = 100


class Stranger(Struct, frozen=True, order=True):
    """A member of the group that is not a Warren."""

    client_id: str
    host: str
    has_lock: bool

    def __str__(self) -> str:
        # A client chooses its id, which may have any character.
        return f"client id {self.client_id[:MAX_CLIENT_ID_CHARS]!a} on {self.host[:MAX_CLIENT_ID_CHARS]!a}"


class LockMembers:
    """Asks the brokers for the members of the group from time to time, without waiting for the answer."""

    def __init__(self, group: str) -> None:
        self._group = group
        self._admin: AdminClient | None = None
        self._answer: Future[ConsumerGroupDescription] | None = None
        self._asked_at = -CHECK_S
        self.strangers: tuple[Stranger, ...] = ()
        """The members that are not Warrens, by the last answer."""

    def connect(self, options: Mapping[str, Any]) -> None:
        """Ask with these options from now on: a password may have changed."""
        if self._answer is None:
            settings: dict[str, Any] = {**options, "log_level": 0, "error_cb": lambda _: None}
            self._admin = AdminClient(settings)

    @property
    def holder(self) -> str:
        """Why no Warren has the lock, if a member that is not a Warren has it."""
        holders = [stranger for stranger in self.strangers if stranger.has_lock]
        return f"a client that is not a Warren holds the lock: {holders[0]}" if holders else ""

    def check(self) -> bool:
        """Ask, if it is time to, and take an answer that has come; returns whether the strangers are others now."""
        assert self._admin is not None
        if self._answer is None:
            if time.monotonic() - self._asked_at >= CHECK_S:
                self._asked_at = time.monotonic()
                answers = self._admin.describe_consumer_groups([self._group], request_timeout=TIMEOUT_S)
                self._answer = answers[self._group]
            return False
        # Errors of the client reach its callback only so.
        self._admin.poll(0)
        if not self._answer.done():
            return False
        answer, self._answer = self._answer, None
        try:
            strangers = find_strangers(answer.result(0))
        except KafkaException as error:
            log.debug("the members of the group %s are not known: %s", self._group, error)
            return False
        is_new = strangers != self.strangers
        self.strangers = strangers
        if is_new and strangers:
            named = "; ".join(map(str, strangers[:MAX_NAMED]))
            log.error(
                "the consumer group %s, which is the notifier lock, has members that are not Warrens (%d): %s%s; "
                "only the user of the Warrens should have the right to read with this group",
                *(self._group, len(strangers), named, "; ..." if len(strangers) > MAX_NAMED else ""),
            )
        return is_new


def find_strangers(group: ConsumerGroupDescription) -> tuple[Stranger, ...]:
    """The members of a group that are not Warrens, those that have the lock first."""
    strangers = [
        Stranger(member.client_id, member.host, _has_lock(member.assignment))
        for member in group.members
        if member.client_id != LOCK_CLIENT_ID
    ]
    return tuple(sorted(strangers, key=lambda stranger: (not stranger.has_lock, stranger)))


def _has_lock(assignment: Any) -> bool:  # noqa: ANN401 - the client does not export its type
    return any(partition.partition == 0 for partition in assignment.topic_partitions) if assignment else False
