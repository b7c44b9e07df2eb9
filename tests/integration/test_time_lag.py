"""Lag in time of a running Warren against the truth, on a real Kafka where the time of every message is known."""

import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from tests.kit.time_lag_errors import CLUSTER, Answer, answers, to_table
from tests.kit.timed_groups import (
    APPEND_TIME,
    CREATE_TIME,
    HISTORY_EVERY_MS,
    TO_THE_HEAD,
    Phase,
    TimedGroup,
    TimedWorkload,
)
from tests.kit.warrens import Recorder, Seen, WarrenRun, recorded, sections_for, wait_for
from warren.demo.broker import Kafka
from warren.domain.time_lag import TimeLagMethod

pytestmark = pytest.mark.timeout(2400)

HOUR_MS, DAY_MS = 3_600_000, 86_400_000
OLD_MS = 3 * DAY_MS
RESULTS = Path("build")
MAX_SHARE = 0.05
"""How far off a time may be at most where samples are thinned, or a record is looked up: a share of it."""
SAMPLE_S = 1.0
"""How long a sample takes at most on a busy machine: a head was read at any time in it."""


@dataclass(frozen=True)
class Course:
    """How often cycles run, and how long each phase takes."""

    name: str
    trigger_s: float
    offset_refresh: int
    early_s: float
    watching_s: float
    down_s: float
    back_s: float

    @property
    def noticed_ms(self) -> int:
        """How long Warren may take to notice that a topic was created again: two lists of topics, two cycles."""
        return round(8_000 + 2_000 * self.trigger_s)


SHORT = Course("short", trigger_s=1.0, offset_refresh=3, early_s=2.0, watching_s=8.0, down_s=0.0, back_s=4.0)
LONG = Course("long", trigger_s=10.0, offset_refresh=10, early_s=60.0, watching_s=300.0, down_s=60.0, back_s=240.0)


def groups_for(course: Course) -> list[TimedGroup]:
    """Groups of all kinds; rates are messages per second in each phase of Warren's life."""
    groups = []
    for times in (APPEND_TIME, CREATE_TIME):
        groups += [
            TimedGroup("steady", times, (40,) * 5, (TO_THE_HEAD,) * 5, behind=20),
            TimedGroup("bursty", times, (50,) * 5, (60,) * 5, burst_s=3 * course.trigger_s),
            TimedGroup("stopped", times, (20,) * 5, (TO_THE_HEAD, TO_THE_HEAD, 0, 0, 0)),
            TimedGroup("stopped before the start", times, (20,) * 5, (TO_THE_HEAD, 0, 0, 0, 0)),
            TimedGroup("stopped while down", times, (20,) * 5, (TO_THE_HEAD, TO_THE_HEAD, TO_THE_HEAD, 0, 0)),
            TimedGroup("catching up", times, (20,) * 5, (TO_THE_HEAD, 0, 60, 60, 60)),
            TimedGroup("idle", times, (20, 0, 0, 0, 0), (TO_THE_HEAD,) * 5),
            TimedGroup("created again", times, (20,) * 5, (10,) * 5, is_created_again=True),
        ]
    read_all = 6 * HOUR_MS / HISTORY_EVERY_MS / course.watching_s
    ages_ms, until_watched = (0, 0, OLD_MS, OLD_MS, OLD_MS), (TO_THE_HEAD, TO_THE_HEAD, 0, 0, 0)
    return [
        *groups,
        TimedGroup("backfill", CREATE_TIME, (20, 0, 50, 50, 50), until_watched, age_ms=ages_ms),
        TimedGroup("backfill before the start", CREATE_TIME, (20, 0, 0, 0, 0), (0,) * 5, age_ms=(OLD_MS,) * 5),
        TimedGroup("6 h behind", CREATE_TIME, (2,) * 5, (0,) * 5, starts_behind_ms=6 * HOUR_MS),
        TimedGroup(
            "6 h behind, catching up", CREATE_TIME, (2,) * 5, (0, 0, *(read_all,) * 3), starts_behind_ms=6 * HOUR_MS
        ),
    ]


@dataclass(frozen=True)
class Watched:
    """What a Warren published in all phases, and its answers compared with the truth."""

    course: Course
    snapshots: list[Seen]
    answers: list[Answer]
    restarted_ms: int

    def of(self, scenario: str) -> list[list[Answer]]:
        """The answers about one scenario, for each kind of timestamps."""
        own = [answer for answer in self.answers if answer.group.scenario == scenario]
        assert own, f"nothing was said of {scenario}"
        return [[a for a in own if a.group.timestamps == kind] for kind in sorted({a.group.timestamps for a in own})]


@pytest.fixture(scope="module", params=[SHORT, pytest.param(LONG, marks=pytest.mark.long)], ids=lambda c: c.name)
def watched(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Watched:
    """A Warren that lived through all phases; leaves a table of its errors."""
    course: Course = request.param
    groups, home = groups_for(course), tmp_path_factory.mktemp("time-lag")
    with Kafka() as kafka:
        workload = TimedWorkload(kafka.bootstrap, groups)
        workload.prepare()
        sections = sections_for(
            {CLUSTER: kafka.bootstrap}, trigger=course.trigger_s, offset_refresh=course.offset_refresh
        )
        with workload:
            time.sleep(course.early_s)
            workload.phase = Phase.STARTING
            with recorded(run := WarrenRun(home, sections)) as record:
                restarted_ms = pass_phases(workload, run, record, course)
            workload.finish()
    found = answers(record.seen, groups, course.noticed_ms)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"time-lag-{course.name}.md").write_text(
        f"{course}\n\n{to_table(found, course.trigger_s)}\n", encoding="utf-8"
    )
    return Watched(course, record.seen, found, restarted_ms)


def pass_phases(workload: TimedWorkload, run: WarrenRun, record: Recorder, course: Course) -> int:
    """From the first snapshot on: watch, stop Warren, start it again, watch; gives when it was started again."""
    wait_for(lambda: record.seen, "the first snapshot")
    workload.phase = Phase.WATCHING
    time.sleep(course.watching_s)
    assert run.stop() == 0
    workload.phase = Phase.DOWN
    time.sleep(course.down_s)
    before, restarted_ms = len(record.seen), time.time_ns() // 1_000_000
    run.start()
    wait_for(lambda: len(record.seen) > before, "a snapshot after the restart")
    workload.phase = Phase.BACK
    time.sleep(course.back_s)
    run.wait_for_cycles(2)
    workload.check()
    return restarted_ms


def test_no_answer_is_further_off_than_it_may_be(watched: Watched) -> None:
    assert [str(answer) for answer in watched.answers if answer.is_wrong] == []


def test_what_was_sampled_is_known_within_two_samples(watched: Watched) -> None:
    """Where samples are thinned, within 5 % of its age."""
    sampled_ms = sorted({seen.manifest.heads[-1].taken_at_ms for seen in watched.snapshots})
    checked = 0
    for answer in watched.answers:
        after = int(np.searchsorted(sampled_ms, answer.since_ms))
        if answer.method == TimeLagMethod.HEAD_HISTORY and 0 < after < len(sampled_ms):
            gap_s = (sampled_ms[after] - sampled_ms[after - 1]) / 1000
            assert answer.bound_s <= max(gap_s + SAMPLE_S, MAX_SHARE * answer.seconds_behind), str(answer)
            checked += 1
    assert checked > 10


def test_an_idle_topic_is_never_behind(watched: Watched) -> None:
    for answer in (answer for own in watched.of("idle") for answer in own):
        assert (answer.method, answer.seconds_behind) == (TimeLagMethod.CAUGHT_UP, 0.0), str(answer)


@pytest.mark.parametrize("scenario", ["stopped", "stopped before the start"])
def test_a_restart_does_not_change_since_when_a_group_is_behind(watched: Watched, scenario: str) -> None:
    for own in watched.of(scenario):
        last = [answer for answer in own if answer.now_ms < watched.restarted_ms][-1]
        later = [answer for answer in own if answer.now_ms > watched.restarted_ms]
        assert {(answer.since_ms, answer.method) for answer in later} == {(last.since_ms, last.method)}


def test_a_group_that_stops_while_warren_is_down_is_behind_since_then(watched: Watched) -> None:
    for own in watched.of("stopped while down"):
        down_s = (watched.snapshots[-1].manifest.now_ms - watched.restarted_ms) / 1000
        assert own[-1].seconds_behind >= down_s
        assert own[-1].method == TimeLagMethod.HEAD_HISTORY


def test_a_backfill_waits_since_it_was_written(watched: Watched) -> None:
    [own] = watched.of("backfill")
    assert own[-1].method == TimeLagMethod.HEAD_HISTORY
    assert max(answer.seconds_behind for answer in own) < HOUR_MS / 1000


def test_a_group_six_hours_behind_is_known_from_the_first_snapshot_on(watched: Watched) -> None:
    [own] = watched.of("6 h behind")
    assert all(answer.seconds_behind >= 6 * 3600 - 60 for answer in own)
    assert own[-1].method == TimeLagMethod.RECORD_TIME
    assert own[-1].bound_s <= MAX_SHARE * own[-1].seconds_behind


def test_a_topic_that_is_created_again_is_no_older_than_that(watched: Watched) -> None:
    for own in watched.of("created again"):
        [_, log] = own[0].group.logs
        new = [answer for answer in own if answer.now_ms > log.created_ms]
        assert new
        assert all(answer.since_ms >= log.created_ms - 1000 * SAMPLE_S - answer.bound_s * 1000 for answer in new)
