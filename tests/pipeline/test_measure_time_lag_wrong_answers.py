"""Every wrong answer that other tools are known to give for lag in time, as a test that Warren does not give it.

| others say | test |
|---|---|
| more and more on an idle topic | `test_lag_does_not_grow_on_an_idle_topic` |
| NaN, when there are few samples or no rate | `test_lag_is_never_nan` |
| more and more while a group catches up | `test_lag_does_not_rise_while_a_group_catches_up` |
| less than nothing | `test_lag_is_never_negative` |
| 75 hours after a burst of a second | `test_lag_is_not_days_after_a_burst` |
| 30 s now and then, where it is 250 ms | `test_lag_of_a_quarter_of_a_second_does_not_jitter` |
| years, when old records are replayed | `test_lag_is_not_years_on_a_replay` |
| no more than the buffer of samples is long | `test_lag_has_no_ceiling` |
| anything, at a message per hour | `test_lag_is_as_exact_as_the_samples_at_low_rates` |
| 18 hours, when a topic was created again | `test_lag_starts_over_when_a_topic_is_created_again` |
| nothing, or 0, when a partition is drained | `test_drained_partitions_neither_block_nor_hide_the_others` |

`tests/integration/test_time_lag.py` shows the same on a real Kafka.
"""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.kit.plans import NOW, Commit, Rehearsal, plan
from tests.pipeline.test_measure_time_lag import HOUR, KEY, TRIGGER, run
from warren.domain.time_lag import TimeLagMethod
from warren.domain.windows import UNKNOWN
from warren.snapshot.time_lag import to_time_lag

YEAR = 365 * 24 * HOUR


@pytest.fixture
def cycles(tmp_path: Path) -> Rehearsal:
    return Rehearsal(tmp_path, plan(tmp_path))


def test_lag_does_not_grow_on_an_idle_topic(cycles: Rehearsal) -> None:
    # It was 100 messages behind, has read them, and then nothing more is produced or committed.
    rows = run(cycles, range(40), lambda n: min(300 + 100 * n, 500), lambda n: 200 + 100 * n if n < 4 else None)
    assert rows[1]["seconds_behind"] > 0
    assert {(row["seconds_behind"], row["behind_method"]) for row in rows[3:]} == {(0.0, TimeLagMethod.CAUGHT_UP)}


@pytest.mark.parametrize(
    ("name", "heads", "commits"),
    [
        ("one sample", [500], [400]),
        ("no head", [UNKNOWN] * 5, [400] * 5),
        ("a head after a while", [UNKNOWN] * 3 + [500] * 3, [400] * 6),
        ("a head that never moves", [500] * 8, [400] * 8),
        ("an empty topic", [0] * 8, [0] * 8),
        ("a head that is gone", [500, 600, *[UNKNOWN] * 8], [400] * 10),
        ("no commit but the first", [500 + 10 * n for n in range(10)], [400, *[None] * 9]),
    ],
)
def test_lag_is_never_nan(cycles: Rehearsal, name: str, heads: list[int], commits: list[int | None]) -> None:
    for row in run(cycles, range(len(heads)), heads.__getitem__, commits.__getitem__):
        assert not any(math.isnan(value) for value in row.values() if isinstance(value, float)), name
    group = cycles.groups()["local", "g"]
    assert not any(math.isnan(value) for value in group.values() if isinstance(value, float)), name
    lag = to_time_lag(group)
    is_unknown = heads[0] == heads[-1] == UNKNOWN
    assert (lag.seconds_behind is None, lag.seconds_behind_method == "unknown") == (is_unknown, is_unknown)


@pytest.mark.parametrize("goes_on", [True, False], ids=["is produced", "nothing is produced any more"])
def test_lag_does_not_rise_while_a_group_catches_up(cycles: Rehearsal, goes_on: bool) -> None:
    # 10 messages per second; the group was away for 20 triggers, and then reads 30 per second.
    def head(n: int) -> int:
        return 1_000 + 100 * (n if goes_on else min(n, 20))

    rows = run(cycles, range(35), head, lambda n: 1_000 if n < 20 else min(1_000 + 300 * (n - 20), head(n)))
    behind = [row["seconds_behind"] for row in rows]
    assert behind[20] == pytest.approx(200.0, abs=10.0)
    caught_up = behind.index(0.0, 1)
    assert np.diff(behind[20 : caught_up + 1]).max() <= -10.0
    assert set(behind[caught_up:]) == {0.0}


def test_lag_is_never_negative(cycles: Rehearsal) -> None:
    def sampled_and_judged(sampled_ms: int, judged_ms: int, head: int, committed: int, order: int) -> float:
        cycles.sample(sampled_ms, {"local": {"t": [head]}})
        return float(cycles.cycle(judged_ms, [Commit("g", "t", 0, committed, judged_ms, order)])[KEY]["seconds_behind"])

    assert sampled_and_judged(NOW, NOW, 1_000, 1_000, 1) == 0.0
    assert sampled_and_judged(NOW + 10_000, NOW + 10_000, 1_100, 1_150, 2) == 0.0, "committed after the heads were read"
    assert sampled_and_judged(NOW + 25_000, NOW + 20_000, 1_200, 1_199, 3) == 0.0, "a clock that was set back by 5 s"
    # A producer whose clock is ahead by an hour.
    assert sampled_and_judged(NOW + 30_000, NOW + 30_000, 1_300, 10, 4) >= 30.0
    times = (("t", 0, 10, NOW + HOUR, 0, False),)
    cycles.plan = replace(cycles.plan, clusters=(replace(cycles.plan.clusters[0], record_times=times),))
    assert sampled_and_judged(NOW + 40_000, NOW + 40_000, 1_300, 10, 5) >= 40.0


def test_lag_is_not_days_after_a_burst(cycles: Rehearsal) -> None:
    """A head rate of 1 per hour says nothing about a burst of a million messages a second ago."""
    rows = run(cycles, range(12), lambda n: 1_000 if n < 10 else 1_001_000, lambda n: 1_000 if n < 9 else None)
    assert rows[-1]["seconds_behind"] == pytest.approx(20.0, abs=10.0)


def test_lag_of_a_quarter_of_a_second_does_not_jitter(cycles: Rehearsal) -> None:
    # 100 messages per second, commits that are 250 ms behind, and cycles that come at uneven times.
    random, now, behind = np.random.default_rng(0), NOW, []
    for n in range(60):
        now += int(random.integers(8_000, 12_000))
        head = 10_000 + (now - NOW) // 10
        cycles.sample(now, {"local": {"t": [head]}})
        behind.append(cycles.cycle(now, [Commit("g", "t", 0, head - 25, now, n)])[KEY]["seconds_behind"])
    assert behind[1:] == pytest.approx([0.25] * 59, abs=0.01)


def test_lag_is_not_years_on_a_replay(cycles: Rehearsal) -> None:
    """Records of years ago that are produced now have been waiting since now, whatever their timestamps say."""
    times = tuple(("t", 0, offset, NOW - 3 * YEAR, 0, False) for offset in (1_000, 1_050))
    cycles.plan = replace(cycles.plan, clusters=(replace(cycles.plan.clusters[0], record_times=times),))
    rows = run(cycles, range(20), lambda n: 1_000 + 100 * max(n - 9, 0), lambda n: 1_000 if n < 12 else 1_050)
    assert {row["seconds_behind"] for row in rows[:10]} == {0.0}
    assert rows[-1]["seconds_behind"] == pytest.approx(95.0, abs=5.0)
    assert {row["behind_method"] for row in rows[10:]} == {TimeLagMethod.HEAD_HISTORY}


def test_lag_has_no_ceiling(cycles: Rehearsal) -> None:
    """A group that stopped two days ago is two days behind, though the history covers one."""
    rows = run(cycles, range(49), lambda n: 1_000 + n, lambda n: 1_000 if n == 0 else None, HOUR)
    assert rows[-1]["seconds_behind"] == pytest.approx(2 * 24 * 3600, rel=0.02)
    assert rows[-1]["behind_method"] == TimeLagMethod.HEAD_HISTORY


def test_lag_is_as_exact_as_the_samples_at_low_rates(cycles: Rehearsal) -> None:
    # One message in 200 s.
    rows = run(cycles, range(50), lambda n: 100 + n // 20, lambda n: 100 if n == 0 else None)
    assert {row["unread_since_ms"] for row in rows[21:]} == {NOW + 195_000}
    assert {row["unread_error_ms"] for row in rows[21:]} == {5_000}


def test_lag_starts_over_when_a_topic_is_created_again(cycles: Rehearsal) -> None:
    run(cycles, range(20), lambda n: 1_000 + 100 * n, lambda n: 1_000 if n == 0 else None)
    now = NOW + 20 * TRIGGER
    cycles.sample(now, {"local": {"t": [50]}}, {"t": "another"})
    row = cycles.cycle(now, [Commit("g", "t", 0, 20, now - 100, 100)])[KEY]
    assert row["seconds_behind"] <= 20.0
    assert row["behind_method"] == TimeLagMethod.AT_LEAST


def test_drained_partitions_neither_block_nor_hide_the_others(cycles: Rehearsal) -> None:
    """Partition 0 was drained long ago, 1 is behind, 2 is drained and then gets messages, 3 has no head."""

    def behind(n: int) -> list[float]:
        now = NOW + n * TRIGGER
        cycles.sample(now, {"local": {"t": [700, 1_000 + 100 * n, 300 + 10 * max(n - 15, 0), UNKNOWN]}})
        commits = [Commit("g", "t", p, offset, now, 1) for p, offset in enumerate((700, 1_000, 300, 5)) if n == 0]
        rows = cycles.cycle(now, commits)
        return [rows["local", "g", "t", partition]["seconds_behind"] for partition in range(4)]

    life = [behind(n) for n in range(20)]
    assert {partitions[0] for partitions in life} == {0.0}
    assert np.diff([partitions[1] for partitions in life[1:]]) == pytest.approx([10.0] * 18)
    assert [partitions[2] for partitions in life[:16]] == [0.0] * 16
    assert [partitions[2] for partitions in life[16:]] == pytest.approx([9.5, 19.5, 29.5, 39.5])
    assert {partitions[3] for partitions in life} == {float(UNKNOWN)}
    group = cycles.groups()["local", "g"]
    assert group["seconds_behind"] == life[-1][1]
    assert group["behind_method"] == TimeLagMethod.AT_LEAST, "nothing is known of the partition without a head"
