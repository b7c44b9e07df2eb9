"""The disk of the data directory is full for a while: nothing published is damaged, and Warren goes on by itself."""

import contextlib
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.watched import TRIGGER_S, Watched, report, watched
from warren.demo.broker import Kafka

pytestmark = pytest.mark.timeout(300)

NAME = "faults-disk"
SIZE = "16m"
FULL_S = 5 * TRIGGER_S
SLACK_S = 5.0
"""What a cycle takes on a busy machine."""
PAGE = 4096
# With no room the driver cannot write the heads; with a little, tasks of Spark cannot write their buckets.
ROOM = {"nothing": 0, "the heads": 2 * PAGE}


@contextlib.contextmanager
def small_disk(folder: Path) -> Iterator[None]:
    """A file system of its own, which needs root."""
    folder.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(folder)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"this test needs root, to mount a small tmpfs: {done.stderr}"
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@contextlib.contextmanager
def full(folder: Path, room: int) -> Iterator[None]:
    """A disk with so many bytes left; a file that takes all of the rest is removed at the end."""
    ballast = folder / "ballast"
    try:
        with ballast.open("wb", buffering=0) as out:
            with contextlib.suppress(OSError):
                while True:
                    out.write(bytes(PAGE))
            out.truncate(out.tell() - room)
        yield
    finally:
        ballast.unlink()


@pytest.fixture(scope="module")
def stage(kafka: Kafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    home = tmp_path_factory.mktemp("disk")
    with small_disk(home / "warren-data"):
        with watched(kafka.bootstrap, NAME, home) as running:
            began_s = time.time()
            yield running
            running.wait_right()
            running.assert_never_wrong(began_s)
        running.assert_nothing_lost()
        assert running.unnamed_files() == set()


@pytest.mark.parametrize("room", ROOM)
def test_it_goes_on_by_itself_when_there_is_room_again(stage: Watched, room: str) -> None:
    log_before = len(stage.run.log)
    with full(stage.run.data, ROOM[room]):
        full_s = time.time()
        while time.time() < full_s + FULL_S:
            assert stage.run.store.newest_whole()[1] == []
            time.sleep(0.2)
        freed_s = time.time()
    right_s = stage.wait_right(freed_s)
    lines = stage.run.log[log_before:].splitlines()
    failures = [line for line in lines if "No space left on device" in line]
    full_for_s = freed_s - full_s
    report(f"room for {room}: full for {full_for_s:.1f} s, {len(failures)} lines say so, right {right_s:.1f} s later")
    assert right_s <= 2 * TRIGGER_S + SLACK_S
    assert all(str(stage.run.data) in line for line in failures)
    # A sentence for each attempt of a cycle, and one each of incidents and history.
    assert 0 < len(failures) <= 2 * (1 + full_for_s / TRIGGER_S) + 2
    assert [line for line in lines if not line.startswith("20")] == [], "stack traces"
