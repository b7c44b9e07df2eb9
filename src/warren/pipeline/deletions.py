"""The deletions of groups, or of topics of groups, that are in force: pure functions."""

from collections.abc import Collection, Sequence

import msgspec

from warren.domain.clock_skew import MAX_COMMIT_DELAY_MS
from warren.pipeline.next_manifest import state_of
from warren.pipeline.planner import Planner
from warren.snapshot.manifest import Manifest
from warren.snapshot.requests import PipelineRequest

MAX_REMEMBERED = 1_000
MAX_REMEMBERED_CHARS = 1_000_000
"""How many deletions, and how much of names, are remembered after all commits from before them were read."""


def deletions_in_cycle(
    before: Manifest, requested: Sequence[PipelineRequest], clusters: Collection[str], now_ms: int
) -> tuple[PipelineRequest, ...]:
    """The deletions in force in a cycle: the newest one of each group or topic, and the new requests."""
    newest = {
        (deletion.cluster, deletion.group, deletion.topic): deletion
        for deletion in sorted(before.requests, key=lambda deletion: deletion.asked_at_ms)
        if deletion.cluster in clusters
    }
    # A request from a clock that is ahead must not delete commits that are still to come.
    new = (msgspec.structs.replace(request, asked_at_ms=min(request.asked_at_ms, now_ms)) for request in requested)
    return (*newest.values(), *new)


def deletions_after_cycle(
    planner: Planner, before: Manifest, after: Manifest, renewed: Collection[str]
) -> tuple[PipelineRequest, ...]:
    """The deletions of a cycle that are needed after it; `renewed` are those whose groups have committed again.

    A deletion ends when no commit from before it can arrive any more and its group has committed again. Until then
    owners alone do not bring the group back, for as long as a silent group is remembered. At least one manifest names
    each deletion, so that none is taken up twice.
    """
    taken_up = {deletion.id for deletion in before.requests}
    expired_ms = after.now_ms - planner.config.storage.expire_group * 1000
    expired_ms = max(expired_ms, _remembered_from_ms(after.requests))
    return tuple(
        deletion
        for deletion in after.requests
        if deletion.id not in taken_up
        or not is_read_past(planner, after, deletion)
        or (deletion.id not in renewed and deletion.asked_at_ms >= expired_ms)
    )


def _remembered_from_ms(deletions: Sequence[PipelineRequest]) -> int:
    """Since when deletions are remembered, so that they are not too many; 0 if all are."""
    chars = 0
    newest_first = sorted(deletions, key=lambda deletion: deletion.asked_at_ms, reverse=True)
    for count, deletion in enumerate(newest_first, start=1):
        chars += len(deletion.group) + len(deletion.topic or "")
        if count > MAX_REMEMBERED or chars > MAX_REMEMBERED_CHARS:
            return deletion.asked_at_ms + 1
    return 0


def is_read_past(planner: Planner, after: Manifest, deletion: PipelineRequest) -> bool:
    """Whether all commits from before a deletion had been read, and dropped, in the cycle of a manifest."""
    state = state_of(after, deletion.cluster)
    topics = [topic for cluster, topic in planner.consumers if cluster == deletion.cluster]
    sections = [state.zookeeper.get(section.name) for section in planner.sections_of(deletion.cluster)]
    is_seen = all(own is not None and own.position.seen_until_ms > deletion.asked_at_ms for own in sections)
    is_sampled = state.error is None and state.looked_at_ms > deletion.asked_at_ms + MAX_COMMIT_DELAY_MS
    is_read = all(topic in state.sources for topic in topics) and all(
        position.backlog == 0 and not position.is_away
        for topic in topics
        for position in state.sources[topic].positions.values()
    )
    return is_sampled and is_seen and is_read and not planner.needs_seeds(after, deletion.cluster)
