"""How far the brokers' clock is ahead of ours, told by commits that were read between two looks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warren.domain.clocks import Skew

LOOKS = (100_000, 110_000)


@pytest.mark.parametrize(
    ("name", "commits", "expected"),
    [
        ("nothing seen", [], 0),
        ("commits within the looks", [(101_000, 109_000)], 0),
        ("commits right at the looks", [(100_000, 110_000)], 0),
        ("a commit from our future", [(101_000, 110_700)], 700),
        ("a commit from before the look before", [(99_400, 109_000)], -600),
        ("the larger correction wins", [(101_000, 110_300), (101_000, 110_700), (101_000, 110_500)], 700),
        ("the more negative one, too", [(99_900, 109_000), (99_400, 109_000), (99_700, 109_000)], -600),
        ("looks that contradict each other: the newest is right", [(101_000, 110_700), (99_400, 109_000)], -600),
        ("and back", [(99_400, 109_000), (101_000, 110_700)], 700),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_skew_by_example(name: str, commits: list[tuple[int, int]], expected: int) -> None:
    skew = Skew()
    for oldest, newest in commits:
        skew = skew.narrowed(oldest, newest, *LOOKS)
    assert skew.ms == expected, name


@given(
    st.integers(-5_000, 5_000),
    st.lists(st.lists(st.integers(0, 10_000), min_size=1, max_size=5), min_size=1, max_size=10),
)
def test_a_steady_skew_is_never_overdone(skew_ms: int, looks: list[list[int]]) -> None:
    skew = Skew()
    for number, made in enumerate(looks):
        begin = number * 10_000
        times = [begin + after + skew_ms for after in made]
        skew = skew.narrowed(min(times), max(times), begin, begin + 10_000)
        assert skew.low <= skew_ms <= skew.high
        assert min(0, skew_ms) <= skew.ms <= max(0, skew_ms)
