"""Whether the newest snapshot is complete and up to date."""

from warren.domain.reasons import format_duration
from warren.snapshot.reader import Snapshot

LATE_AFTER_TRIGGERS = 3
"""How many triggers, or cycles if those take longer, a snapshot may be old."""


def not_ready(snapshot: Snapshot | None, now_ms: int) -> str | None:
    """Why the newest snapshot is not to be relied on, after Burrow's word for it; None if it is."""
    if snapshot is None:
        return "STARTING\nno snapshot yet: the first cycle has not ended, or the pipeline does not run\n"
    manifest = snapshot.manifest
    pace_ms = max(manifest.trigger_ms, sum(manifest.cycle_ms.values()))
    age_ms = now_ms - manifest.now_ms
    if age_ms > LATE_AFTER_TRIGGERS * pace_ms:
        age = format_duration(age_ms)
        return f"STARTING\nthe newest snapshot is {age} old: the pipeline is behind or does not run\n"
    if not manifest.is_ready:
        return f"STARTING\ncatching up with the offsets topics: {manifest.left_to_catch_up:,} offsets left\n"
    return None
