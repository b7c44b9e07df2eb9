"""Which head samples are kept: all of the last minutes, fewer and fewer of the hours before."""

from collections.abc import Sequence

TIERS_MS: tuple[tuple[int, int], ...] = (
    (180_000, 0),
    (1_800_000, 60_000),
    (21_600_000, 600_000),
    (86_400_000, 3_600_000),
)
"""Pairs of an age and the distance between samples that are kept up to that age."""


def keep_samples(times_ms: Sequence[int], now_ms: int) -> list[int]:
    """The indexes of the samples to keep, given their times, oldest first; the newest is always among them."""
    kept: list[int] = []
    last: int | None = None
    for index, time_ms in enumerate(times_ms):
        spacing = next((gap for age, gap in TIERS_MS if now_ms - time_ms <= age), None)
        is_newest = index == len(times_ms) - 1
        if is_newest or (spacing is not None and (last is None or time_ms - last >= spacing)):
            kept.append(index)
            last = time_ms
    return kept
