"""What is inside files that are compressed: Parquet and Arrow files, and streams of gzip, zstd, lz4 and snappy."""

import contextlib
import gzip
import io
import zlib
from collections.abc import Callable, Iterator

import pyarrow as pa
import pyarrow.parquet as pq

_LZ4_BLOCK = b"LZ4Block"
"""Begins each block of Java's lz4 streams: a byte with the method, two sizes, a checksum, the block."""
_LZ4_HEADER = len(_LZ4_BLOCK) + 13
_SNAPPY_JAVA = b"\x82SNAPPY\x00"
"""Begins Java's snappy streams: two versions follow, then blocks, each after its size."""
_SNAPPY_HEADER = len(_SNAPPY_JAVA) + 8
_BROKEN = (pa.ArrowException, OSError, EOFError, ValueError, IndexError, zlib.error)
"""What a file may be that is still being written."""


def unpacked(content: bytes) -> Iterator[tuple[str, bytes]]:
    """The parts of a compressed content with its format; nothing of any other content."""
    for name, begins_with, unpack in _FORMATS:
        if content.startswith(begins_with):
            with contextlib.suppress(*_BROKEN):
                yield from ((name, part) for part in unpack(content))


def _parquet(content: bytes) -> Iterator[bytes]:
    yield from _buffers(pq.ParquetFile(io.BytesIO(content)).read())


def _arrow_file(content: bytes) -> Iterator[bytes]:
    yield from _buffers(pa.ipc.open_file(content).read_all())


def _arrow_stream(content: bytes) -> Iterator[bytes]:
    yield from _buffers(pa.ipc.open_stream(content).read_all())


def _buffers(table: pa.Table) -> Iterator[bytes]:
    """The values of all columns; texts lie there one after the other."""
    for column in table.columns:
        for chunk in column.chunks:
            yield from (buffer.to_pybytes() for buffer in chunk.buffers() if buffer is not None)


def _gzip(content: bytes) -> Iterator[bytes]:
    yield gzip.decompress(content)


def _compressed(codec: str) -> Callable[[bytes], Iterator[bytes]]:
    def unpack(content: bytes) -> Iterator[bytes]:
        with pa.input_stream(pa.py_buffer(content), compression=codec) as stream:
            # In parts, so that the beginning of a stream that is cut short is seen too.
            while part := stream.read(1 << 20):
                yield part

    return unpack


def _lz4_blocks(content: bytes) -> Iterator[bytes]:
    at = content.find(_LZ4_BLOCK)
    while at >= 0:
        method = content[at + len(_LZ4_BLOCK)] & 0xF0
        sizes = content[at + len(_LZ4_BLOCK) + 1 : at + _LZ4_HEADER]
        size, original_size = int.from_bytes(sizes[:4], "little"), int.from_bytes(sizes[4:8], "little")
        block = content[at + _LZ4_HEADER : at + _LZ4_HEADER + size]
        if original_size and method == 0x20:
            yield pa.decompress(block, original_size, "lz4_raw", asbytes=True)
        elif original_size:
            yield block
        at = content.find(_LZ4_BLOCK, at + _LZ4_HEADER + size)


def _snappy_blocks(content: bytes) -> Iterator[bytes]:
    at = _SNAPPY_HEADER
    while at < len(content):
        size = int.from_bytes(content[at : at + 4], "big")
        block = content[at + 4 : at + 4 + size]
        yield pa.decompress(block, _varint(block), "snappy", asbytes=True)
        at += 4 + size


def _varint(content: bytes) -> int:
    """The size of the original, with which a block of snappy begins."""
    size = 0
    for i, byte in enumerate(content):
        size |= (byte & 0x7F) << 7 * i
        if byte < 0x80:
            return size
    raise EOFError


_FORMATS: list[tuple[str, bytes, Callable[[bytes], Iterator[bytes]]]] = [
    ("parquet", b"PAR1", _parquet),
    ("arrow", b"ARROW1", _arrow_file),
    ("arrow", b"\xff\xff\xff\xff", _arrow_stream),
    ("gzip", b"\x1f\x8b", _gzip),
    ("zstd", b"\x28\xb5\x2f\xfd", _compressed("zstd")),
    ("lz4", b"\x04\x22\x4d\x18", _compressed("lz4")),
    ("lz4", _LZ4_BLOCK, _lz4_blocks),
    ("snappy", _SNAPPY_JAVA, _snappy_blocks),
]
