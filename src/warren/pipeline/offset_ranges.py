"""How far to read each offsets topic in a cycle: pure functions from what was read and what there is, to spans."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from warren.domain.offsets_outages import RETURN_MS
from warren.kafka.samples import PartitionEnds
from warren.snapshot.manifest import Position, Source
from warren.sources.offsets_topic import OffsetRange


@dataclass(frozen=True, slots=True)
class TopicRead:
    """One offsets topic of one cluster: what is to be read now, and the positions once it has been."""

    cluster: str
    topic: str
    spans: Mapping[int, OffsetRange]
    after: Source
    notes: tuple[str, ...] = ()
    is_another_log: bool = False

    @property
    def records(self) -> int:
        """How many offsets the spans cover; the records may be fewer."""
        return sum(span.end - span.start for span in self.spans.values())

    @property
    def is_catching_up(self) -> bool:
        """Whether the positions afterwards are still short of where the topic stood at the start."""
        return any(position.left_to_catch_up for position in self.after.positions.values())


def plan_topic_read(
    cluster: str,
    topic: str,
    before: Source | None,
    ends: Mapping[int, PartitionEnds],
    topic_id: str,
    *,
    from_latest: bool,
    is_start: bool,
    now_ms: int,
    looked_at_ms: int = 0,
    was_away: bool = False,
) -> TopicRead:
    """All there is to read of one offsets topic; `is_start` marks the first look at a cluster after it was away.

    `is_another_log` in the answer says that offsets do not go on from where they were: plan again without `before`.
    `looked_at_ms` is when it was looked at last, `was_away` says that the whole cluster could not be since then.
    """
    notes: list[str] = []
    is_another_log = before is not None and bool(topic_id) and before.topic_id not in ("", topic_id)
    if is_another_log:
        notes.append(f"{cluster}/{topic} was deleted and made again: its windows are read anew")
    known = before.positions if before else {}
    spans: dict[int, OffsetRange] = {}
    if was_away:
        known = {partition: _gone(position, looked_at_ms) for partition, position in known.items()}
    # A partition that did not answer keeps its position; what it holds is read when it answers again.
    positions = {partition: _gone(position, looked_at_ms) for partition, position in known.items()}
    for partition, end in ends.items():
        position = known.get(partition)
        if position is None:
            start = end.stable_end if from_latest and before is None else end.log_start
            position = Position(start, end.stable_end, end.end, end.stable_end)
        position = _gone(position, looked_at_ms) if end.is_held_back else _back(position, now_ms)
        start = position.next_offset
        if start < end.log_start:
            if end.log_start > position.stable_end:
                notes.append(f"{cluster}/{topic}/{partition}: offsets {start} to {end.log_start} are gone from the log")
            start = end.log_start
        if start > end.end:
            notes.append(f"{cluster}/{topic}/{partition}: the log ends at {end.end}, before {start}: read anew")
            is_another_log = True
        upto = max(start, end.stable_end)
        if upto > start:
            spans[partition] = OffsetRange(start, upto)
        positions[partition] = replace(
            position,
            next_offset=upto,
            catch_up_to=end.stable_end if is_start else min(position.catch_up_to, end.stable_end),
            stable_end=end.stable_end,
            end=end.end,
            stuck_since_ms=_stuck_since(position, end, now_ms),
        )
    # A topic that cannot be seen just now keeps its id, so that another one in its place is noticed.
    after = Source(topic_id or (before.topic_id if before else ""), positions)
    return TopicRead(cluster, topic, spans, after, tuple(notes), is_another_log)


def _gone(position: Position, since_ms: int) -> Position:
    """The position of a partition that cannot be heard; one that was hardly back has been away all the time."""
    return replace(position, away_from_ms=position.away_from_ms or since_ms, away_to_ms=None)


def _back(position: Position, now_ms: int) -> Position:
    """The position of a partition that is heard, which forgets after a while that it was not."""
    if position.away_from_ms is None:
        return position
    to_ms = position.away_to_ms or now_ms
    if now_ms > to_ms + RETURN_MS:
        return replace(position, away_from_ms=None, away_to_ms=None)
    return replace(position, away_to_ms=to_ms)


def _stuck_since(position: Position, end: PartitionEnds, now_ms: int) -> int | None:
    """Since when an open transaction holds back the last stable offset, if one does."""
    if end.stable_end >= end.end or end.stable_end > position.stable_end:
        return None
    return position.stuck_since_ms or now_ms


def admit(readings: list[TopicRead], max_records: int) -> list[TopicRead]:
    """Cut the readings so that together they cover no more than `max_records`, each partition in proportion."""
    total = sum(reading.records for reading in readings)
    if total <= max_records:
        return readings
    share = max_records / total
    return [_cut(reading, share) for reading in readings]


def _cut(reading: TopicRead, share: float) -> TopicRead:
    spans = {
        partition: OffsetRange(span.start, span.start + max(1, int((span.end - span.start) * share)))
        for partition, span in reading.spans.items()
    }
    positions = {
        partition: replace(position, next_offset=spans[partition].end) if partition in spans else position
        for partition, position in reading.after.positions.items()
    }
    return replace(reading, spans=spans, after=replace(reading.after, positions=positions))
