"""Taking over a data directory, and cleaning up in it: nothing that may still be needed is ever removed."""

import logging
import shutil
from pathlib import Path

import msgspec
import pytest

from tests.kit.plans import NOW
from tests.pipeline.test_cycle import Stage
from warren.errors import Fenced, SnapshotError, UnknownFormat
from warren.pipeline import manifest_writer
from warren.snapshot.manifest import FORMAT
from warren.snapshot.store import KINDS, Store

KEPT = Path(__file__).parents[1] / "snapshot" / "data"
"""Data directories that each released format of Warren has written, each after the same four cycles."""


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    made = Stage(tmp_path)
    for n in range(3):
        made.cycle(NOW + n, ("g", NOW + n), ("h", NOW + n))
    return made


def files(root: Path) -> set[str]:
    return {f"{kind}/{path.name}" for kind in (*KINDS, "manifests") for path in (root / kind).iterdir()}


def manifest_path(root: Path, sequence: int) -> Path:
    return root / "manifests" / f"{sequence:020d}.json"


def rewrite(path: Path, **changes: object) -> None:
    path.write_bytes(msgspec.json.encode(msgspec.json.decode(path.read_bytes()) | changes))


@pytest.mark.parametrize("version", range(1, FORMAT + 1))
def test_a_start_continues_from_the_state_of_every_released_format(tmp_path: Path, version: int) -> None:
    shutil.copytree(KEPT / f"format-{version}", tmp_path, dirs_exist_ok=True)
    stage = Stage(tmp_path)
    stage.end = 6
    assert stage.cycles.manifest.format == FORMAT
    assert stage.windows() == {"g": [-5_000, 5_000, 15_000, 25_000], "h": [-4_000, 6_000]}
    stage.cycle(NOW + 40_000, ("h", NOW + 35_000))
    assert stage.windows() == {"g": [-5_000, 5_000, 15_000, 25_000], "h": [-4_000, 6_000, 35_000]}


@pytest.mark.parametrize("change", [{"format": FORMAT + 1}, {"added_later": 1}], ids=["format", "field"])
def test_an_older_warren_refuses_to_start_and_leaves_everything(stage: Stage, change: dict[str, object]) -> None:
    for path in (stage.root / "manifests").iterdir():
        rewrite(path, **change)
    before = files(stage.root)
    with pytest.raises(UnknownFormat, match="Run the version of Warren that wrote it, or a later one"):
        stage.start()
    assert files(stage.root) == before


def test_a_read_error_at_the_start_removes_nothing(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    before, read = files(stage.root), Path.read_bytes
    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_bytes", failing_read)
        with pytest.raises(SnapshotError, match="Nothing was changed: make it readable"):
            stage.start()
    assert files(stage.root) == before
    assert Path.read_bytes is read
    stage.start()
    assert stage.windows() == {"g": [0, 1, 2], "h": [0, 1, 2]}


def failing_read(path: Path) -> bytes:
    raise OSError(5, "Input/output error", str(path))


def test_what_an_unreadable_manifest_may_name_is_kept_and_all_else_is_cleaned_up(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    unreadable = manifest_path(stage.root, 3)
    named, read = {file.path for file in Store(stage.root).manifest(3).files()}, Path.read_bytes

    def read_some(path: Path) -> bytes:
        return failing_read(path) if path == unreadable else read(path)

    monkeypatch.setattr(manifest_writer, "KEEP_MS", -1)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_bytes", read_some)
        stage.start()
        for n in range(5):
            stage.cycle(NOW + 10 + n)
        assert named <= files(stage.root)
        assert unreadable.exists()
        assert len(Store(stage.root).sequences()) == 1 + manifest_writer.KEEP_MANIFESTS
    stage.start()
    stage.cycle(NOW + 20)
    kept = {file.path for s in Store(stage.root).sequences() for file in Store(stage.root).manifest(s).files()}
    assert {path for path in files(stage.root) if not path.startswith("manifests/")} == kept


def test_a_damaged_manifest_is_removed_with_its_files(stage: Stage) -> None:
    manifest_path(stage.root, 4).write_bytes(b'{"sequence": 4, ')
    stage.start()
    assert not manifest_path(stage.root, 4).exists()
    assert stage.cycles.manifest.epoch == 2
    store = Store(stage.root)
    named = {file.path for s in store.sequences() for file in store.manifest(s).files()}
    assert {path for path in files(stage.root) if not path.startswith("manifests/")} == named


def test_files_of_failed_and_repeated_tasks_are_removed_while_it_runs(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manifest_writer, "KEEP_MS", -1)
    newest = stage.cycles.manifest.sequence
    late, next_cycle = (stage.root / "partitions" / f"{n:012d}-0001-late.parquet" for n in (newest, newest + 2))
    late.touch()
    next_cycle.touch()
    (stage.root / "partitions" / "notes.txt").touch()
    stage.cycle(NOW + 10)
    assert not late.exists(), "a task that was repeated had written it after all"
    assert next_cycle.exists(), "perhaps another writer is at work on it"
    stage.cycle(NOW + 11)
    assert not next_cycle.exists()
    assert (stage.root / "partitions" / "notes.txt").exists(), "not ours"


def test_a_paused_writer_cannot_publish_under_a_name_that_clean_up_has_freed(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manifest_writer, "KEEP_MS", -1)
    paused = stage.cycles
    stage.start()
    for n in range(4):
        stage.cycle(NOW + 10 + n)
    newest = stage.cycles.manifest
    assert not manifest_path(stage.root, paused.manifest.sequence + 1).exists(), "its next name is free again"
    before = files(stage.root)
    with pytest.raises(Fenced, match=f"another Warren has published manifest {newest.sequence}"):
        paused.run_once()
    assert files(stage.root) >= before, "it has removed nothing of the other's"
    assert Store(stage.root).newest() == newest


def test_the_epoch_rises_though_the_newest_snapshot_is_damaged(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    stage.start()
    newest = stage.cycle(NOW + 10)
    Store(stage.root).path(newest.buckets[0].partitions).unlink()
    with caplog.at_level(logging.ERROR):
        stage.start()
    assert stage.cycles.manifest.epoch == newest.epoch + 1
    assert f"cannot use manifest {newest.sequence}" in caplog.text
