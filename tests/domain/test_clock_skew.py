"""How far the brokers' clock is ahead of ours, told by the newest commit that was read between two looks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warren.domain.clock_skew import DRIFT_MS, ClockSkew

LOOKS = (100_000, 110_000)


@pytest.mark.parametrize(
    ("name", "newest_ms", "expected"),
    [
        ("nothing seen", [], 0),
        ("a commit between the looks", [105_000], 0),
        ("a commit right at the look before", [100_000], 0),
        ("a commit right at the look", [110_000], 0),
        ("a commit from our future", [110_700], 700),
        ("a commit from before the look before", [99_400], -600),
        ("the largest lead counts", [110_300, 110_700, 110_600], 700 - DRIFT_MS),
        ("a commit that is only old, its transaction was long", [105_000, 90_000], 0),
        ("a clock ahead, and a commit that is only old", [110_700, 90_000], 700 - DRIFT_MS),
        ("a clock that is set right is believed again in time", [110_700] + [105_000] * (700 // DRIFT_MS), 0),
        ("one that was behind, at once", [99_400, 105_000], 0),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_skew_by_example(name: str, newest_ms: list[int], expected: int) -> None:
    skew = ClockSkew()
    for newest in newest_ms:
        skew = skew.updated(newest, *LOOKS)
    assert skew.ms == expected, name


@given(
    st.integers(-5_000, 5_000),
    st.lists(st.lists(st.integers(0, 10_000), min_size=1, max_size=5), min_size=1, max_size=20),
)
def test_a_steady_skew_is_never_overdone(skew_ms: int, looks: list[list[int]]) -> None:
    skew = ClockSkew()
    for number, made in enumerate(looks):
        begin = number * 10_000
        skew = skew.updated(begin + max(made) + skew_ms, begin, begin + 10_000)
        assert skew.low <= skew_ms
        assert min(0, skew_ms) <= skew.ms <= max(0, skew_ms)
