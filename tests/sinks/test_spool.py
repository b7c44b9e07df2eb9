"""What waits to be sent: in order, whole, over restarts, and not without end."""

import gzip
from pathlib import Path

import pytest

from warren.sinks.spool import RequestSpool


def taken(spool: RequestSpool) -> list[tuple[int, bytes]]:
    found = []
    while request := spool.next():
        found.append((request.at_ms, gzip.decompress(request.path.read_bytes())))
        spool.done(request)
    return found


def test_requests_come_in_the_order_of_their_intervals(tmp_path: Path) -> None:
    spool = RequestSpool(tmp_path, 1_000_000)
    spool.put(20_000, [b"c", b"d"])
    spool.put(10_000, [b"a", b"b"])
    positions = []
    assert len(spool.sizes()) == 2
    again = RequestSpool(tmp_path, 1_000_000)
    while request := again.next():
        positions.append(request.position)
        again.done(request)
    assert positions == sorted(positions)
    assert len(set(positions)) == 4
    assert again.sizes() == {}


def test_half_an_interval_is_none(tmp_path: Path) -> None:
    def failing() -> object:
        yield b"a"
        raise OSError("no room")

    spool = RequestSpool(tmp_path, 1_000_000)
    with pytest.raises(OSError, match="no room"):
        spool.put(10_000, failing())  # type: ignore[arg-type]
    assert not spool.has(10_000)
    (tmp_path / "000000000020000.draft").mkdir()
    assert taken(RequestSpool(tmp_path, 1_000_000)) == []
    assert list(tmp_path.iterdir()) == []


def test_the_oldest_make_room(tmp_path: Path) -> None:
    spool = RequestSpool(tmp_path, 250)
    body = bytes(range(100))
    dropped = [spool.put(number * 1000, [body]) for number in range(1, 6)]
    assert sum(dropped) == 5 - len(spool.sizes())
    assert [at for at, _ in taken(spool)][-1] == 5000


def test_one_that_is_too_large_by_itself_is_kept_all_the_same(tmp_path: Path) -> None:
    spool = RequestSpool(tmp_path, 1)
    spool.put(1000, [b"a" * 1000])
    assert [at for at, _ in taken(spool)] == [1000]


def test_what_was_taken_in_part_goes_on_with_the_rest(tmp_path: Path) -> None:
    spool = RequestSpool(tmp_path, 1_000_000)
    spool.put(1000, [b"ab", b"c"])
    request = spool.next()
    assert request is not None
    spool.replace(request, b"b")
    assert taken(RequestSpool(tmp_path, 1_000_000)) == [(1000, b"b"), (1000, b"c")]


def test_a_cursor_stays_with_its_interval_until_the_next(tmp_path: Path) -> None:
    spool = RequestSpool(tmp_path, 1_000_000)
    assert spool.cursor() is None
    spool.put(1000, [b"a"], b"first")
    spool.put(2000, [b"b"])
    assert taken(spool) == [(1000, b"a"), (2000, b"b")]
    assert spool.sizes() == {}
    assert RequestSpool(tmp_path, 1_000_000).cursor() == b"first"
    spool.put(3000, [b"c"], b"second")
    assert spool.cursor() == b"second"
    assert taken(spool) == [(3000, b"c")]
    assert [path.name for path in tmp_path.glob("0*")] == ["000000000003000"]


def test_a_cursor_of_an_incomplete_interval_is_not_stored(tmp_path: Path) -> None:
    def failing() -> object:
        yield b"a"
        raise OSError("no room")

    spool = RequestSpool(tmp_path, 1_000_000)
    spool.put(1000, [b"a"], b"first")
    with pytest.raises(OSError, match="no room"):
        spool.put(2000, failing(), b"second")  # type: ignore[arg-type]
    assert spool.cursor() == b"first"


def test_positions_rise_though_the_clock_is_set_back(tmp_path: Path) -> None:
    spool = RequestSpool(tmp_path, 1000)
    spool.put(5000, [b"first"])
    first = spool.next()
    assert first is not None
    spool.done(first)
    spool = RequestSpool(tmp_path, 1000)
    spool.put(3000, [b"second"])
    second = spool.next()
    assert second is not None
    assert second.position > first.position
    assert len(spool.sizes()) == 1
