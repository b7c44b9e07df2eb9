"""The data directory: files with unique names, fsynced, and manifests that are created exclusively."""

import uuid
import zlib
from collections.abc import Iterable
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from warren.domain.windows import UNKNOWN
from warren.durable import create_exclusively, sync, write_new
from warren.errors import CorruptSnapshot, Fenced, NoSnapshot
from warren.snapshot.manifest import File, Manifest, from_json
from warren.snapshot.schemas import GROUPS, PARTITIONS

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
        source = pq.ParquetFile(self.path(file), memory_map=True, read_dictionary=list(names))
        table = source.read(columns=columns, use_threads=False)
        for field in _SCHEMAS.get(kind, ()):
            # A file from before the column existed.
            if field.name not in table.column_names and (columns is None or field.name in columns):
                table = table.append_column(field, pa.array(np.full(table.num_rows, UNKNOWN), field.type))
        return table

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
        """The newest manifest of which every file is intact, and what is wrong with newer ones."""
        errors: list[str] = []
        for sequence in self.sequences():
            try:
                manifest = self.manifest(sequence)
                for file in manifest.files():
                    self._check(file)
                return manifest, errors
            except (CorruptSnapshot, OSError) as error:
                errors.append(f"manifest {sequence}: {error}")
        return None, errors

    def _check(self, file: File) -> None:
        data = self.path(file).read_bytes()
        if len(data) != file.size or f"crc32:{zlib.crc32(data):08x}" != file.checksum:
            raise CorruptSnapshot(f"{file.path} is not what was written ({len(data)} bytes of {file.size})")

    def publish(self, manifest: Manifest) -> None:
        """Create the manifest, which publishes the snapshot; Fenced if another writer was first."""
        for kind in KINDS:
            sync(self.root / kind)
        try:
            create_exclusively(self._manifest_path(manifest.sequence), msgspec.json.encode(manifest))
        except (FileExistsError, FileNotFoundError):
            # Without its draft this writer was taken for dead, and another one has cleaned up after it.
            raise self._fenced(manifest.sequence) from None

    def remove(self, sequences: Iterable[int], files: Iterable[str]) -> None:
        """Remove manifests, then the files that only they name; in this order a crash leaves only orphaned files."""
        _unlink(map(self._manifest_path, sequences))
        _unlink(self.root / path for path in files)

    def sweep_attempt(self, sequence: int) -> int:
        """Remove the files of a cycle that failed; files of other writers never have its sequence."""
        return _unlink(path for kind in KINDS for path in (self.root / kind).glob(f"{sequence:012d}-*"))

    def check_newest(self, sequence: int) -> None:
        """Raise Fenced if there is a manifest newer than the writer's own."""
        if max(self.sequences(), default=0) > sequence:
            raise self._fenced(sequence + 1)

    def _fenced(self, sequence: int) -> Fenced:
        return Fenced(
            f"another Warren has published manifest {sequence} in {self.root}: this one stops; "
            "run only one `warren run` on a data directory"
        )

    def sweep(self, named: Iterable[str]) -> int:
        """Remove every file that no manifest names; only the writer of the newest manifest may do so."""
        kept = {self.root / path for path in named}
        _unlink((self.root / "manifests").glob("*.draft"))
        return _unlink(path for kind in KINDS for path in (self.root / kind).iterdir() if path not in kept)

    def _manifest_path(self, sequence: int) -> Path:
        return self.root / "manifests" / f"{sequence:020d}.json"


def _unlink(paths: Iterable[Path]) -> int:
    paths = list(paths)
    for path in paths:
        path.unlink(missing_ok=True)
    return len(paths)
