"""Following snapshots: the newest or every one of them, also when something fails meanwhile."""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.kit.plans import manifest, plan
from warren.errors import CorruptSnapshot
from warren.snapshot.follower import Mode, SnapshotFollower
from warren.snapshot.manifest import Bucket, File
from warren.snapshot.reader import Snapshot
from warren.snapshot.store import Store

MODES: tuple[Mode, ...] = ("newest", "every")


class Taken:
    """Records the sequences it is given; raises `error` while that is set."""

    def __init__(self) -> None:
        self.sequences: list[int] = []
        self.error: Exception | None = None
        self.got = threading.Semaphore(0)

    def __call__(self, snapshot: Snapshot) -> None:
        if self.error is not None:
            raise self.error
        self.sequences.append(snapshot.manifest.sequence)
        self.got.release()

    def wait(self) -> None:
        assert self.got.acquire(timeout=20.0)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store(tmp_path)
    made.create()
    return made


@pytest.fixture
def taken() -> Taken:
    return Taken()


@pytest.fixture
def parts() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def publish(store: Store, sequence: int, *, has_verdicts: bool = True) -> None:
    file = File("groups/x", 1, "crc32:00000000")
    buckets = (Bucket(file, file, 0, 0),) if has_verdicts else ()
    store.publish(replace(manifest(plan(store.root)), sequence=sequence, buckets=buckets))


def damage(store: Store, sequence: int) -> None:
    (store.root / "manifests" / f"{sequence:020d}.json").write_bytes(b"{")


@pytest.mark.parametrize("mode", MODES)
def test_it_begins_with_the_newest_snapshot(store: Store, taken: Taken, mode: Mode) -> None:
    follower = SnapshotFollower("test", store, taken, mode=mode)
    assert follower.poll()
    publish(store, 1)
    publish(store, 2)
    assert follower.poll()
    assert follower.poll()
    assert taken.sequences == [2]


@pytest.mark.parametrize(("mode", "expected"), [("newest", [6]), ("every", [4, 5, 6])])
def test_it_goes_on_after_a_snapshot_that_is_already_dealt_with(
    store: Store, taken: Taken, mode: Mode, expected: list[int]
) -> None:
    publish(store, 3)
    follower = SnapshotFollower("test", store, taken, mode=mode, after=3)
    assert follower.poll()
    assert taken.sequences == []
    for sequence in (4, 5, 6):
        publish(store, sequence)
    assert follower.poll()
    assert taken.sequences == expected


@pytest.mark.parametrize("mode", MODES)
def test_a_claim_without_verdicts_is_not_handed_on(store: Store, taken: Taken, mode: Mode) -> None:
    follower = SnapshotFollower("test", store, taken, mode=mode)
    publish(store, 1, has_verdicts=False)
    assert follower.poll()
    assert taken.sequences == []
    publish(store, 2)
    assert follower.poll()
    assert taken.sequences == [2]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), RuntimeError("a mistake")])
def test_a_snapshot_that_fails_is_logged_once_and_taken_again(
    store: Store, taken: Taken, caplog: pytest.LogCaptureFixture, mode: Mode, error: Exception
) -> None:
    publish(store, 1)
    follower = SnapshotFollower("test", store, taken, mode=mode)
    taken.error = error
    assert not follower.poll()
    assert not follower.poll()
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert str(error) in record.getMessage()
    assert bool(record.exc_info) is isinstance(error, RuntimeError)
    taken.error = None
    assert follower.poll()
    assert taken.sequences == [1]


def test_the_newest_can_be_another_one_when_it_is_tried_again(store: Store, taken: Taken) -> None:
    publish(store, 1)
    follower = SnapshotFollower("test", store, taken)
    taken.error = OSError("busy")
    assert not follower.poll()
    publish(store, 2)
    taken.error = None
    assert follower.poll()
    assert taken.sequences == [2]


def test_every_one_is_tried_again_in_order(store: Store, taken: Taken) -> None:
    follower = SnapshotFollower("test", store, taken, mode="every", after=0)
    publish(store, 1)
    taken.error = OSError("busy")
    assert not follower.poll()
    publish(store, 2)
    taken.error = None
    assert follower.poll()
    assert taken.sequences == [1, 2]


def test_every_skips_a_snapshot_that_was_removed_while_it_was_taken(
    store: Store, taken: Taken, caplog: pytest.LogCaptureFixture
) -> None:
    publish(store, 1)
    publish(store, 2)

    def take(snapshot: Snapshot) -> None:
        if snapshot.manifest.sequence == 1:
            store.remove([1])
            raise FileNotFoundError("groups/x")
        taken(snapshot)

    follower = SnapshotFollower("test", store, take, mode="every", after=0)
    assert follower.poll()
    assert taken.sequences == [2]
    assert "snapshot 1 is skipped" in caplog.text


@pytest.mark.parametrize(
    ("mode", "expected", "message"),
    [("newest", [1], "manifest 2 cannot be read, using 1"), ("every", [1, 3], "snapshot 2 is skipped")],
)
def test_a_damaged_manifest_is_skipped(
    store: Store, taken: Taken, caplog: pytest.LogCaptureFixture, mode: Mode, expected: list[int], message: str
) -> None:
    publish(store, 1)
    publish(store, 2)
    damage(store, 2)
    if mode == "every":
        publish(store, 3)
    follower = SnapshotFollower("test", store, taken, mode=mode, after=0)
    assert follower.poll()
    assert follower.poll()
    assert taken.sequences == expected
    assert caplog.text.count(message) == 1


def test_nothing_is_taken_when_no_manifest_can_be_read(
    store: Store, taken: Taken, caplog: pytest.LogCaptureFixture
) -> None:
    publish(store, 1)
    damage(store, 1)
    follower = SnapshotFollower("test", store, taken)
    assert not follower.poll()
    assert not follower.poll()
    assert taken.sequences == []
    assert caplog.text.count(str(CorruptSnapshot("cannot be read"))) == 1


@pytest.mark.parametrize("mode", MODES)
def test_a_data_directory_that_was_emptied_is_followed_from_its_beginning(
    store: Store, taken: Taken, mode: Mode
) -> None:
    publish(store, 9)
    follower = SnapshotFollower("test", store, taken, mode=mode)
    assert follower.poll()
    store.remove([9])
    publish(store, 1)
    assert follower.poll()
    assert taken.sequences == [9, 1]


def test_another_version_takes_the_newest_once_more(store: Store, taken: Taken) -> None:
    pending = {"a"}
    follower = SnapshotFollower("test", store, taken, version=lambda: frozenset(pending))
    publish(store, 1)
    assert follower.poll()
    assert follower.poll()
    pending.clear()
    assert follower.poll()
    assert follower.poll()
    assert taken.sequences == [1, 1]


@pytest.mark.parametrize("wake", [SnapshotFollower.wake, lambda follower: None], ids=["woken", "polling"])
def test_its_thread_follows_until_it_is_closed(
    store: Store, taken: Taken, parts: ExitStack, wake: Callable[[SnapshotFollower], None]
) -> None:
    poll_s = 600.0 if wake is SnapshotFollower.wake else 0.01
    follower = SnapshotFollower("test", store, taken, poll_s=poll_s)
    follower.start()
    parts.callback(follower.close)
    for sequence in (1, 2):
        publish(store, sequence)
        wake(follower)
        taken.wait()
    follower.close()
    follower.close()
    publish(store, 3)
    wake(follower)
    assert taken.sequences == [1, 2]
    assert "test" not in [thread.name for thread in threading.enumerate()]


def test_one_that_was_never_started_can_be_closed(store: Store, taken: Taken) -> None:
    SnapshotFollower("test", store, taken).close()
