"""Which partition of the offsets topic a group lives in, and how long it has been silent there."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from warren.domain.offsets_outages import Outage, observed_until, offsets_partition_of

NOW = 1_000_000


def java_hash(name: str) -> int:
    units = name.encode("utf-16-be")
    hashed = 0
    for high, low in zip(units[::2], units[1::2], strict=True):
        hashed = (31 * hashed + (high << 8 | low)) & 0xFFFFFFFF
    return hashed


def test_the_home_of_a_group_is_where_kafka_puts_it() -> None:
    # As `"billing".hashCode()` and the others in Java; the last one is Integer.MIN_VALUE.
    known = {"": 0, "a": 97, "billing": -109829509, "polygenelubricants": -(2**31)}
    for name, hashed in known.items():
        assert java_hash(name) == hashed % 2**32
    homes = offsets_partition_of(pa.array(list(known)), 50)
    assert homes.tolist() == [(hashed & 0x7FFFFFFF) % 50 for hashed in known.values()]


@given(st.lists(st.text(), max_size=20), st.integers(1, 200))
def test_names_of_any_characters(names: list[str], partitions: int) -> None:
    expected = [(java_hash(name) & 0x7FFFFFFF) % partitions for name in names]
    assert offsets_partition_of(pa.array(names, pa.string()), partitions).tolist() == expected


@pytest.mark.parametrize(
    ("away", "last_ms", "until_ms"),
    [
        ((), NOW - 30_000, NOW),
        ((Outage(0, 1, NOW - 8_000, None),), NOW - 9_000, NOW - 8_000),
        ((Outage(0, 1, NOW - 8_000, None),), NOW - 9_000_000, NOW - 8_000),
        ((Outage(0, 1, NOW - 8_000, NOW - 3_000),), NOW - 9_000, NOW - 8_000),
        ((Outage(0, 1, NOW - 8_000, NOW - 3_000),), NOW - 6_000, NOW - 6_000),
        ((Outage(0, 1, NOW - 8_000, NOW - 3_000),), NOW - 2_000, NOW),
        ((Outage(0, 1, 0, None),), NOW - 9_000, NOW - 9_000),
    ],
    ids=["never away", "away", "long silent before", "back", "heard late", "heard since", "away from the first look"],
)
def test_the_time_away_and_on_the_way_back_is_not_silence(
    away: tuple[Outage, ...], last_ms: int, until_ms: int
) -> None:
    group = np.zeros(1, dtype=np.int32)
    assert observed_until(NOW, np.array([last_ms]), pa.array(["g"]), group, away).tolist() == [until_ms]


def test_only_groups_that_live_there_are_given_time() -> None:
    names = pa.array([f"group-{n}" for n in range(100)])
    homes, others = offsets_partition_of(names, 50), offsets_partition_of(names, 4)
    last_ms = np.full(200, NOW - 9_000)
    group = np.repeat(np.arange(100, dtype=np.int32), 2)
    away = (Outage(7, 50, NOW - 5_000, None), Outage(3, 4, NOW - 8_000, None))
    until = observed_until(NOW, last_ms, names, group, away)
    expected = np.where(others == 3, NOW - 8_000, np.where(homes == 7, NOW - 5_000, NOW))[group]
    assert until.tolist() == expected.tolist()
