"""Ids of topics: those of the brokers, and, as brokers before Kafka 2.8 have none, Warren's own."""

_OWN = "~"


def own_id(since_ms: int | None = None) -> str:
    """An id of Warren's own; of a topic that was created again, since a time."""
    return _OWN if since_ms is None else f"{_OWN}{since_ms}"


def is_own_id(topic_id: str) -> bool:
    """Whether an id is not of the brokers; a topic that was never created again may have none at all."""
    return not topic_id or topic_id.startswith(_OWN)


def own_id_ms(topic_id: str) -> int:
    """The time of an id of Warren's own, 0 if it has none."""
    return int(topic_id.removeprefix(_OWN) or 0)


def is_another_topic(before: str, now: str) -> bool:
    """Whether these are the ids of two topics of one name, and not of one whose brokers have ids since an upgrade."""
    return before != now and is_own_id(before) == is_own_id(now)
