"""The data directory: files with unique names, fsynced, and manifests that are created exclusively."""

import uuid
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from warren.durable import create_exclusively, sync, write_new
from warren.errors import CorruptSnapshot, Fenced, NoSnapshot
from warren.snapshot.manifest import File, Manifest, from_json, to_json

KINDS = ("partitions", "groups", "heads", "layouts")
_NAMED = {"partitions": ("cluster", "group", "topic", "owner", "client_id"), "groups": ("cluster",)}


class Store:
    """Reads and writes the files below one data directory."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def create(self) -> None:
        """Make the directories; harmless when they are there."""
        for kind in (*KINDS, "manifests"):
            (self.root / kind).mkdir(parents=True, exist_ok=True)

    def write_table(self, kind: str, stem: str, table: pa.Table, encoding: dict[str, str] | None = None) -> File:
        """Write a Parquet file under a name nobody has used before, and make it durable."""

        def encode(sink: pa.BufferOutputStream) -> None:
            pq.write_table(
                table,
                sink,
                row_group_size=65_536,
                compression="lz4",
                use_dictionary=[f.name for f in table.schema if pa.types.is_dictionary(f.type)],
                column_encoding=encoding,
                write_statistics=False,
            )

        return self._write(kind, f"{stem}-{uuid.uuid4().hex[:12]}.parquet", encode)

    def write_arrow(self, kind: str, stem: str, table: pa.Table) -> File:
        """Write an Arrow file that readers can map into memory, durable and under a new name."""

        def encode(sink: pa.BufferOutputStream) -> None:
            with pa.ipc.new_file(sink, table.schema) as writer:
                writer.write_table(table)

        return self._write(kind, f"{stem}-{uuid.uuid4().hex[:12]}.arrow", encode)

    def _write(self, kind: str, name: str, encode: Callable[[pa.BufferOutputStream], None]) -> File:
        sink = pa.BufferOutputStream()
        encode(sink)
        data = sink.getvalue()
        write_new(self.root / kind / name, memoryview(data))
        return File(f"{kind}/{name}", data.size, f"crc32:{zlib.crc32(data):08x}")

    def path(self, file: File) -> Path:
        """Where a file of a manifest lies."""
        return self.root / file.path

    def read_parquet(self, file: File, columns: list[str] | None = None) -> pa.Table:
        """A whole Parquet file, its names left dictionary-encoded."""
        named = _NAMED.get(file.path.partition("/")[0], ())
        source = pq.ParquetFile(self.path(file), memory_map=True, read_dictionary=list(named))
        return source.read(columns=columns, use_threads=False)

    def read_arrow(self, file: File) -> pa.Table:
        """An Arrow file, mapped: only the pages that are looked at are read."""
        with pa.memory_map(str(self.path(file))) as source:
            return pa.ipc.open_file(source).read_all()

    def sequences(self) -> list[int]:
        """The numbers of all manifests, newest first."""
        folder = self.root / "manifests"
        try:
            names = [path.name for path in folder.iterdir()]
        except FileNotFoundError:
            return []
        return sorted((int(n[:-5]) for n in names if n.endswith(".json") and n[:-5].isdigit()), reverse=True)

    def manifest(self, sequence: int) -> Manifest:
        """One manifest by its number."""
        return from_json(self._manifest_path(sequence).read_bytes())

    def newest(self) -> Manifest:
        """The newest manifest that can be read; NoSnapshot when there is none at all."""
        trouble: CorruptSnapshot | None = None
        for sequence in self.sequences():
            try:
                return self.manifest(sequence)
            except FileNotFoundError:
                continue
            except CorruptSnapshot as error:
                trouble = trouble or error
        if trouble is not None:
            raise trouble
        raise NoSnapshot(f"no snapshot in {self.root} yet: start `warren run`, or wait for its first cycle")

    def newest_whole(self) -> tuple[Manifest | None, list[str]]:
        """The newest manifest whose every file is there, unharmed, and what was wrong with newer ones."""
        troubles: list[str] = []
        for sequence in self.sequences():
            try:
                manifest = self.manifest(sequence)
                for file in manifest.files():
                    self._check(file)
                return manifest, troubles
            except (CorruptSnapshot, OSError) as error:
                troubles.append(f"manifest {sequence}: {error}")
        return None, troubles

    def _check(self, file: File) -> None:
        data = self.path(file).read_bytes()
        if len(data) != file.size or f"crc32:{zlib.crc32(data):08x}" != file.checksum:
            raise CorruptSnapshot(f"{file.path} is not what was written ({len(data)} bytes of {file.size})")

    def publish(self, manifest: Manifest) -> None:
        """Make the manifest appear, whole and exclusively; Fenced when another writer was first."""
        for kind in KINDS:
            sync(self.root / kind)
        try:
            create_exclusively(self._manifest_path(manifest.sequence), to_json(manifest))
        except (FileExistsError, FileNotFoundError):
            # Without its draft this writer was taken for dead, and another one has cleaned up after it.
            raise self._fenced(manifest.sequence) from None

    def remove(self, sequences: Iterable[int], files: Iterable[str]) -> None:
        """Forget manifests, then the files that only they named; in that order, so that a crash leaves only orphans."""
        for sequence in sequences:
            self._manifest_path(sequence).unlink(missing_ok=True)
        for path in files:
            (self.root / path).unlink(missing_ok=True)

    def sweep_attempt(self, sequence: int) -> int:
        """Remove what a cycle that failed has written; another writer's files never carry its number."""
        removed = 0
        for kind in KINDS:
            for path in (self.root / kind).glob(f"{sequence:012d}-*"):
                path.unlink(missing_ok=True)
                removed += 1
        return removed

    def check_newest(self, sequence: int) -> None:
        """Fenced when there is a newer manifest than this one, which must be the writer's own."""
        if max(self.sequences(), default=0) > sequence:
            raise self._fenced(sequence + 1)

    def _fenced(self, sequence: int) -> Fenced:
        return Fenced(
            f"another Warren has published manifest {sequence} in {self.root}: this one stops; "
            "run only one `warren run` on a data directory"
        )

    def sweep(self, named: Iterable[str]) -> int:
        """Remove every file that is not named; only for the writer whose manifest is the newest."""
        named = set(named)
        removed = 0
        for kind in KINDS:
            for path in (self.root / kind).iterdir():
                if f"{kind}/{path.name}" not in named:
                    path.unlink(missing_ok=True)
                    removed += 1
        for draft in (self.root / "manifests").glob("*.draft"):
            draft.unlink(missing_ok=True)
        return removed

    def _manifest_path(self, sequence: int) -> Path:
        return self.root / "manifests" / f"{sequence:020d}.json"
