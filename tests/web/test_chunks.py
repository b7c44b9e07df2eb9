"""Chunks of a snapshot: within a bound on their bytes, and made again only while they are requested."""

import pytest

from warren.web import chunks
from warren.web.chunks import Chunks


def test_the_chunk_that_was_not_used_for_longest_is_dropped_first() -> None:
    found: Chunks[int, str] = Chunks(10)
    for number in range(3):
        found.put(number, str(number), 4)
    assert found.is_full
    assert found.get(0) == "0"
    found.drop_oldest()
    assert [number in found for number in range(3)] == [True, False, True]
    assert not found.is_full


def test_a_chunk_that_is_put_again_counts_once() -> None:
    found: Chunks[int, str] = Chunks(10)
    for _ in range(5):
        found.put(1, "one", 4)
    assert not found.is_full


def test_a_single_chunk_may_exceed_the_bound() -> None:
    found: Chunks[int, str] = Chunks(10)
    found.put(1, "one", 40)
    found.drop_oldest()
    assert found.get(1) == "one"


def test_only_chunks_that_were_requested_of_late_are_made_for_the_next_snapshot(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now_s = 1000.0
    monkeypatch.setattr("warren.web.chunks.time.monotonic", lambda: now_s)
    first: Chunks[int, str] = Chunks(100)
    for number in range(3):
        first.put(number, str(number), 1)
    now_s += chunks.RECENT_S - 1
    assert first.get(1) == "1"
    second: Chunks[int, str] = Chunks(100)
    for number, used_s in first.recently_used().items():
        second.put(number, str(number), 1, used_s)
    assert list(first.recently_used()) == [1, 0, 2]
    now_s += 2
    # That it was made again is not a request.
    assert list(second.recently_used()) == [1]
