"""Every reason in words, with the numbers it was decided on."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warren.domain.reasons import Facts, explain, format_duration
from warren.domain.rules import Reason

T = 1_700_000_000_000
FACTS = Facts(
    offsets=[1_000, 2_000, 3_000],
    times_ms=[T, T + 60_000, T + 120_000],
    lags=[500, None, 1_500],
    current_lag=2_500,
    now_ms=T + 120_000,
    intervals=10,
)


@pytest.mark.parametrize(
    ("reason", "facts", "words"),
    [
        (Reason.NOT_JUDGED, FACTS, "not judged yet: the offsets topic is still being read"),
        (Reason.NO_COMMITS, replace(FACTS, offsets=[], times_ms=[], lags=[], current_lag=None), "no commit seen yet"),
        (
            Reason.NO_COMMITS,
            replace(FACTS, offsets=[], times_ms=[], lags=[]),
            "no commit seen yet; lag 2,500 by the offset the broker holds",
        ),
        (
            Reason.SILENT,
            replace(FACTS, offsets=[], times_ms=[], lags=[]),
            "no commit since Warren has watched it; lag 2,500 by the offset the broker holds",
        ),
        (
            Reason.INCOMPLETE,
            replace(FACTS, minimum_complete=0.5),
            "3 of 10 commits in the window, less than minimum-complete 0.5",
        ),
        (Reason.NO_HEAD, replace(FACTS, current_lag=None), "the head of this partition is not known yet"),
        (Reason.CAUGHT_UP, replace(FACTS, current_lag=0), "caught up: lag is 0"),
        (Reason.CAUGHT_UP, replace(FACTS, allowed_lag=3_000), "lag 2,500 is within the allowed 3,000"),
        (
            Reason.STOPPED,
            replace(FACTS, now_ms=T + 780_000),
            "no commit for 11 min, longer than the 2 min its last 3 commits took; lag 2,500",
        ),
        (
            Reason.REWOUND,
            replace(FACTS, offsets=[5_000, 1_000, 2_000]),
            "the committed offset went back from 5,000 to 1,000 and has reached only 2,000 since; lag 2,500",
        ),
        (
            Reason.TOO_LITTLE_KNOWN,
            replace(FACTS, lags=[None, None, 5]),
            "too little is known yet: 1 of 3 commits with a known lag; lag now 2,500",
        ),
        (Reason.WAS_CAUGHT_UP, FACTS, "lag was 0 at some commit of the last 2 min; now 2,500"),
        (
            Reason.WAS_CAUGHT_UP,
            replace(FACTS, allowed_lag=700),
            "lag was within the allowed 700 at some commit of the last 2 min; now 2,500",
        ),
        (
            Reason.STALLED,
            replace(FACTS, offsets=[1_000, 1_000, 1_000]),
            "3 commits in 2 min, all at offset 1,000; lag 2,500",
        ),
        (Reason.LAG_FELL, FACTS, "lag went down within the window (500 first, 1,500 last); now 2,500"),
        (
            Reason.FALLING_BEHIND,
            FACTS,
            "falling behind: lag rose from 500 to 1,500 and never went down; now 2,500",
        ),
        (
            Reason.FALLING_BEHIND,
            replace(FACTS, trend_floor=20),
            "falling behind: lag rose from 20 to 1,500 and never went down; now 2,500",
        ),
        (
            Reason.FALLING_BEHIND,
            replace(FACTS, lags=[500, 500, 500]),
            "lag has stayed at 500 over 3 commits in 2 min, never less",
        ),
        (
            Reason.LAG_STEADY,
            FACTS,
            "keeps pace: lag 1,500, no rise beyond what sampling can tell; now 2,500",
        ),
        (
            Reason.REWOUND,
            FACTS,
            "had gone back when last judged; commits have come or gone since, which are not judged yet; lag 2,500",
        ),
        (
            Reason.FALLING_BEHIND,
            replace(FACTS, lags=[None] * 3),
            "was falling behind when last judged; commits have come or gone since, which are not judged yet; lag 2,500",
        ),
        (
            Reason.CAUGHT_UP,
            replace(FACTS, current_lag=0, head_age_ms=300_000),
            "caught up: lag is 0; the head is of 5 min ago: no leader has answered since",
        ),
    ],
)
def test_reasons_in_words(reason: Reason, facts: Facts, words: str) -> None:
    assert explain(reason, facts) == words


numbers = st.integers(0, 2**50)


@st.composite
def some_facts(draw: st.DrawFn) -> Facts:
    count = draw(st.integers(0, 5))
    return Facts(
        offsets=draw(st.lists(numbers, min_size=count, max_size=count)),
        times_ms=draw(st.lists(numbers, min_size=count, max_size=count)),
        lags=draw(st.lists(st.none() | numbers, min_size=count, max_size=count)),
        current_lag=draw(st.none() | numbers),
        now_ms=draw(numbers),
        intervals=draw(st.integers(1, 10)),
        minimum_complete=draw(st.floats(0, 1)),
        allowed_lag=draw(numbers),
        trend_floor=draw(st.none() | numbers),
        head_age_ms=draw(st.none() | numbers),
    )


@settings(max_examples=60)
@given(some_facts())
def test_every_reason_has_words_for_whatever_the_window_holds_by_now(facts: Facts) -> None:
    # The windows of a cluster that is read anew move on while its verdicts stay.
    for reason in Reason:
        words = explain(reason, facts)
        assert words
        assert "\n" not in words
        assert "None" not in words


@pytest.mark.parametrize(
    ("milliseconds", "words"),
    [
        (-5, "0 s"),
        (0, "0 s"),
        (999, "0 s"),
        (45_000, "45 s"),
        (119_999, "119 s"),
        (120_000, "2 min"),
        (7_199_000, "119 min"),
        (7_200_000, "2 h"),
        (12_000_000, "3 h 20 min"),
        (172_740_000, "47 h 59 min"),
        (172_800_000, "2 d"),
        (439_200_000, "5 d 2 h"),
    ],
)
def test_durations_in_words(milliseconds: int, words: str) -> None:
    assert format_duration(milliseconds) == words
