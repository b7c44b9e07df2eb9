"""What is known of the commits in each offsets partition: when they were made, and how long a group has been silent."""

from typing import Any

import numpy as np
import pytest

from warren.domain.offsets_logs import (
    FIRST_ZOOKEEPER_LOG,
    NO_LOG,
    OffsetsLog,
    OffsetsLogs,
    offsets_log_id,
    zookeeper_log_id,
)
from warren.domain.windows import UNKNOWN

NOW = 1_000_000


@pytest.mark.parametrize(
    ("name", "log", "last_ms", "until_ms"),
    [
        ("never away", {}, NOW - 30_000, NOW),
        ("read up to a while ago", {"seen_until_ms": NOW - 9_000}, NOW - 30_000, NOW - 9_000),
        ("never seen whole", {"seen_until_ms": 0}, NOW - 30_000, 0),
        ("away", {"away_from_ms": NOW - 8_000}, NOW - 9_000, NOW - 8_000),
        ("silent long before", {"away_from_ms": NOW - 8_000}, NOW - 900_000, NOW - 8_000),
        ("back", {"away_from_ms": NOW - 8_000, "away_to_ms": NOW - 3_000}, NOW - 9_000, NOW - 8_000),
        ("seen late", {"away_from_ms": NOW - 8_000, "away_to_ms": NOW - 3_000}, NOW - 6_000, NOW - 6_000),
        ("seen since", {"away_from_ms": NOW - 8_000, "away_to_ms": NOW - 3_000}, NOW - 2_000, NOW),
        ("away from the first sample", {"away_from_ms": 0}, NOW - 9_000, NOW - 9_000),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_could_not_be_read_is_not_silence(name: str, log: dict[str, Any], last_ms: int, until_ms: int) -> None:
    settings: dict[str, Any] = {"seen_until_ms": NOW, **log}
    logs = OffsetsLogs([OffsetsLog(3, 0, NOW, **settings), OffsetsLog(1, 0, NOW, NOW - 1)])
    ids = np.array([3, 1, NO_LOG, 2], np.int32)
    until = logs.observed_until(ids, np.full(4, last_ms), NOW)
    assert until.tolist() == [until_ms, NOW - 1, NOW, NOW], name


def test_only_the_groups_of_a_partition_that_cannot_be_read_are_unknown() -> None:
    logs = OffsetsLogs([OffsetsLog(7, 0, NOW, NOW, unknown_since_ms=5), OffsetsLog(2, 0, NOW, NOW)])
    ids = np.array([2, 7, NO_LOG, 9, 7], np.int32)
    assert logs.unknown_since(ids).tolist() == [UNKNOWN, 5, UNKNOWN, UNKNOWN, 5]
    assert OffsetsLogs([]).unknown_since(ids).tolist() == [UNKNOWN] * 5


def test_the_times_of_commits_are_corrected_by_the_clock_of_their_partition() -> None:
    second = offsets_log_id(1, 3)
    logs = OffsetsLogs([OffsetsLog(0, 100, NOW, NOW, 50, 20), OffsetsLog(second, 100, NOW, NOW, skew_ms=-7)])
    ids = np.array([0, second, 5, 0], np.int32)
    times = np.array([9_050, 9_050, 9_050, NOW + 900_000])
    moved, error = logs.commit_times(ids, times)
    assert moved.tolist() == [9_000, 9_057, 9_050, NOW + 500]
    assert (error[:3].tolist(), error[3] > NOW) == ([20, 0, 0], True)


def test_the_log_of_a_section_in_zookeeper_does_not_depend_on_others() -> None:
    ids = [zookeeper_log_id(name) for name in ("old", "storm", "북쪽", "")]
    assert len(set(ids)) == len(ids)
    assert all(FIRST_ZOOKEEPER_LOG <= number < 2**31 for number in ids)
    assert zookeeper_log_id("old") == ids[0]
    assert offsets_log_id(1000, 2**20 - 1) < FIRST_ZOOKEEPER_LOG
