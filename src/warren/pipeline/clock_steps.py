"""What happens when somebody sets the wall clock: the state moves with it, so that the time between events stays right.

Samples are stamped by the steady clock, which nobody can set, and get their wall time when a cycle takes them up. If
the wall clock has been set since the last cycle, the times of the last manifest, and those of the rows (by the plan),
are moved by the same step.
"""

from collections.abc import Mapping
from dataclasses import replace

from msgspec import structs

from warren.clock import ClockReading
from warren.kafka.samples import ClusterSample
from warren.snapshot.manifest import ClusterState, HeadSample, Manifest, Position

TOLERANCE_MS = 100
"""Smaller steps are rounding, or a clock that is being slewed."""


def clock_step(before: Manifest, now: ClockReading) -> int:
    """How far the wall clock was set since the last manifest; after a reboot only a step back can be told."""
    if not before.now_ms:
        return 0
    if not is_comparable(before, now):
        return min(now.wall_ms - before.now_ms, 0)
    step_ms = now.offset_ms - (before.now_ms - before.steady_ms)
    return step_ms if abs(step_ms) > TOLERANCE_MS else 0


def is_comparable(before: Manifest, now: ClockReading) -> bool:
    """Whether the steady clock has counted the time since the last manifest."""
    return before.boot_id == now.boot_id


def with_wall_times(samples: Mapping[str, ClusterSample], offset_ms: int) -> dict[str, ClusterSample]:
    """Samples whose steady times have become times of the wall clock."""
    return {name: _with_wall_times(sample, offset_ms) for name, sample in samples.items()}


def _with_wall_times(sample: ClusterSample, offset_ms: int) -> ClusterSample:
    (ends_from, ends_to), (heads_from, heads_to) = sample.ends_at_ms, sample.heads_at_ms
    return replace(
        sample,
        ends_at_ms=(ends_from + offset_ms, ends_to + offset_ms),
        heads_at_ms=(heads_from + offset_ms, heads_to + offset_ms),
        topics_at_ms=sample.topics_at_ms + offset_ms,
    )


def moved(before: Manifest, now: ClockReading, step_ms: int) -> Manifest:
    """The last manifest as if the clock had always been what it is now.

    A step forward may also be time that passed while the machine stood still and its steady clock with it. So the times
    of samples move only with a step back; after a step forward they leave a gap, which is true in both cases. The time
    of the list of topics moves both ways, because it is compared with the rows, which do.
    """
    if not step_ms:
        return before
    requests = tuple(structs.replace(request, asked_at_ms=request.asked_at_ms + step_ms) for request in before.requests)
    before = structs.replace(before, now_ms=before.now_ms + step_ms, requests=requests)
    if step_ms > 0:
        return structs.replace(
            before, clusters={name: _moved_topics(c, step_ms) for name, c in before.clusters.items()}
        )
    return structs.replace(
        before,
        heads=tuple(_moved_sample(sample, step_ms) for sample in before.heads),
        clusters={
            name: _moved_cluster(state, step_ms, is_exact=is_comparable(before, now))
            for name, state in before.clusters.items()
        },
    )


def _moved_sample(sample: HeadSample, step_ms: int) -> HeadSample:
    taken_ms = {name: (start + step_ms, end + step_ms) for name, (start, end) in sample.taken_ms.items()}
    return structs.replace(sample, taken_ms=taken_ms)


def _moved_cluster(state: ClusterState, step_ms: int, *, is_exact: bool) -> ClusterState:
    sources = {}
    for topic, source in state.sources.items():
        positions = {
            partition: _moved_position(position, step_ms) if is_exact else _unseen(position)
            for partition, position in source.positions.items()
        }
        sources[topic] = structs.replace(source, positions=positions)
    zookeeper = {
        section: structs.replace(
            own, position=_moved_position(own.position, step_ms) if is_exact else _unseen(own.position)
        )
        for section, own in state.zookeeper.items()
    }
    return structs.replace(
        _moved_topics(state, step_ms),
        unknown_since_ms=_add(state.unknown_since_ms, step_ms),
        looked_at_ms=_add(state.looked_at_ms, step_ms) or 0,
        sources=sources,
        zookeeper=zookeeper,
    )


def _moved_topics(state: ClusterState, step_ms: int) -> ClusterState:
    return structs.replace(state, topics_at_ms=_add(state.topics_at_ms, step_ms) or 0)


def _moved_position(position: Position, step_ms: int) -> Position:
    times = ("seen_until_ms", "awaited_at_ms", "stuck_since_ms", "away_from_ms", "away_to_ms")
    moved_times = {name: _add(getattr(position, name), step_ms) for name in times}
    skew = None if position.skew is None else (position.skew[0] - step_ms, position.skew[1] - step_ms)
    return structs.replace(position, **moved_times, skew=skew)


def _unseen(position: Position) -> Position:
    """A position of which no time is known any more."""
    return Position(position.next_offset, position.stable_end, position.end)


def _add(time_ms: int | None, step_ms: int) -> int | None:
    """A time moved by a step; what was never (0, None) stays so."""
    return time_ms + step_ms if time_ms else time_ms
