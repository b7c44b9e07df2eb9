"""The age of the first unread record, beside the time for which it has been waiting, over cycles in a row."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.kit.plans import NOW, Commit, Rehearsal, plan
from warren.domain.time_lag import TimeLagMethod
from warren.domain.windows import UNKNOWN
from warren.kafka.samples import RecordTime
from warren.pipeline.plan import PlannedCluster
from warren.pipeline.record_times import MAX_LOOKED_UP

TRIGGER = 10_000
HOUR = 3_600_000
DAY = 24 * HOUR
KEY = ("local", "g", "t", 0)
READ = PlannedCluster("local", is_judged=True, read_records=("t*",))


@pytest.fixture
def cycles(tmp_path: Path) -> Rehearsal:
    return Rehearsal(tmp_path, plan(tmp_path))


def cycle(
    cycles: Rehearsal,
    n: int,
    head: int,
    committed: int | None = None,
    times: Sequence[RecordTime] = (),
    cluster: PlannedCluster = READ,
    **changes: Any,
) -> dict[str, Any]:
    """The n-th cycle, with what is sampled, committed and answered in it; the partition as it was judged."""
    now = NOW + n * changes.pop("trigger_ms", TRIGGER)
    cycles.sample(now, {"local": {"t": [head]}}, **changes)
    commits = [] if committed is None else [Commit("g", "t", 0, committed, now - 100, n + 1)]
    cycles.plan = replace(cycles.plan, clusters=(replace(cluster, record_times=tuple(times)),))
    return cycles.cycle(now, commits)[KEY]


def asked(cycles: Rehearsal) -> list[tuple[str, str, int, int, bool]]:
    return [unread for result in cycles.results.values() for unread in result.times_to_look_up]


def backfill(cycles: Rehearsal, cluster: PlannedCluster = READ) -> dict[str, Any]:
    """A group that has read everything stops, and five days of old records come within one trigger."""
    cycle(cycles, 0, 100, 100, cluster=cluster)
    return cycle(cycles, 1, 1_100, cluster=cluster)


def test_a_backfill_is_days_old_and_waits_for_seconds(cycles: Rehearsal) -> None:
    row = backfill(cycles)
    assert (row["behind_method"], row["oldest_unread_age_s"]) == (TimeLagMethod.HEAD_HISTORY, UNKNOWN)
    assert asked(cycles) == [("local", "t", 0, 100, True)]
    row = cycle(cycles, 2, 1_100, times=[("t", 0, 100, NOW - 5 * DAY, 0, False)])
    assert row["behind_method"] == TimeLagMethod.HEAD_HISTORY
    assert row["seconds_behind"] == pytest.approx(20.0, abs=10.0)
    assert row["oldest_unread_age_s"] == 5 * 86_400 + 20
    assert cycles.groups()["local", "g"]["oldest_unread_age_s"] == 5 * 86_400 + 20
    assert asked(cycles) == [], "what is known is not asked again"
    row = cycle(cycles, 3, 1_200)
    assert row["oldest_unread_age_s"] == 5 * 86_400 + 30, "it is kept while the group stands"
    row = cycle(cycles, 4, 1_200, 1_200)
    assert (row["seconds_behind"], row["oldest_unread_age_s"]) == (0.0, UNKNOWN), "nothing is unread"


def test_without_the_wish_no_record_is_asked_whose_waiting_time_is_known(cycles: Rehearsal) -> None:
    for globs in ((), ("other", "T*")):
        assert backfill(cycles, replace(READ, read_records=globs))["behind_method"] == TimeLagMethod.HEAD_HISTORY
        assert asked(cycles) == []


def test_a_group_that_reads_a_backfill_is_on_the_line_through_the_last_two_records(cycles: Rehearsal) -> None:
    backfill(cycles)
    times = [("t", 0, 100, NOW - 5 * DAY, 0, False)]
    row = cycle(cycles, 2, 1_100, 110, times)
    assert row["oldest_unread_age_s"] == UNKNOWN, "one record before it does not tell how fast timestamps rise"
    times += [("t", 0, 110, NOW - 5 * DAY + HOUR, 0, False)]
    row = cycle(cycles, 3, 1_100, 120, times)
    assert row["oldest_unread_age_s"] == pytest.approx(5 * 86_400 - 2 * 3_600 + 30)
    assert row["behind_method"] == TimeLagMethod.HEAD_HISTORY
    row = cycle(cycles, 4, 1_100, 220, times)
    assert row["oldest_unread_age_s"] == UNKNOWN, "too far from the records that are known"
    assert asked(cycles) == [("local", "t", 0, 220, True)]


@pytest.mark.parametrize(
    ("is_append", "method"), [(False, TimeLagMethod.RECORD_TIME), (True, TimeLagMethod.APPEND_TIME)]
)
def test_where_the_history_does_not_reach_back_the_record_tells_both(
    cycles: Rehearsal, is_append: bool, method: TimeLagMethod
) -> None:
    cycle(cycles, 0, 5_000, 10)
    assert asked(cycles) == [("local", "t", 0, 10, True)]
    row = cycle(cycles, 1, 5_000, times=[("t", 0, 10, NOW - 6 * HOUR, 0, is_append)])
    assert row["behind_method"] == method
    assert row["seconds_behind"] == row["oldest_unread_age_s"] == 6 * 3_600 + 10


def test_a_time_between_two_bounds_is_an_age_as_soon_as_it_is_exact_enough(cycles: Rehearsal) -> None:
    cycle(cycles, 0, 5_000, 10)
    row = cycle(cycles, 1, 5_000, 2_505, [("t", 0, 10, NOW - 6 * HOUR, 0, False)])
    assert (row["behind_method"], row["oldest_unread_age_s"]) == (TimeLagMethod.RECORD_TIME, UNKNOWN)
    row = cycle(cycles, 2, 5_000, times=[("t", 0, 2_505, NOW - 4 * HOUR, 60_000, False)])
    assert row["seconds_behind"] == row["oldest_unread_age_s"] == 4 * 3_600 + 20


def new_topic(cycles: Rehearsal) -> None:
    """A topic that a mirror creates and fills between two samples, and a group that commits to it."""
    cycles.sample(NOW - TRIGGER, {"local": {"other": [5]}})
    cycle(cycles, 0, 1_000, 10)


def test_no_message_waits_for_longer_than_its_log_exists(cycles: Rehearsal) -> None:
    new_topic(cycles)
    row = cycle(cycles, 1, 1_000, times=[("t", 0, 10, NOW - 5 * DAY, 0, False)])
    assert (row["behind_method"], row["seconds_behind"]) == (TimeLagMethod.AT_LEAST, 10.0)
    assert row["oldest_unread_age_s"] == 5 * 86_400 + 10
    assert asked(cycles) == [], "the answer would be the same"
    for n in range(1, 30):
        row = cycle(cycles, n, 1_000, trigger_ms=HOUR, times=[("t", 0, 10, NOW - 5 * DAY, 0, False)])
    assert (row["behind_method"], row["seconds_behind"]) == (TimeLagMethod.AT_LEAST, 29 * 3600.0)
    assert len(cycles.plan.heads) < 30, "the history has forgotten the time before"


def test_a_record_as_young_as_its_log_tells_how_long_it_waits(cycles: Rehearsal) -> None:
    new_topic(cycles)
    row = cycle(cycles, 1, 1_000, times=[("t", 0, 10, NOW - 3_000, 0, False)])
    assert (row["behind_method"], row["seconds_behind"]) == (TimeLagMethod.RECORD_TIME, 13.0)


def test_a_topic_created_again_is_a_new_log(cycles: Rehearsal) -> None:
    cycle(cycles, 0, 100, 100)
    cycle(cycles, 1, 50, 20, ids={"t": "another"})
    row = cycle(cycles, 2, 50, ids={"t": "another"}, times=[("t", 0, 20, NOW - 5 * DAY, 0, False)])
    assert (row["behind_method"], row["oldest_unread_age_s"]) == (TimeLagMethod.AT_LEAST, 5 * 86_400 + 20)
    assert row["seconds_behind"] <= 20.0


def test_of_messages_that_were_deleted_unread_the_first_one_left_has_the_age(cycles: Rehearsal) -> None:
    cycle(cycles, 0, 5_000, 10)
    row = cycle(cycles, 1, 5_000, log_start=100, times=[("t", 0, 100, NOW - 2 * DAY, 0, False)])
    assert (row["behind_method"], row["oldest_unread_age_s"]) == (TimeLagMethod.AT_LEAST, 2 * 86_400 + 10)
    assert asked(cycles) == [("local", "t", 0, 100, True)], "it may be deleted next"
    row = cycle(cycles, 2, 5_000, log_start=200, times=[("t", 0, 200, NOW - DAY, 0, False)])
    assert row["oldest_unread_age_s"] == 86_400 + 20
    assert row["seconds_behind"] == 2 * 86_400 + 20, "what was lost has waited for longer"


def test_rows_without_a_time_lag_are_asked_first_then_the_largest_lags(cycles: Rehearsal) -> None:
    heads = [100] * (MAX_LOOKED_UP + 20)
    cycles.plan = replace(cycles.plan, clusters=(READ,))
    cycles.sample(NOW, {"local": {"t": heads}})
    cycles.cycle(NOW, [Commit("g", "t", p, 99 if p == 0 else 100, NOW - 100, p + 1) for p in range(len(heads))])
    cycles.sample(NOW + TRIGGER, {"local": {"t": [head + p for p, head in enumerate(heads)]}})
    cycles.cycle(NOW + TRIGGER)
    assert [unread[2] for unread in asked(cycles)] == [0, *range(len(heads) - 1, 20, -1)]
