"""How far a broker's clock is ahead of ours, by the commits that appeared between two samples."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from warren.domain.clock_skew import DRIFT_MS, MAX_COMMIT_DELAY_MS, TOLERANCE_MS, ClockSkew, observe_skew, to_our_clock

FROM, TO = 100_000, 110_000
YEAR_9999 = 253_402_300_799_000


@pytest.mark.parametrize(
    ("name", "times_ms", "skew_ms", "outliers"),
    [
        ("a commit between the samples", [105_000], 0, 0),
        ("a commit right at the first sample", [100_000], 0, 0),
        ("a commit right at the second sample", [110_000], 0, 0),
        ("a clock that is ahead", [110_700, 110_000], 700 + 9_800 // 2, 0),
        ("a commit that took a while to be replicated", [99_600], 0, 0),
        ("a clock that is behind", [98_900, 104_000], -3_300, 0),
        ("one group from the future", [105_000, 106_000, YEAR_9999], 0, 1),
        ("one group from the past", [105_000, 106_000, 5], 0, 1),
        ("one against one: the one nearer to our clock", [106_000, 106_000 + 600_000], 0, 1),
        ("all ten minutes ahead but one", [705_000, 706_000, 105_000], 600_750, 1),
        ("the largest number there is", [2**63 - 1, 105_000], 0, 1),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_most_groups_decide(name: str, times_ms: list[int], skew_ms: int, outliers: int) -> None:
    skew, contradicting = observe_skew(np.array(times_ms, np.int64), FROM, TO)
    assert (skew.ms, contradicting) == (skew_ms, outliers), name


def test_a_clock_that_was_corrected_is_believed_at_once() -> None:
    ahead, _ = observe_skew(np.array([705_000]), FROM, TO)
    right, _ = observe_skew(np.array([105_000]), FROM, TO)
    assert ahead.followed_by(right) == right


def test_bounds_narrow_with_each_sample_and_loosen_a_little() -> None:
    skew = ClockSkew(-5_000, 5_000).followed_by(ClockSkew(1_000, 9_000))
    assert skew == ClockSkew(1_000, 5_000 + DRIFT_MS)
    assert skew.followed_by(ClockSkew(-9_000, 9_000)) == ClockSkew(1_000 - DRIFT_MS, 5_000 + 2 * DRIFT_MS)


@given(
    st.integers(-3_600_000, 3_600_000),
    st.lists(st.lists(st.integers(0, 10_000), min_size=3, max_size=9), min_size=1, max_size=20),
    st.integers(0, 2**62),
)
def test_a_steady_skew_is_never_overdone_by_one_wrong_group(skew_ms: int, samples: list[list[int]], wrong: int) -> None:
    skew: ClockSkew | None = None
    for number, made in enumerate(samples):
        begin = 10_000_000 + number * 10_000
        times = [begin + after + skew_ms for after in made]
        observed, _ = observe_skew(np.array([*times, wrong]), begin, begin + 10_000)
        skew = skew.followed_by(observed) if skew else observed
        # The wrong group may lie within reach of the others: then it moves the skew by less than an interval.
        assert min(0, skew_ms) - 10_000 <= skew.ms <= max(0, skew_ms) + 10_000


def test_a_commit_is_never_moved_out_of_the_samples_it_appeared_between() -> None:
    times = np.array([105_000, 705_000, 705_000, YEAR_9999, 5, TO + TOLERANCE_MS])
    skew = np.array([0, 600_000, 0, 0, 0, 0])
    first, last = np.full(6, FROM), np.full(6, TO)
    expected = [105_000, 105_000, TO + TOLERANCE_MS, TO + TOLERANCE_MS, FROM - MAX_COMMIT_DELAY_MS, TO + TOLERANCE_MS]
    moved, error = to_our_clock(times, skew, np.full(6, 7), first, last)
    assert moved.tolist() == expected
    assert (error == 7).tolist() == [True, True, False, False, False, True]
    assert error.max() > YEAR_9999
