"""A sink at work: each interval is kept once and delivered in order, whatever becomes of the server."""

import gzip
import logging
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.kit.servers import Town
from tests.kit.sink_workers import deliver_next, sample
from tests.kit.warrens import wait_for
from warren.config.sinks import Sink
from warren.delivery.backoff import Backoff
from warren.delivery.sink_status import SinkStatus, read_status
from warren.errors import BusyError, RefusedError
from warren.sinks.points import Points
from warren.sinks.worker import MIN_MAX_AGE_MS, request_worker

SECOND = 1000
MEASUREMENTS = ["burrow_topic", "burrow_partition", "burrow_group", "warren_cluster"]
"""A request each, in this order."""


class Listed:
    """A writer whose server is a list: it takes all, a part, nothing, or refuses."""

    def __init__(self) -> None:
        self.taken: list[str] = []
        self.positions: list[int] = []
        self.mood = "well"

    def encode(self, points: Points, tags: Mapping[str, str], at_ms: int) -> Iterator[bytes]:
        assert tags["usage"] == "test"
        assert "host" in tags
        yield f"{at_ms} {points.name} {len(points)}\n".encode()

    def deliver(self, request: bytes, position: int) -> bytes | None:
        self.positions.append(position)
        if self.mood == "away":
            raise ConnectionError("nobody there")
        if self.mood == "refuses":
            raise RefusedError("not this")
        text = gzip.decompress(request).decode()
        if self.mood == "half" and len(text) > 5:
            self.taken.append(text[:5])
            return text[5:].encode()
        self.taken.append(text)
        return None

    def close(self) -> None:
        pass


class Site:
    """A town's snapshot, and a sink of it."""

    def __init__(self, root: Path) -> None:
        self.town = Town(root).grow()
        self.town.publish()
        self.now_ms = self.town.now_ms
        self.writer = Listed()
        self.begin()

    def begin(self, spool: int = 10) -> None:
        sink = Sink("s/1", tags={"usage": "test"}, spool=spool)
        self.worker = request_worker(sink, self.writer, self.town.data, lambda: self.now_ms)

    def drain(self) -> None:
        while deliver_next(self.worker):
            pass

    @property
    def status(self) -> SinkStatus:
        found = read_status(self.town.data, "s/1")
        assert found is not None
        return found


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def test_an_interval_is_kept_once_and_delivered_once(site: Site) -> None:
    assert read_status(site.town.data, "s/1") is None
    sample(site.worker, site.now_ms)
    sample(site.worker, site.now_ms)
    assert site.status.waiting == 1
    site.drain()
    assert [text.split()[1] for text in site.writer.taken] == MEASUREMENTS
    assert {text.split()[0] for text in site.writer.taken} == {str(site.now_ms)}, "all points have one time"
    assert (site.status.waiting, site.status.delivered_ms, site.status.trouble) == (0, site.now_ms, "")
    assert site.writer.positions == sorted(set(site.writer.positions))


def test_a_snapshot_of_long_ago_says_nothing_about_now(site: Site) -> None:
    sample(site.worker, site.now_ms + MIN_MAX_AGE_MS + 1)
    assert not deliver_next(site.worker)


def test_what_was_kept_is_delivered_after_a_restart(site: Site) -> None:
    sample(site.worker, site.now_ms)
    sample(site.worker, site.now_ms + SECOND)
    assert deliver_next(site.worker)
    site.begin()
    site.drain()
    moments = [str(at_ms) for at_ms in (site.now_ms, site.now_ms + SECOND) for _ in MEASUREMENTS]
    assert [text.split()[0] for text in site.writer.taken] == moments


def test_a_part_that_was_taken_is_not_sent_again(site: Site) -> None:
    sample(site.worker, site.now_ms)
    site.writer.mood = "half"
    with pytest.raises(BusyError):
        deliver_next(site.worker)
    site.writer.mood = "well"
    site.drain()
    assert "".join(site.writer.taken[:2]).startswith(f"{site.now_ms} burrow_topic")
    assert len(site.writer.taken) == len(MEASUREMENTS) + 1


def test_what_is_refused_for_good_is_given_up_and_told(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    sample(site.worker, site.now_ms)
    site.writer.mood = "refuses"
    assert deliver_next(site.worker)
    site.writer.mood = "well"
    site.drain()
    assert len(site.writer.taken) == len(MEASUREMENTS) - 1
    assert site.status.refused == 1
    assert "dropped: not this" in caplog.text


def test_without_room_the_oldest_intervals_go(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.begin(spool=1)
    monkeypatch.setattr(site.worker.deliveries[0].spool, "_max_bytes", 300)
    for second in range(20):
        sample(site.worker, site.now_ms + second * SECOND)
    assert site.status.dropped > 0
    assert site.status.waiting + site.status.dropped == 20
    site.drain()
    assert site.writer.taken[-1].startswith(str(site.now_ms + 19 * SECOND))


def test_a_server_that_is_away_is_asked_again_and_gets_everything(
    site: Site, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    monkeypatch.setattr("warren.sinks.delivery.BACKOFF", Backoff(0.01, 0.02))
    site.writer.mood = "away"
    sample(site.worker, site.now_ms)
    stop = threading.Event()
    delivering = threading.Thread(target=site.worker.deliveries[0].run, args=(stop,))
    delivering.start()
    wait_for(lambda: len(site.writer.positions) > 3, "it is tried again", 20)
    assert site.status.trouble == "nobody there"
    site.writer.mood = "well"
    wait_for(lambda: len(site.writer.taken) == len(MEASUREMENTS), "all is delivered", 20)
    stop.set()
    delivering.join(20)
    assert "delivering again" in caplog.text


def test_a_full_disk_does_not_end_the_delivery(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    sample(site.worker, site.now_ms)

    def no_room(*_: object) -> None:
        raise OSError("no room on the disk")

    monkeypatch.setattr("warren.sinks.delivery.write_status", no_room)
    site.drain()
    assert len(site.writer.taken) == len(MEASUREMENTS)
