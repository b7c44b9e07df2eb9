"""Groups and their buckets: the same for every reader, however the column is laid out, and evenly spread."""

import numpy as np
import pyarrow as pa
import pytest

from warren.domain.buckets import bucket_of

NAMES = ["", "a", "b", "orders", "orders-2", "ä", "日本語", "x" * 300, "a\x00", "console-consumer-12345"]


def test_a_group_lives_where_it_always_did() -> None:
    # A change here loses the state of every group there is.
    assert bucket_of("local", pa.array(NAMES), 8).tolist() == [0, 6, 3, 6, 2, 5, 3, 6, 3, 4]


@pytest.mark.parametrize("name", NAMES)
def test_alone_or_among_others(name: str) -> None:
    among = dict(zip(NAMES, bucket_of("local", pa.array(NAMES), 8).tolist(), strict=True))
    assert bucket_of("local", pa.array([name]), 8).tolist() == [among[name]]


def test_a_slice_of_a_column() -> None:
    column = pa.array(["left out", *NAMES, "left out too"])
    sliced = column.slice(1, len(NAMES))
    assert bucket_of("local", sliced, 8).tolist() == bucket_of("local", pa.array(NAMES), 8).tolist()


def test_no_groups() -> None:
    assert bucket_of("local", pa.array([], pa.string()), 8).tolist() == []


@pytest.mark.parametrize("buckets", [1, 3, 8, 200])
def test_groups_are_spread_evenly(buckets: int) -> None:
    groups = pa.array([f"group-{n}" for n in range(20_000)])
    sizes = np.bincount(bucket_of("local", groups, buckets), minlength=buckets)
    assert sizes.size == buckets
    assert sizes.max() < 2 * 20_000 / buckets


def test_clusters_spread_the_same_names_differently() -> None:
    groups = pa.array([f"group-{n}" for n in range(1_000)])
    assert (bucket_of("one", groups, 8) != bucket_of("two", groups, 8)).any()
