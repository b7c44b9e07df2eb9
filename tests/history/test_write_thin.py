"""Thinning: which points of a group stay."""

from collections.abc import Sequence

import pyarrow as pa
import pytest

from warren.history.write import thinned


def points(rows: Sequence[tuple[str, int, int]]) -> pa.Table:
    """Points of groups at times with statuses; the lag of each is its index."""
    groups, times_ms, statuses = zip(*rows, strict=True)
    columns = {"cluster": ["c"] * len(rows), "group": groups, "time_ms": times_ms, "worst_status": statuses}
    return pa.table({**columns, "totallag": range(len(rows))})


@pytest.mark.parametrize(
    ("step_ms", "rows", "kept"),
    [
        (1, [("a", 1, 1), ("a", 1, 1), ("a", 2, 1), ("b", 2, 1)], [0, 2, 3]),
        (10, [("a", 1, 1), ("a", 2, 1), ("a", 11, 1), ("b", 12, 1)], [0, 2, 3]),
        (10, [("a", 1, 1), ("a", 2, 2), ("a", 3, 2), ("a", 4, 1)], [0, 1, 3]),
        (10, [("a", 1, 1)], [0]),
    ],
)
def test_the_first_point_of_each_step_and_every_change_of_status_stay(
    step_ms: int, rows: Sequence[tuple[str, int, int]], kept: list[int]
) -> None:
    assert thinned(points(rows), step_ms)["totallag"].to_pylist() == kept
