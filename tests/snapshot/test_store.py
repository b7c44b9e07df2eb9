"""The data directory: whole files, exclusive manifests, and what is left after something went wrong."""

import os
from collections.abc import Callable
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest
from msgspec.structs import replace

from tests.kit.plans import manifest, plan
from warren.errors import Fenced, NoSnapshot, SnapshotError, UnknownFormat
from warren.snapshot.manifest import FORMAT, Bucket, HeadSample, Manifest
from warren.snapshot.store import KINDS, Store

TABLE = pa.table({"n": [1, 2, 3]})


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store(tmp_path / "data")
    made.create()
    return made


def whole(store: Store, sequence: int) -> Manifest:
    """A published manifest with files of its own."""
    stem = f"{sequence:012d}"
    bucket = Bucket(store.write_table("partitions", stem, TABLE), store.write_table("groups", stem, TABLE), 3, 3)
    heads = HeadSample(store.write_arrow("heads", stem, TABLE), store.write_arrow("layouts", stem, TABLE), {})
    made = replace(manifest(plan(store.root)), sequence=sequence, buckets=(bucket,), heads=(heads,))
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
    for sequence in (1, 2, 9, 10):
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
        store.remove_drafts()
        link(draft, final)

    made = manifest(plan(store.root))
    monkeypatch.setattr(os, "link", sweep_and_link)
    with pytest.raises(Fenced):
        store.publish(made)


def test_a_name_that_clean_up_has_freed_is_not_published_again(store: Store) -> None:
    paused = replace(whole(store, 4), sequence=5)
    newest = [whole(store, sequence) for sequence in (5, 6, 7)][-1]
    store.remove([5, 6])
    with pytest.raises(Fenced, match="another Warren has published manifest 7"):
        store.publish(paused)
    assert store.newest() == newest
    assert store.sequences() == [7, 4]
    assert not list((store.root / "manifests").glob("*.draft"))


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


@pytest.mark.parametrize("harm", [Path.unlink, cut, flip], ids=["missing", "cut short", "a bit flipped"])
@pytest.mark.parametrize("which", ["heads", "layout"])
def test_a_harmed_head_sample_is_left_out_and_the_buckets_stay(
    store: Store, which: str, harm: Callable[[Path], None]
) -> None:
    made = whole(store, 1)
    other = HeadSample(store.write_arrow("heads", "x", TABLE), store.write_arrow("layouts", "x", TABLE), {})
    samples = (*made.heads, other)
    made = replace(made, sequence=2, heads=samples)
    store.publish(made)
    harm(store.path(getattr(samples[0], which)))
    found, troubles = store.newest_whole()
    assert found == replace(made, heads=samples[1:])
    assert len(troubles) == 1
    assert troubles[0].startswith("a head sample of manifest 2: ")


@pytest.mark.parametrize("share", [0.1, 0.3, 0.5, 0.7])
def test_a_flipped_bit_within_the_values_of_a_table_is_noticed_when_it_is_read(store: Store, share: float) -> None:
    file = store.write_table("layouts", "x", pa.table({"n": range(10_000)}))
    path = store.path(file)
    data = bytearray(path.read_bytes())
    data[int(len(data) * share)] ^= 1
    path.write_bytes(data)
    with pytest.raises(OSError, match=r"CRC|checksum"):
        store.read_parquet(file)


@pytest.mark.parametrize(
    ("name", "data"),
    [("empty", b""), ("half", msgspec.json.encode(manifest(plan(Path()))).removesuffix(b"}"))],
    ids=["empty", "half"],
)
def test_a_damaged_manifest_is_passed_over(store: Store, name: str, data: bytes) -> None:
    before = whole(store, 1)
    manifest_path(store, 2).write_bytes(data)
    found, troubles = store.newest_whole()
    assert (found, len(troubles)) == (before, 1), name
    assert store.newest() == before, "for readers, too"


@pytest.mark.parametrize("change", [{"format": FORMAT + 1}, {"a field of tomorrow": 1}], ids=["format", "field"])
def test_a_writer_refuses_a_manifest_of_another_version(store: Store, change: dict[str, object]) -> None:
    before = whole(store, 1)
    raw = msgspec.json.decode(manifest_path(store, 1).read_bytes())
    manifest_path(store, 2).write_bytes(msgspec.json.encode(raw | change))
    with pytest.raises(UnknownFormat, match=r"0002\.json: .* Run the version of Warren that wrote it"):
        store.newest_whole()
    assert store.newest() == before, "readers go on with what they know"


def test_a_file_that_cannot_be_read_is_not_a_damaged_one(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    before, after = whole(store, 1), whole(store, 2)
    unreadable = {store.path(after.buckets[0].groups)}
    read = Path.read_bytes

    def read_unless_broken(path: Path) -> bytes:
        if path in unreadable:
            raise OSError(5, "Input/output error")
        return read(path)

    monkeypatch.setattr(Path, "read_bytes", read_unless_broken)
    assert store.newest_whole()[0] == before, "what is intact is enough to continue"
    unreadable.add(manifest_path(store, 1))
    with pytest.raises(OSError, match="Input/output"):
        store.newest_whole()


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


def test_a_sweep_takes_only_what_its_cycles_wrote_and_no_manifest_names(store: Store) -> None:
    kept = [whole(store, sequence) for sequence in (2, 3)]
    named = {file.path for made in kept for file in made.files()}
    orphans = {cycle: store.write_arrow("heads", f"{cycle:012d}", TABLE).path for cycle in (1, 2, 3, 4)}
    (store.root / "groups" / "notes.txt").write_text("not ours")
    assert store.sweep(named, above=1, up_to=3) == 2
    assert files(store) == named | {orphans[1], orphans[4], "groups/notes.txt"}
    assert store.newest_whole() == (kept[1], [])
    assert store.sweep(named, above=1, up_to=3) == 0


def test_manifests_that_are_removed_may_be_gone_already(store: Store) -> None:
    whole(store, 1)
    new = whole(store, 2)
    for _ in range(2):
        store.remove([1])
    assert store.sequences() == [2]
    assert store.newest_whole() == (new, [])
