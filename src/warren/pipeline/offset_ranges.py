"""How far to read each offsets topic in a cycle: pure functions of positions and ends."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from msgspec import structs

from warren.domain.offsets_logs import RECONNECT_MS
from warren.domain.topic_ids import is_another_topic
from warren.kafka.samples import PartitionEnds
from warren.snapshot.manifest import Position, Source
from warren.sources.offsets_topic import OffsetRange


@dataclass(frozen=True, slots=True)
class TopicRead:
    """What to read of one offsets topic of one cluster, and the positions afterwards.

    `sampled_ms` is when the ends were requested, and when they had arrived. `first_log` is the id of partition 0.
    """

    cluster: str
    topic: str
    ranges: Mapping[int, OffsetRange]
    after: Source
    sampled_ms: tuple[int, int] = (0, 0)
    warnings: tuple[str, ...] = ()
    is_another_log: bool = False
    first_log: int = 0

    @property
    def records(self) -> int:
        """How many offsets the ranges cover; the records may be fewer."""
        return sum(range_.end - range_.start for range_ in self.ranges.values())

    @property
    def is_catching_up(self) -> bool:
        """Whether the positions afterwards are still short of where the topic ended."""
        return any(position.backlog for position in self.after.positions.values())


def plan_topic_read(
    cluster: str,
    topic: str,
    before: Source | None,
    ends: Mapping[int, PartitionEnds],
    topic_id: str,
    *,
    from_latest: bool,
    now_ms: int,
    sampled_ms: tuple[int, int] = (0, 0),
    last_sampled_ms: int = 0,
    was_unavailable: bool = False,
) -> TopicRead:
    """All there is to read of one offsets topic.

    `is_another_log` in the result says that offsets do not continue from the positions: plan again without `before`.
    `last_sampled_ms` is the time of the last sample; `was_unavailable` says that the cluster has not answered since.
    """
    warnings: list[str] = []
    is_another_log = before is not None and bool(topic_id) and is_another_topic(before.topic_id, topic_id)
    if is_another_log:
        warnings.append(f"{cluster}/{topic} was deleted and created again: its windows start over")
    known = before.positions if before else {}
    ranges: dict[int, OffsetRange] = {}
    if was_unavailable:
        known = {partition: unavailable(position, last_sampled_ms) for partition, position in known.items()}
    # A partition that did not answer keeps its position; what it holds is read when it answers again.
    positions = {partition: unavailable(position, last_sampled_ms) for partition, position in known.items()}
    for partition, end in ends.items():
        position = known.get(partition)
        if position is None:
            start = end.stable_end if from_latest and before is None else end.log_start
            position = Position(start, end.stable_end, end.end)
        position = unavailable(position, last_sampled_ms) if end.is_held_back else available(position, now_ms)
        start = position.next_offset
        if start < end.log_start:
            if end.log_start > position.stable_end:
                warnings.append(
                    f"{cluster}/{topic}/{partition}: offsets {start} to {end.log_start} are gone from the log"
                )
            start = end.log_start
        if start > end.end:
            warnings.append(
                f"{cluster}/{topic}/{partition}: the log ends at {end.end}, before {start}: its windows start over"
            )
            is_another_log = True
        end_offset = max(start, end.stable_end)
        if end_offset > start:
            ranges[partition] = OffsetRange(start, end_offset)
        stuck_since_ms = _stuck_since(position, end, now_ms)
        positions[partition] = structs.replace(
            position,
            next_offset=end_offset,
            stable_end=end.stable_end,
            end=end.end,
            stuck_since_ms=stuck_since_ms,
            held_by=None if stuck_since_ms is None else position.held_by,
        )
    # A topic that cannot be seen just now keeps its id, so that another one in its place is noticed.
    after = Source(topic_id or (before.topic_id if before else ""), positions)
    return TopicRead(cluster, topic, ranges, after, sampled_ms, tuple(warnings), is_another_log)


def unavailable(position: Position, since_ms: int) -> Position:
    """The position of a partition that cannot be read; one that was just back has been unavailable all the time."""
    return structs.replace(position, away_from_ms=position.away_from_ms or since_ms, away_to_ms=None)


def available(position: Position, now_ms: int) -> Position:
    """The position of a partition that can be read; after a while its outage is forgotten."""
    if position.away_from_ms is None:
        return position
    to_ms = position.away_to_ms or now_ms
    if now_ms > to_ms + RECONNECT_MS:
        return structs.replace(position, away_from_ms=None, away_to_ms=None)
    return structs.replace(position, away_to_ms=to_ms)


def _stuck_since(position: Position, end: PartitionEnds, now_ms: int) -> int | None:
    """Since when an open transaction holds back the last stable offset, if one does."""
    if end.stable_end >= end.end or end.stable_end > position.stable_end:
        return None
    return position.stuck_since_ms or now_ms


def admit(reads: list[TopicRead], max_records: int) -> list[TopicRead]:
    """Cut the ranges so that together they cover no more than `max_records`, each partition in proportion."""
    total = sum(read.records for read in reads)
    if total > max_records:
        reads = [_cut(read, max_records / total) for read in reads]
    return [_with_seen(read) for read in reads]


def _cut(read: TopicRead, share: float) -> TopicRead:
    ranges = {
        partition: OffsetRange(range_.start, range_.start + max(1, int((range_.end - range_.start) * share)))
        for partition, range_ in read.ranges.items()
    }
    positions = {
        partition: structs.replace(position, next_offset=ranges[partition].end) if partition in ranges else position
        for partition, position in read.after.positions.items()
    }
    return replace(read, ranges=ranges, after=structs.replace(read.after, positions=positions))


def _with_seen(read: TopicRead) -> TopicRead:
    """The read with the time up to which each of its partitions has been seen whole."""
    at_ms, positions = read.sampled_ms[0], {}
    for partition, position in read.after.positions.items():
        if position.is_away:
            seen = position
        elif position.next_offset >= position.end:
            seen = structs.replace(position, seen_until_ms=at_ms, awaited_end=None, awaited_at_ms=None)
        elif position.awaited_end is None or position.next_offset >= position.awaited_end:
            seen_until_ms = position.awaited_at_ms or position.seen_until_ms
            seen = structs.replace(position, seen_until_ms=seen_until_ms, awaited_end=position.end, awaited_at_ms=at_ms)
        else:
            seen = position
        positions[partition] = seen
    return replace(read, after=structs.replace(read.after, positions=positions))
