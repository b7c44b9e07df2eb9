"""The last hour of every group: read once, then only what is new, whatever becomes of groups and files meanwhile."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from warren.domain.status import Status
from warren.domain.windows import UNKNOWN
from warren.history.files import CLUSTER_HISTORY, HISTORY, FileSpan, HistoryTable, file_name, history_folder
from warren.history.recent import MAX_MOMENTS, SPARK_POINTS, Recent, RecentReader, nothing_recent
from warren.history.write import HistoryWriter

SECOND, MINUTE, HOUR = 1_000, 60_000, 3_600_000
START = 1_794_700_800_000
"""Midnight."""
OK, WARN, ERR = int(Status.OK), int(Status.WARN), int(Status.ERR)


class Lake:
    """A lake with a point whenever a test says so, its times in seconds since midnight, and who reads it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.writer = HistoryWriter(root, 30, 1.0)
        self.reader = RecentReader(root)

    def path(self, table: HistoryTable, second: int) -> Path:
        at_ms = START + second * SECOND
        return history_folder(self.root, table) / file_name(FileSpan.MOMENT, 0, 1, at_ms, at_ms)

    def groups(self, second: int, lags: Mapping[str, int], status: int = OK) -> None:
        """A point of groups, each named as cluster/group, whose moment is still being written."""
        row = {"time_ms": START + second * SECOND, "status": status, "worst_status": status, "since_ms": 0, "maxlag": 0}
        names = [name.split("/") for name in sorted(lags)]
        rows = [{**row, "cluster": c, "group": g, "totallag": lags[f"{c}/{g}"]} for c, g in names]
        pq.write_table(pa.Table.from_pylist(rows, schema=HISTORY), self.path(HistoryTable.GROUPS, second))

    def point(self, second: int, lags: Mapping[str, int], status: int = OK) -> None:
        """A whole moment."""
        self.groups(second, lags, status)
        row = {"time_ms": START + second * SECOND, "cluster": "one", "worst_status": OK, "is_known": True}
        counts = dict.fromkeys(("totallag", "groups_ok", "groups_warn", "groups_err"), 0)
        rows = pa.Table.from_pylist([{**row, **counts}], schema=CLUSTER_HISTORY)
        pq.write_table(rows, self.path(HistoryTable.CLUSTERS, second))

    def advance(self, second: int, *names: str) -> Recent:
        """What is held of some groups at a time."""
        return self.reader.advance(keys(*names), START + second * SECOND)


def keys(*names: str) -> pa.StringArray:
    return pa.array([name.replace("/", "\0") for name in names], pa.string())


def seconds(recent: Recent) -> list[int]:
    """When its moments are, since midnight."""
    return [(at_ms - START) // SECOND for at_ms in recent.times_ms.tolist()]


def lags(recent: Recent) -> list[list[int]]:
    """Of each group, oldest first."""
    return [column.tolist() for column in recent.lag.T]


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path)


def test_before_there_is_a_lake(tmp_path: Path) -> None:
    recent = RecentReader(tmp_path).advance(keys("one/a"), START)
    assert (recent.times_ms.size, recent.lag.shape, recent.status.shape) == (0, (0, 1), (0, 1))


def test_the_first_read_takes_an_hour(lake: Lake) -> None:
    for second in (0, 1, 1800, 3601):
        lake.point(second, {"one/a": second})
    recent = lake.advance(3601, "one/a")
    assert (seconds(recent), lags(recent)) == ([1, 1800, 3601], [[1, 1800, 3601]])
    assert recent.status.tolist() == [[OK]] * 3


def test_later_reads_open_only_what_is_new_and_forget_what_is_older_than_an_hour(lake: Lake) -> None:
    for second in (0, 10):
        lake.point(second, {"one/a": second}, WARN)
    assert seconds(lake.advance(10, "one/a")) == [0, 10]
    for table in HistoryTable:
        for second in (0, 10):
            lake.path(table, second).write_bytes(b"whoever reads this again fails")
    lake.point(3605, {"one/a": 20})
    recent = lake.advance(3605, "one/a")
    assert (seconds(recent), lags(recent), recent.status.tolist()) == ([10, 3605], [[10, 20]], [[WARN], [OK]])
    assert lake.advance(3606, "one/a") is recent, "nothing new"


def test_groups_come_and_go_and_change_places(lake: Lake) -> None:
    lake.point(0, {"one/a": 1, "one/b": 2, "one/c": 3}, ERR)
    assert lags(lake.advance(0, "one/a", "one/b", "one/c")) == [[1], [2], [3]]
    assert lags(lake.advance(1, "one/c", "one/new", "one/a")) == [[3], [UNKNOWN], [1]]
    lake.point(10, {"one/a": 11, "one/b": 12, "one/new": 14}, OK)
    recent = lake.advance(10, "one/b", "one/new", "one/a")
    assert lags(recent) == [[UNKNOWN, 12], [UNKNOWN, 14], [1, 11]], "who was gone has no past"
    assert recent.status.tolist() == [[0, 0, ERR], [OK, OK, OK]]
    assert lags(lake.advance(10)) == []


def test_one_name_in_two_clusters_is_two_groups(lake: Lake) -> None:
    lake.point(0, {"one/a": 1, "two/a": 2, "one/onea": 3})
    assert lags(lake.advance(0, "two/a", "one/a")) == [[2], [1]]
    lake.point(10, {"one/a": 11, "two/a": 12})
    assert lags(lake.advance(10, "one/a", "two/a")) == [[1, 11], [2, 12]]


def test_a_moment_that_is_still_being_written_is_taken_when_it_is_whole(lake: Lake) -> None:
    lake.point(0, {"one/a": 1})
    lake.groups(10, {"one/a": 2})
    assert seconds(lake.advance(10, "one/a")) == [0]
    lake.point(10, {"one/a": 2, "one/b": 3})
    recent = lake.advance(11, "one/a", "one/b")
    assert (seconds(recent), lags(recent)) == ([0, 10], [[1, 2], [UNKNOWN, 3]])


def test_files_that_are_merged_in_between_hold_nothing_new_but_what_is(lake: Lake) -> None:
    for second in (0, 300):
        lake.point(second, {"one/a": second})
    lake.advance(300, "one/a")
    for second in (590, 600):
        lake.point(second, {"one/a": second})
    lake.writer.tidy(START + 10 * MINUTE)
    assert not lake.path(HistoryTable.GROUPS, 0).exists()
    recent = lake.advance(600, "one/a")
    assert (seconds(recent), lags(recent)) == ([0, 300, 590, 600], [[0, 300, 590, 600]])


def test_a_file_and_what_it_was_made_of_are_one_moment(lake: Lake) -> None:
    lake.point(0, {"one/a": 5})
    before = {table: lake.path(table, 0).read_bytes() for table in HistoryTable}
    lake.writer.tidy(START + 10 * MINUTE)
    for table, data in before.items():
        lake.path(table, 0).write_bytes(data)
    recent = lake.advance(600, "one/a")
    assert (seconds(recent), lags(recent)) == ([0], [[5]])


def test_however_many_moments_there_are_some_of_them_will_do(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("warren.history.recent.MAX_MOMENTS", 4)
    for second in range(20):
        lake.point(second, {"one/a": second})
    first = seconds(lake.advance(19, "one/a"))
    assert (len(first), first[0], first[-1]) == (4, 0, 19)
    for second in range(20, 40):
        lake.point(second, {"one/a": second})
        recent = lake.advance(second, "one/a")
        found = seconds(recent)
        assert (found[0], found[-1], len(found) <= 8, found == sorted(set(found))) == (0, second, True, True)
        assert lags(recent) == [found], "each moment has its own numbers"
    assert MAX_MOMENTS >= SPARK_POINTS


@pytest.mark.parametrize("table", list(HistoryTable))
def test_a_lake_that_cannot_be_read_keeps_what_is_held(lake: Lake, table: HistoryTable) -> None:
    lake.point(0, {"one/a": 1, "one/b": 2})
    lake.advance(0, "one/a", "one/b")
    lake.point(10, {"one/a": 3, "one/b": 4})
    good = lake.path(table, 10).read_bytes()
    lake.path(table, 10).write_bytes(good[: len(good) // 2])
    recent = lake.advance(10, "one/b", "one/new")
    assert (seconds(recent), lags(recent)) == ([0], [[2], [UNKNOWN]])
    lake.path(table, 10).write_bytes(good)
    assert lags(lake.advance(11, "one/b", "one/new")) == [[2, 4], [UNKNOWN, UNKNOWN]]


def made(times_s: Sequence[int], *lag: Sequence[int]) -> Recent:
    """A past by hand: its moments, and the lag of each group at them."""
    names = keys(*(f"one/{number}" for number in range(len(lag))))
    held = np.array(lag, dtype=np.int64).reshape(len(lag), len(times_s)).T
    return Recent(names, START + np.array(times_s, np.int64) * SECOND, held, np.full(held.shape, OK, np.int8))


@pytest.mark.parametrize(
    ("times_s", "lag", "now", "growth"),
    [
        ([], [], 100, None),
        ([300], [50], 100, None),
        ([0], [50], 100, 50 / 300),
        ([0], [100], 100, 0.0),
        ([0], [160], 100, -0.2),
        ([-1, 0, 290], [0, 70, 0], 100, 0.1),
        ([-1], [0], 100, None),
        ([0, 290], [UNKNOWN, 80], 100, 2.0),
        ([0, 290], [70, UNKNOWN], 100, 0.1),
        ([0, 290], [UNKNOWN, UNKNOWN], 100, None),
        ([0], [50], UNKNOWN, None),
        ([301], [50], 100, None),
    ],
    ids=[
        "no past",
        "no time has passed",
        "since five minutes ago",
        "steady",
        "falling",
        "from the oldest within reach",
        "too old",
        "one that appeared later",
        "a hole in between",
        "never there",
        "not there now",
        "a past that is to come",
    ],
)
def test_growth_in_messages_a_second(
    times_s: Sequence[int], lag: Sequence[int], now: int, growth: float | None
) -> None:
    found = made(times_s, lag).growth(np.array([now]), START + 300 * SECOND)
    assert found.tolist() == pytest.approx([np.nan if growth is None else growth], nan_ok=True)


def test_each_group_grows_by_itself() -> None:
    found = made([0, 200], [0, 0], [UNKNOWN, 100], [300, 0], [UNKNOWN, UNKNOWN]).growth(
        np.full(4, 200), START + 300 * SECOND
    )
    assert found.tolist() == pytest.approx([200 / 300, 1.0, -100 / 300, np.nan], nan_ok=True)


@pytest.mark.parametrize(
    ("times_s", "lag", "now", "spark"),
    [
        ([0], [0], 0, "0" * 24),
        ([0], [35], 35, "Z" * 24),
        ([0], [0], 7, "0" * 23 + "Z"),
        ([0], [70], 0, "Z" * 23 + "0"),
        ([0], [UNKNOWN], 5, "-" * 23 + "Z"),
        ([0], [5], UNKNOWN, "Z" * 23 + "-"),
        ([0], [UNKNOWN], UNKNOWN, "-" * 24),
        ([0, 12], [0, 100], 50, "0" * 12 + "Z" * 11 + "H"),
        ([0, 12, 20], [UNKNOWN, 10, 20], 35, "-" * 12 + "A" * 8 + "K" * 3 + "Z"),
        (range(24), range(12, 36), 35, "CDEFGHIJKLMNOPQRSTUVWXYZ"),
        ([0, 22], [10**15, 1], 10**15 // 2, "Z" * 22 + "0H"),
    ],
    ids=[
        "no lag at all",
        "steady",
        "only now",
        "caught up now",
        "new",
        "gone now",
        "never there",
        "a step",
        "from when it was there",
        "a level a point",
        "much",
    ],
)
def test_a_sparkline_has_levels_up_to_its_own_highest(
    times_s: Sequence[int], lag: Sequence[int], now: int, spark: str
) -> None:
    found = made(times_s, lag).sparklines(np.array([now]), START + 23 * SECOND)
    assert found.to_pylist() == [spark]
    assert len(spark) == SPARK_POINTS


def test_sparklines_of_several_groups_and_of_none() -> None:
    now = np.array([1, 0, 4])
    assert made([0], [1], [0], [2]).sparklines(now, START + SECOND).to_pylist() == ["Z" * 24, "0" * 24, "H" * 23 + "Z"]
    assert nothing_recent(keys("one/a", "one/b")).sparklines(now[:2], START).to_pylist() == ["", ""]
    none = np.zeros(0, np.int64)
    assert made([0]).sparklines(none, START).to_pylist() == []
    assert nothing_recent(keys()).sparklines(none, START).to_pylist() == []


def test_a_past_that_begins_after_now_is_no_past() -> None:
    assert made([10], [7]).sparklines(np.array([3]), START).to_pylist() == ["Z" * 23 + "F"]


def test_the_status_before_the_present_one() -> None:
    held = made([0, 10, 20], *[[0, 0, 0]] * 3)
    status = np.array([[OK, 0, ERR], [WARN, OK, OK], [ERR, ERR, OK]], np.int8)
    recent = Recent(held.keys, held.times_ms, held.lag, status)

    def before(*since_s: int) -> list[int]:
        return list(recent.status_before(START + np.array(since_s) * SECOND))

    assert before(20, 20, 20) == [WARN, OK, OK], "the moment itself has the new one already"
    assert before(15, 15, 5) == [WARN, OK, ERR]
    assert before(10, 10, 0) == [OK, 0, 0], "not there then; and nothing is known so far back"
    assert before(-1, 99, 99) == [0, ERR, OK]
    assert nothing_recent(keys("one/a")).status_before(np.array([START])).tolist() == [0]
