"""The data directory: files with unique names, fsynced, and manifests that are created exclusively."""

import uuid
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from msgspec.structs import replace

from warren.domain.windows import UNKNOWN
from warren.durable import create_exclusively, sync, write_new
from warren.errors import CorruptSnapshot, Fenced, NoSnapshot, UnknownFormat
from warren.snapshot.manifest import File, Manifest, from_json
from warren.snapshot.schemas import GROUPS, PARTITIONS

SEQUENCE_DIGITS = 12
"""With so many digits the name of a file begins with the sequence of its cycle."""
KINDS = ("partitions", "groups", "heads", "layouts")
_SCHEMAS = {"partitions": PARTITIONS, "groups": GROUPS}
_NAME_COLUMNS = {"partitions": ("cluster", "group", "topic", "owner", "client_id"), "groups": ("cluster",)}


class Store:
    """Reads and writes the files below one data directory."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def create(self) -> None:
        """Create the directories that do not exist yet."""
        for kind in (*KINDS, "manifests"):
            (self.root / kind).mkdir(parents=True, exist_ok=True)

    def write_table(self, kind: str, stem: str, table: pa.Table, encoding: dict[str, str] | None = None) -> File:
        """Write a Parquet file under a new name; it is durable when this returns."""
        out = pa.BufferOutputStream()
        pq.write_table(
            table,
            out,
            row_group_size=65_536,
            compression="lz4",
            use_dictionary=[field.name for field in table.schema if pa.types.is_dictionary(field.type)],
            column_encoding=encoding,
            write_statistics=False,
            write_page_checksum=True,
        )
        return self._write(f"{kind}/{stem}-{uuid.uuid4().hex[:12]}.parquet", out.getvalue())

    def write_arrow(self, kind: str, stem: str, table: pa.Table) -> File:
        """Write an Arrow file, which readers can map into memory, under a new name; it is durable when this returns."""
        out = pa.BufferOutputStream()
        with pa.ipc.new_file(out, table.schema) as writer:
            writer.write_table(table)
        return self._write(f"{kind}/{stem}-{uuid.uuid4().hex[:12]}.arrow", out.getvalue())

    def _write(self, path: str, data: pa.Buffer) -> File:
        write_new(self.root / path, memoryview(data))
        return File(path, data.size, f"crc32:{zlib.crc32(data):08x}")

    def path(self, file: File) -> Path:
        """The path of a file that a manifest names."""
        return self.root / file.path

    def read_parquet(self, file: File, columns: list[str] | None = None) -> pa.Table:
        """A Parquet file; columns of names stay dictionary-encoded."""
        kind = file.path.partition("/")[0]
        names = _NAME_COLUMNS.get(kind, ())
        path = self.path(file)
        source = pq.ParquetFile(path, memory_map=True, read_dictionary=list(names), page_checksum_verification=True)
        return with_new_columns(file, source.read(columns=columns, use_threads=False), columns)

    def read_arrow(self, file: File) -> pa.Table:
        """An Arrow file, mapped into memory: only the pages that are used are read."""
        with pa.memory_map(str(self.path(file))) as source:
            return pa.ipc.open_file(source).read_all()

    def sequences(self) -> list[int]:
        """The sequences of all manifests, newest first."""
        folder = self.root / "manifests"
        try:
            names = [path.name for path in folder.iterdir()]
        except FileNotFoundError:
            return []
        return sorted((int(n[:-5]) for n in names if n.endswith(".json") and n[:-5].isdigit()), reverse=True)

    def manifest(self, sequence: int) -> Manifest:
        """One manifest by its sequence."""
        return from_json(self._manifest_path(sequence).read_bytes())

    def newest(self) -> Manifest:
        """The newest manifest that can be read; NoSnapshot when there is none at all."""
        first_error: CorruptSnapshot | None = None
        for sequence in self.sequences():
            try:
                return self.manifest(sequence)
            except FileNotFoundError:
                continue
            except CorruptSnapshot as error:
                first_error = first_error or error
        if first_error is not None:
            raise first_error
        raise NoSnapshot(f"no snapshot in {self.root} yet: start `warren run`, or wait for its first cycle")

    def newest_whole(self) -> tuple[Manifest | None, list[str]]:
        """The newest manifest of which every bucket is intact, and what is wrong with it and newer ones.

        Head samples that are damaged are left out of it: they are shared by all manifests of a day. An error in reading
        is not damage: without an intact manifest it is raised, and so is UnknownFormat.
        """
        errors: list[str] = []
        failed_read: OSError | None = None
        for sequence in self.sequences():
            try:
                manifest = self.manifest(sequence)
                for bucket in manifest.buckets:
                    self._check(bucket.partitions)
                    self._check(bucket.groups)
            except UnknownFormat as error:
                raise UnknownFormat(
                    f"{self._manifest_path(sequence)}: {error}. Nothing was changed. "
                    "Run the version of Warren that wrote it, or a later one, or choose another [pipeline] data-dir"
                ) from error
            except (CorruptSnapshot, OSError) as error:
                errors.append(f"manifest {sequence}: {error}")
                if isinstance(error, OSError) and not isinstance(error, FileNotFoundError):
                    failed_read = error
            else:
                damaged = self._damaged_samples(manifest)
                errors += [f"a head sample of manifest {sequence}: {error}" for error in damaged.values()]
                heads = tuple(sample for number, sample in enumerate(manifest.heads) if number not in damaged)
                return replace(manifest, heads=heads), errors
        if failed_read is not None:
            raise failed_read
        return None, errors

    def _damaged_samples(self, manifest: Manifest) -> dict[int, Exception]:
        """The numbers of the head samples that cannot be read, each with its error."""
        damage: dict[File, Exception] = {}
        for file in dict.fromkeys(file for sample in manifest.heads for file in (sample.layout, sample.heads)):
            try:
                self._check(file)
            except (CorruptSnapshot, OSError) as error:
                damage[file] = error
        found = ((n, damage.get(sample.layout) or damage.get(sample.heads)) for n, sample in enumerate(manifest.heads))
        return {number: error for number, error in found if error is not None}

    def _check(self, file: File) -> None:
        data = self.path(file).read_bytes()
        if len(data) != file.size or f"crc32:{zlib.crc32(data):08x}" != file.checksum:
            raise CorruptSnapshot(f"{file.path} is not what was written ({len(data)} bytes of {file.size})")

    def publish(self, manifest: Manifest) -> None:
        """Create the manifest, which publishes the snapshot; Fenced if another writer was first."""
        for kind in KINDS:
            sync(self.root / kind)
        path, data = self._manifest_path(manifest.sequence), msgspec.json.encode(manifest)
        try:
            # Clean-up frees the names of old manifests. A writer that was paused before its draft finds a newer one
            # here; a writer that was paused after it has lost the draft to the one that took over.
            create_exclusively(path, data, lambda: self.check_newest(manifest.sequence - 1))
        except (FileExistsError, FileNotFoundError):
            raise self._fenced(manifest.sequence) from None

    def remove(self, sequences: Iterable[int]) -> None:
        """Remove manifests; their files are swept afterwards, so that a crash between the two leaves only orphans."""
        _unlink(map(self._manifest_path, sequences))

    def sweep(self, named: Iterable[str], above: int, up_to: int) -> int:
        """Remove all files of the cycles after `above` and up to `up_to` that no manifest names; gives how many."""
        kept = {self.root / path for path in named}
        return _unlink(path for path in self._files() if path not in kept and above < _cycle_of(path) <= up_to)

    def sweep_attempt(self, sequence: int) -> int:
        """Remove the files of a cycle that failed; files of other writers never have its sequence."""
        return _unlink(path for path in self._files() if _cycle_of(path) == sequence)

    def remove_drafts(self) -> None:
        """Remove what writers that are taken for dead would still publish; only after a take-over."""
        _unlink((self.root / "manifests").glob("*.draft"))

    def check_newest(self, sequence: int) -> None:
        """Raise Fenced if there is a manifest newer than the writer's own."""
        newest = max(self.sequences(), default=0)
        if newest > sequence:
            raise self._fenced(newest)

    def _fenced(self, sequence: int) -> Fenced:
        return Fenced(
            f"another Warren has published manifest {sequence} in {self.root}: this one stops; "
            "run only one `warren run` on a data directory"
        )

    def _files(self) -> Iterator[Path]:
        """All files of snapshots, those of no manifest too."""
        return (path for kind in KINDS for path in (self.root / kind).iterdir())

    def _manifest_path(self, sequence: int) -> Path:
        return self.root / "manifests" / f"{sequence:020d}.json"


def _cycle_of(path: Path) -> int:
    """The sequence of the cycle that wrote a file; -1 for a file of somebody else."""
    sequence, _, unique = path.name.partition("-")
    return int(sequence) if unique and len(sequence) == SEQUENCE_DIGITS and sequence.isdigit() else -1


def _unlink(paths: Iterable[Path]) -> int:
    paths = list(paths)
    for path in paths:
        path.unlink(missing_ok=True)
    return len(paths)


def with_new_columns(file: File, table: pa.Table, columns: list[str] | None = None) -> pa.Table:
    """Rows of a file, or some of their columns; those that did not exist when it was written are UNKNOWN."""
    schema = _SCHEMAS.get(file.path.partition("/")[0], ())
    new = [f for f in schema if f.name not in table.column_names and (columns is None or f.name in columns)]
    for field in new:
        table = table.append_column(field, pa.array(np.full(table.num_rows, UNKNOWN), field.type))
    # In one order, so that rows of older and newer files can be concatenated.
    return table.select([field.name for field in schema if field.name in table.column_names]) if new else table
