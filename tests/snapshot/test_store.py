"""The data directory: whole files, exclusive manifests, and what is left after something went wrong."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest
from msgspec.structs import replace

from tests.kit.plans import manifest, plan
from warren.errors import Fenced, NoSnapshot, SnapshotError
from warren.snapshot.manifest import FORMAT, Bucket, Manifest
from warren.snapshot.store import KINDS, Store

TABLE = pa.table({"n": [1, 2, 3]})


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store(tmp_path / "data")
    made.create()
    return made


def whole(store: Store, sequence: int) -> Manifest:
    """A published manifest with files of its own."""
    bucket = Bucket(store.write_table("partitions", "p", TABLE), store.write_table("groups", "g", TABLE), 3, 3)
    made = replace(manifest(plan(store.root)), sequence=sequence, buckets=(bucket,))
    store.publish(made)
    return made


def files(store: Store) -> set[str]:
    return {f"{kind}/{path.name}" for kind in KINDS for path in (store.root / kind).iterdir()}


def manifest_path(store: Store, sequence: int) -> Path:
    return store.root / "manifests" / f"{sequence:020d}.json"


def test_nothing_yet(tmp_path: Path) -> None:
    for store in (Store(tmp_path / "not there"), Store(tmp_path)):
        assert store.sequences() == []
        assert store.newest_whole() == (None, [])
        with pytest.raises(NoSnapshot, match="start `warren run`"):
            store.newest()


def test_creating_twice_is_harmless(store: Store) -> None:
    made = whole(store, 1)
    store.create()
    assert store.newest() == made


def test_tables_come_back_as_they_were_written(store: Store) -> None:
    parquet, arrow = store.write_table("layouts", "x", TABLE), store.write_arrow("heads", "x", TABLE)
    assert store.read_parquet(parquet) == store.read_arrow(arrow) == TABLE
    assert store.read_parquet(parquet, ["n"]).column_names == ["n"]
    for file in (parquet, arrow):
        assert store.path(file).stat().st_size == file.size


def test_no_name_is_used_twice(store: Store) -> None:
    assert len({store.write_table("groups", "same", TABLE).path for _ in range(5)}) == 5


def test_the_newest_manifest_wins(store: Store) -> None:
    for sequence in (1, 2, 10, 9):
        whole(store, sequence)
    assert store.sequences() == [10, 9, 2, 1]
    assert store.newest().sequence == 10


def test_other_files_among_the_manifests_are_no_manifests(store: Store) -> None:
    made = whole(store, 1)
    for name in ("00000000000000000002.json.abc.draft", "notes.json", "2.txt"):
        (store.root / "manifests" / name).write_text("{")
    assert store.newest() == made


def test_of_two_writers_one_is_fenced(store: Store) -> None:
    first = whole(store, 4)
    with pytest.raises(Fenced, match="another Warren has published manifest 4"):
        store.publish(replace(first, epoch=99))
    assert store.newest() == first
    assert [path.name for path in (store.root / "manifests").iterdir()] == [manifest_path(store, 4).name]


def test_a_writer_whose_draft_was_swept_is_fenced(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    # It was paused between its draft and its manifest; another one took over and cleaned up.
    link = os.link

    def sweep_and_link(draft: Path, final: Path) -> None:
        store.sweep([])
        link(draft, final)

    made = manifest(plan(store.root))
    monkeypatch.setattr(os, "link", sweep_and_link)
    with pytest.raises(Fenced):
        store.publish(made)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize("harm", [Path.unlink, cut, flip], ids=["missing", "cut short", "a bit flipped"])
@pytest.mark.parametrize("which", ["partitions", "groups"])
def test_a_harmed_file_sends_the_writer_back_to_the_manifest_before(
    store: Store, which: str, harm: Callable[[Path], None]
) -> None:
    before, after = whole(store, 1), whole(store, 2)
    assert store.newest_whole() == (after, [])
    harm(store.path(getattr(after.buckets[0], which)))
    found, troubles = store.newest_whole()
    assert found == before
    assert len(troubles) == 1
    assert troubles[0].startswith("manifest 2: ")


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("empty", b""),
        ("half", msgspec.json.encode(manifest(plan(Path()))).removesuffix(b"}")),
        ("of another version", json.dumps({"format": FORMAT + 1}).encode()),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_manifest_that_cannot_be_read_is_passed_over(store: Store, name: str, data: bytes) -> None:
    before = whole(store, 1)
    manifest_path(store, 2).write_bytes(data)
    found, troubles = store.newest_whole()
    assert (found, len(troubles)) == (before, 1), name
    assert store.newest() == before, "for readers, too"


def test_when_no_manifest_can_be_read_the_reader_hears_why(store: Store) -> None:
    manifest_path(store, 3).write_bytes(b"{")
    with pytest.raises(SnapshotError, match="cannot be read"):
        store.newest()
    assert store.newest_whole()[0] is None


def test_every_manifest_is_harmed(store: Store) -> None:
    for sequence in (1, 2):
        cut(store.path(whole(store, sequence).buckets[0].groups))
    found, troubles = store.newest_whole()
    assert found is None
    assert [trouble[:10] for trouble in troubles] == ["manifest 2", "manifest 1"]


def test_a_sweep_takes_only_what_no_manifest_names(store: Store) -> None:
    kept = [whole(store, 1), whole(store, 2)]
    named = {file.path for made in kept for file in made.files()}
    for kind in KINDS:
        store.write_arrow(kind, "orphan", TABLE)
    (store.root / "manifests" / "3.json.x.draft").write_text("{")
    assert store.sweep(named) == len(KINDS)
    assert files(store) == named
    assert store.sequences() == [2, 1]
    assert store.newest_whole() == (kept[1], [])
    assert store.sweep(named) == 0
    assert not list((store.root / "manifests").glob("*.draft"))


def test_what_is_removed_is_gone_and_may_be_gone_already(store: Store) -> None:
    old, new = whole(store, 1), whole(store, 2)
    for _ in range(2):
        store.remove([1], [file.path for file in old.files()])
    assert store.sequences() == [2]
    assert files(store) == {file.path for file in new.files()}
    assert store.newest_whole() == (new, [])
