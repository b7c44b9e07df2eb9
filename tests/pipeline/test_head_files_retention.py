"""Which head samples stay: all of the last minutes, then fewer the older they are, none beyond a day."""

import math
from itertools import pairwise

import pytest

from warren.pipeline.head_files import HISTORY_MS, MAX_GAP_SHARE, keep_samples

MINUTE, HOUR = 60_000, 3_600_000
NOW = 100 * HOUR


@pytest.mark.parametrize(
    ("name", "ages_ms", "kept_ages_ms"),
    [
        ("nothing", [], []),
        ("one", [0], [0]),
        ("all of the last minutes", [30_000, 20_000, 10_000, 0], [30_000, 20_000, 10_000, 0]),
        (
            "gaps of at most a twentieth of the age before that",
            [5 * MINUTE, 5 * MINUTE - 4_000, 5 * MINUTE - 8_000, 5 * MINUTE - 16_000, 4 * MINUTE, 0],
            [5 * MINUTE, 5 * MINUTE - 8_000, 5 * MINUTE - 16_000, 4 * MINUTE, 0],
        ),
        (
            "the last one before a gap",
            [35 * MINUTE, 34 * MINUTE + 30_000, 34 * MINUTE, 33 * MINUTE + 30_000, 10_000, 0],
            [35 * MINUTE, 33 * MINUTE + 30_000, 10_000, 0],
        ),
        ("older than a day", [25 * HOUR, 24 * HOUR, 0], [24 * HOUR, 0]),
        ("the newest however old it is", [50 * HOUR, 49 * HOUR], [49 * HOUR]),
        ("a sample from our future", [10_000, 0, -5_000], [10_000, 0, -5_000]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_keep_samples_by_example(name: str, ages_ms: list[int], kept_ages_ms: list[int]) -> None:
    kept = keep_samples([NOW - age for age in ages_ms], NOW)
    assert [ages_ms[place] for place in kept] == kept_ages_ms, name


@pytest.mark.parametrize("every_ms", [10_000, 41_300, 90_000])
def test_thinning_again_and_again_leaves_no_hole_and_no_crowd(every_ms: int) -> None:
    times: list[int] = []
    for now in range(0, 26 * HOUR, every_ms):
        times.append(now)
        times = [times[place] for place in keep_samples(times, now)]
    assert times[0] <= now - 0.95 * HISTORY_MS
    for before, after in pairwise(times):
        assert after - before <= max(MAX_GAP_SHARE * (now - after), every_ms)
    # Two gaps in a row together are wider than one may be, or one of the samples would have been left out.
    assert (
        len(times) <= 3 * MINUTE // every_ms + 2 * math.log(HISTORY_MS / (3 * MINUTE)) / math.log(1 + MAX_GAP_SHARE) + 5
    )
