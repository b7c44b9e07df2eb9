"""Time lag over cycles in a row: hand-made heads and commits, against when each message really appeared."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec import structs

from tests.kit.plans import NOW, Commit, Rehearsal, plan
from warren.domain.rates import NEVER_S
from warren.domain.time_lag import TimeLagMethod
from warren.domain.windows import UNKNOWN
from warren.kafka.samples import RecordTime

TRIGGER = 10_000
HOUR = 3_600_000
KEY = ("local", "g", "t", 0)
Row = dict[str, Any]


@pytest.fixture
def cycles(tmp_path: Path) -> Rehearsal:
    return Rehearsal(tmp_path, plan(tmp_path))


def run(
    cycles: Rehearsal,
    triggers: range,
    head: Callable[[int], int],
    committed: Callable[[int], int | None],
    trigger_ms: int = TRIGGER,
) -> list[Row]:
    """Cycles in which the head and the commit of each trigger are given; the partition as each cycle judged it."""
    rows = []
    for n in triggers:
        now, offset = NOW + n * trigger_ms, committed(n)
        cycles.sample(now, {"local": {"t": [head(n)]}})
        commits = [] if offset is None else [Commit("g", "t", 0, offset, now - 100, n + 1)]
        rows.append(cycles.cycle(now, commits)[KEY])
    return rows


def test_a_steady_group_is_as_far_behind_as_its_first_unread_message(cycles: Rehearsal) -> None:
    # 100 messages per second; the group is always 1,500 messages, so 15 s, behind.
    rows = run(cycles, range(20), lambda n: 10_000 + 1_000 * n, lambda n: 8_500 + 1_000 * n)
    assert all(row["seconds_behind"] == pytest.approx(15.0, abs=0.1) for row in rows[3:])
    assert {row["behind_method"] for row in rows[3:]} == {TimeLagMethod.HEAD_HISTORY}
    assert all(row["unread_error_ms"] <= TRIGGER for row in rows[3:])
    last = rows[-1]
    rates = [last[name] for name in ("produced_1m", "produced_10m", "consumed_1m", "consumed_10m")]
    assert rates == pytest.approx([100.0] * 4)
    assert cycles.groups()["local", "g"]["seconds_behind"] == pytest.approx(15.0, abs=0.1)


def test_the_rates_of_a_group_are_unknown_until_they_are_measured(cycles: Rehearsal) -> None:
    run(cycles, range(1), lambda _: 1_000, lambda _: 900)
    assert cycles.groups()["local", "g"]["produced_1m"] == UNKNOWN
    run(cycles, range(1, 3), lambda n: 1_000 + 100 * n, lambda _: 900)
    assert cycles.groups()["local", "g"]["produced_1m"] == pytest.approx(10.0)


def test_time_lag_of_a_stopped_group_grows_second_by_second_and_is_looked_up_once(cycles: Rehearsal) -> None:
    rows = run(cycles, range(60), lambda n: 1_000 + 100 * n, lambda n: 1_000 + 100 * n if n < 5 else None)
    stopped = rows[6:]
    assert len({(row["unread_since_ms"], row["unread_error_ms"]) for row in stopped}) == 1
    assert np.diff([row["seconds_behind"] for row in stopped]).tolist() == pytest.approx([10.0] * 53)
    # The first unread message came right after the fifth sample.
    assert stopped[-1]["seconds_behind"] == pytest.approx(550.0, abs=0.1)
    assert (stopped[-1]["catch_up_low_s"], stopped[-1]["catch_up_high_s"]) == (NEVER_S, NEVER_S)


def test_a_group_that_keeps_up_is_not_falling_behind(cycles: Rehearsal) -> None:
    # What was produced since its last commit is unread in every sample.
    rows = run(cycles, range(12), lambda n: 10_000 + 1_000 * n, lambda n: 9_990 + 1_000 * n)
    assert {(row["catch_up_low_s"], row["catch_up_high_s"]) for row in rows[4:]} == {(0.0, 0.0)}


def test_time_lag_falls_while_a_group_catches_up_and_the_forecast_holds(cycles: Rehearsal) -> None:
    # 10 messages per second; the group was away for 20 triggers and then reads 30 per second.
    rows = run(
        cycles,
        range(40),
        lambda n: 1_000 + 100 * n,
        lambda n: 1_000 if n < 20 else min(1_000 + 300 * (n - 20), 1_000 + 100 * n),
    )
    behind = [row["seconds_behind"] for row in rows]
    assert behind[20] == pytest.approx(200.0, abs=10.0)
    assert max(np.diff(behind[20:31])) < 0
    assert behind[30:] == [0.0] * 10
    lag = 100 * 26 - 300 * 6
    assert rows[26]["catch_up_low_s"] <= lag / 20 * 1.4
    assert rows[26]["catch_up_high_s"] >= lag / 20


def test_a_group_older_than_the_history_is_at_least_as_far_behind(cycles: Rehearsal) -> None:
    rows = run(cycles, range(4), lambda n: 5_000 + n, lambda n: 10 if n == 0 else None)
    assert [row["behind_method"] for row in rows] == [TimeLagMethod.AT_LEAST] * 4
    assert [row["seconds_behind"] for row in rows] == [0.0, 10.0, 20.0, 30.0]
    assert cycles.groups()["local", "g"]["behind_method"] == TimeLagMethod.AT_LEAST


def test_a_group_that_goes_back_is_as_far_behind_as_what_it_reads_again(cycles: Rehearsal) -> None:
    rows = run(cycles, range(30), lambda n: 1_000 + 100 * n, lambda n: 1_000 + 100 * n if n < 25 else 1_500)
    assert rows[24]["seconds_behind"] == 0.0
    assert rows[25]["seconds_behind"] == pytest.approx(200.0, abs=10.0)


def test_rows_without_a_head_in_some_samples_are_found_all_the_same(cycles: Rehearsal) -> None:
    def head(n: int) -> int:
        return UNKNOWN if n % 3 == 1 else 1_000 + 100 * n

    rows = run(cycles, range(40), head, lambda n: 1_550 if n == 38 else 1_000 + 50 * n)
    # Offset 1,550 was passed between the samples 5 and 6.
    assert rows[38]["unread_since_ms"] == pytest.approx(NOW + 55_000, abs=TRIGGER)
    assert rows[38]["behind_method"] == TimeLagMethod.HEAD_HISTORY


def test_messages_that_were_deleted_unread_are_lost_and_the_group_is_still_behind(tmp_path: Path) -> None:
    cycles = Rehearsal(tmp_path, plan(tmp_path))
    run(cycles, range(10), lambda n: 1_000 + 100 * n, lambda n: 1_000 if n == 0 else None)
    row = cycles.partitions()[KEY]
    assert (row["lost"], row["log_start"]) == (0, 0)
    assert row["seconds_behind"] == pytest.approx(90.0, abs=10.0)


@pytest.mark.parametrize("seed", range(2))
def test_random_lives_are_within_the_stated_error(cycles: Rehearsal, seed: int) -> None:
    """Heads that move by chance: the first unread message appeared within the error of when Warren says."""
    random = np.random.default_rng(seed)
    head, committed, appeared_ms = 1_000, 1_000, {}
    for n in range(120):
        now = NOW + n * TRIGGER
        for _ in range(int(random.integers(0, 6))):
            appeared_ms[head] = int(now - random.integers(1, TRIGGER))
            head += 1
        cycles.sample(now, {"local": {"t": [head]}})
        committed = int(random.integers(committed, head + 1)) if random.random() < 0.3 else committed
        row = cycles.cycle(now, [Commit("g", "t", 0, committed, now, n + 1)])[KEY]
        if committed == head:
            assert row["seconds_behind"] == 0.0
        elif row["behind_method"] == TimeLagMethod.HEAD_HISTORY:
            assert abs(row["unread_since_ms"] - appeared_ms[committed]) <= row["unread_error_ms"]
        else:
            assert row["unread_since_ms"] >= appeared_ms[committed]


def test_times_of_records_reach_further_back_than_the_history(cycles: Rehearsal) -> None:
    run(cycles, range(3), lambda n: 5_000 + n, lambda n: 10 if n == 0 else None)
    asked = [unread for result in cycles.results.values() for unread in result.times_to_look_up]
    assert asked == [("local", "t", 0, 10, False)]

    times = (("t", 0, 10, NOW - 6 * HOUR, 0, False), ("u", 0, 10, NOW - HOUR, 0, False), ("t", 0, 11, NOW, 0, False))
    cycles.plan = replace(cycles.plan, clusters=(replace(cycles.plan.clusters[0], record_times=times),))
    [row] = run(cycles, range(3, 4), lambda n: 5_000 + n, lambda _: None)
    assert (row["behind_method"], row["unread_error_ms"]) == (TimeLagMethod.RECORD_TIME, 0)
    assert row["seconds_behind"] == 6 * 3600 + 30
    assert not any(result.times_to_look_up for result in cycles.results.values())

    cycles.plan = replace(cycles.plan, clusters=(replace(cycles.plan.clusters[0], record_times=()),))
    [row] = run(cycles, range(4, 5), lambda n: 5_000 + n, lambda _: None)
    assert row["seconds_behind"] == 6 * 3600 + 40, "it is asked once"


def test_a_group_that_reads_on_is_between_the_record_that_is_known_and_the_head(cycles: Rehearsal) -> None:
    run(cycles, range(1), lambda _: 5_000, lambda _: 10)
    times = (("t", 0, 10, NOW - 6 * HOUR, 0, False),)
    cycles.plan = replace(cycles.plan, clusters=(replace(cycles.plan.clusters[0], record_times=times),))
    [row] = run(cycles, range(1, 2), lambda _: 5_000, lambda _: 2_505)
    assert row["behind_method"] == TimeLagMethod.RECORD_TIME
    assert row["seconds_behind"] == pytest.approx(3 * 3600, rel=0.01)
    asked = [unread for result in cycles.results.values() for unread in result.times_to_look_up]
    assert asked == [("local", "t", 0, 2_505, False)], "a rough time is looked up again"


def test_a_record_time_is_never_later_than_what_the_head_history_proves(cycles: Rehearsal) -> None:
    run(cycles, range(3), lambda n: 5_000 + n, lambda n: 10 if n == 0 else None)
    times = (("t", 0, 10, NOW + 15_000, 0, False),)
    cycles.plan = replace(cycles.plan, clusters=(replace(cycles.plan.clusters[0], record_times=times),))
    [row] = run(cycles, range(3, 4), lambda n: 5_000 + n, lambda _: None)
    assert (row["behind_method"], row["seconds_behind"]) == (TimeLagMethod.AT_LEAST, 30.0)


def test_a_rough_time_of_a_record_does_not_get_better_by_waiting(cycles: Rehearsal) -> None:
    """While the brokers have not told the time of a record, it is between the same two times in every cycle."""
    run(cycles, range(1), lambda _: 5_000, lambda _: 10)
    times = (("t", 0, 10, NOW - 6 * HOUR, 0, False),)
    cycles.plan = replace(cycles.plan, clusters=(replace(cycles.plan.clusters[0], record_times=times),))
    rows = run(cycles, range(1, 5), lambda _: 5_000, lambda _: 2_505)
    assert len({(row["unread_since_ms"], row["unread_error_ms"]) for row in rows}) == 1


def test_a_record_long_before_does_not_spoil_what_heads_of_the_past_tell(cycles: Rehearsal) -> None:
    row = with_past_heads(cycles, ("t", 0, 60, NOW - 7_140_000, 0, False))
    assert row["unread_since_ms"] == pytest.approx(NOW - 45 * 60_000, abs=5_000)
    assert row["unread_error_ms"] <= 20 * 60_000


def test_the_time_of_a_record_may_be_later_than_a_rough_one(cycles: Rehearsal) -> None:
    row = with_past_heads(cycles, ("t", 0, 4_500, NOW - 40 * 60_000, 0, False))
    assert (row["unread_since_ms"], row["unread_error_ms"]) == (NOW - 40 * 60_000, 0)


def with_past_heads(cycles: Rehearsal, record_time: RecordTime) -> Row:
    """A group 45 minutes behind, at one message per second, with heads of the past every half an hour."""
    for age_s in (7_200, 5_400, 3_600, 1_800):
        cycles.sample(NOW - 1_000 * age_s, {"local": {"t": [7_200 - age_s]}})
    cycles.heads = [structs.replace(sample, by_record_time=True) for sample in cycles.heads]
    cycles.sample(NOW, {"local": {"t": [7_200]}})
    cycles.plan = replace(cycles.plan, clusters=(replace(cycles.plan.clusters[0], record_times=(record_time,)),))
    return cycles.cycle(NOW, [Commit("g", "t", 0, 4_500, NOW - 100, 1)])[KEY]
