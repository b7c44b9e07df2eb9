"""Every snapshot is followed, and what it changes is kept once, wherever a crash cuts it off."""

import gzip
import json
import logging
import re
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.kit.sink_workers import deliver_next, poll_changes
from tests.kit.verdicts import SECOND, Verdicts
from tests.kit.warrens import wait_for
from tests.sinks.test_verdict_changes import OK, STALL, WARN
from warren.config.sinks import KafkaSink
from warren.delivery.backoff import Backoff
from warren.delivery.sink_status import read_status
from warren.sinks.spool import RequestSpool
from warren.sinks.worker import request_worker


class Listed:
    """A topic that is a list: it takes what it has not taken yet, or nobody is there."""

    def __init__(self) -> None:
        self.records: list[dict[str, Any]] = []
        self.positions: list[int] = []
        self.is_away = False

    def deliver(self, request: bytes, position: int) -> None:
        if self.is_away:
            raise ConnectionError("nobody there")
        if position > max(self.positions, default=-1):
            lines = gzip.decompress(request).splitlines()
            self.records += [json.loads(line.partition(b"\t")[2]) for line in lines]
        self.positions.append(position)

    def close(self) -> None:
        pass


class Site:
    """Snapshots, and a sink that tells what they change."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.verdicts = Verdicts(root)
        self.topic = Listed()
        self.begin()

    def begin(self, **keys: Any) -> None:
        """A sink's process starts."""
        sink = KafkaSink("s", changes_topic="t", **keys)
        self.worker = request_worker(sink, None, self.root, lambda: self.verdicts.now_ms, changes=self.topic)

    def judge(self, **groups: Any) -> None:
        self.verdicts.publish({"one": groups})

    def told(self) -> list[str]:
        """What has come to the topic since the last time, of groups."""
        poll_changes(self.worker)
        while deliver_next(self.worker):
            pass
        found = [f"{one['group']} {one['from']}>{one['to']}" for one in self.topic.records if "group" in one]
        self.topic.records.clear()
        return found

    def stored(self) -> dict[str, bytes]:
        """The files of the intervals in the spool, those that a crash has left as drafts apart."""
        return {str(path): path.read_bytes() for path in self.spool.glob("*/*") if path.parent.name.isdigit()}

    @property
    def spool(self) -> Path:
        return self.root / "sinks" / "s" / "changes"


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def test_nothing_that_snapshots_say_is_passed_over(site: Site) -> None:
    site.judge(a=OK, b=OK)
    assert site.told() == ["a >OK", "b >OK"]
    for a in (WARN, STALL, OK):
        site.judge(a=a, b=OK)
    assert site.told() == ["a OK>WARN", "a WARN>ERR", "a ERR>OK"]
    assert site.told() == []


def test_the_first_time_only_the_newest_is_told(site: Site) -> None:
    for a in (WARN, STALL, OK):
        site.judge(a=a)
    assert site.told() == ["a >OK"]


def test_a_new_process_goes_on_where_the_last_one_ended(site: Site) -> None:
    site.judge(a=OK)
    assert site.told() == ["a >OK"]
    site.begin()
    assert site.told() == []
    site.judge(a=WARN)
    site.judge(a=OK)
    site.judge(a=STALL)
    site.begin()
    assert site.told() == ["a OK>WARN", "a WARN>OK", "a OK>ERR"]
    assert len(list(site.spool.glob("0*"))) == 1, "what was told last is all that is left"


def test_what_was_kept_is_told_after_a_crash_and_not_kept_again(site: Site) -> None:
    site.judge(a=OK)
    site.told()
    site.judge(a=WARN)
    poll_changes(site.worker)
    site.begin()
    assert site.told() == ["a OK>WARN"]


def test_what_is_delivered_again_after_a_crash_is_there_once(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.judge(a=OK)
    with monkeypatch.context() as crash:
        crash.setattr(RequestSpool, "done", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            site.told()
    site.begin()
    assert site.told() == ["a >OK"]
    assert len(site.topic.positions) == 2


@pytest.mark.parametrize("step", ["warren.sinks.spool.sync", "pathlib.Path.rename"])
def test_what_a_crash_or_a_full_disk_kept_from_being_put_down_is_found_again(
    site: Site, monkeypatch: pytest.MonkeyPatch, step: str, caplog: pytest.LogCaptureFixture
) -> None:
    def no_room(*_: object) -> None:
        raise OSError("no room on the disk")

    site.judge(a=OK)
    site.told()
    stored = site.stored()
    site.judge(a=WARN)
    with monkeypatch.context() as full:
        full.setattr(step, no_room)
        full.setattr("shutil.rmtree", lambda *_, **__: None)
        assert not poll_changes(site.worker)
    [record] = caplog.records
    assert record.getMessage() == "sink s: cannot take up the newest snapshot, trying again: no room on the disk"
    assert site.stored() == stored
    site.begin()
    site.judge(a=STALL)
    assert site.told() == ["a OK>WARN", "a WARN>ERR"]


def test_a_full_disk_is_tried_again_by_the_same_process(
    site: Site, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    site.judge(a=OK)
    site.told()
    stored = site.stored()
    site.judge(a=WARN)
    with monkeypatch.context() as full:
        full.setattr("warren.sinks.spool.write_new", lambda *_: 1 / 0)
        assert not poll_changes(site.worker)
    [record] = caplog.records
    assert record.exc_info is not None
    assert record.exc_info[0] is ZeroDivisionError
    assert site.stored() == stored
    assert site.told() == ["a OK>WARN"]


def test_of_snapshots_that_are_gone_the_next_one_tells(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    site.judge(a=OK, b=OK)
    site.told()
    site.judge(a=WARN, b=WARN)
    site.judge(a=STALL, b=OK)
    site.verdicts.forget(1, 2)
    assert site.told() == ["a OK>ERR"]
    assert not caplog.records
    site.judge(a=OK, b=OK)
    [held] = site.verdicts.store.manifest(4).buckets
    site.verdicts.store.path(held.groups).unlink()
    assert site.told() == []
    assert "snapshot 4 is skipped" in caplog.text
    site.judge(a=WARN, b=OK)
    assert site.told() == ["a ERR>WARN"]


def test_when_nobody_knows_what_was_told_all_is_told_anew(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    site.judge(a=OK)
    site.told()
    [note] = site.spool.glob("*/note")
    note.write_bytes(note.read_bytes()[:100])
    site.begin()
    site.judge(a=WARN)
    assert site.told() == ["a >WARN"]
    assert "sending all again" in caplog.text


def test_nothing_is_lost_when_the_clock_is_set_back(site: Site) -> None:
    site.judge(a=OK)
    site.told()
    site.verdicts.now_ms -= 3_600 * SECOND
    for a in (WARN, OK):
        site.judge(a=a)
        site.begin()
        assert len(site.told()) == 1
    assert site.topic.positions == sorted(set(site.topic.positions))


def test_data_that_is_begun_anew_is_followed(site: Site) -> None:
    for a in (OK, WARN, OK):
        site.judge(a=a)
        site.told()
    site.verdicts.forget(1, 2, 3)
    site.verdicts.sequence = 0
    site.judge(a=STALL)
    assert site.told() == ["a OK>ERR"]


def test_without_room_the_oldest_go_and_what_was_told_stays_known(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    site.judge(a=OK)
    site.told()
    site.topic.is_away = True
    site.worker.deliveries[0].spool._max_bytes = 700
    for a in (WARN, OK, WARN, OK, STALL):
        site.judge(a=a)
    poll_changes(site.worker)
    status = read_status(site.root, "s")
    assert status is not None
    assert status.dropped > 0
    assert status.waiting + status.dropped == 5
    assert re.search(r"sink s: its spool is full: changes of \d+ snapshots were dropped", caplog.text)
    site.begin()
    site.topic.is_away = False
    assert site.told()[-1] == "a OK>ERR"
    site.judge(a=STALL)
    assert site.told() == []


def test_it_follows_by_itself_and_says_how_it_fares(
    site: Site, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    monkeypatch.setattr("warren.sinks.delivery.BACKOFF", Backoff(0.01, 30.0))
    site.topic.is_away = True
    stop = threading.Event()
    working = threading.Thread(target=site.worker.run, args=(stop,))
    working.start()
    site.judge(a=OK)
    wait_for(lambda: (held := read_status(site.root, "s")) and held.trouble, "it is tried", 20)
    held = read_status(site.root, "s")
    assert held is not None
    assert (held.trouble, held.waiting, held.oldest_ms) == ("nobody there", 1, site.verdicts.now_ms)
    site.topic.is_away = False
    wait_for(lambda: len(site.topic.records) == 2, "it is told", 20)
    site.judge(a=WARN)
    wait_for(lambda: len(site.topic.records) == 3, "so is what comes later", 20)
    wait_for(lambda: (held := read_status(site.root, "s")) and not held.waiting, "all is well", 20)
    stop.set()
    working.join(20)
    held = read_status(site.root, "s")
    assert held is not None
    assert (held.trouble, held.delivered_ms) == ("", site.verdicts.now_ms)
