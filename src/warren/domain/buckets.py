"""Which bucket of the state a group lives in: by its cluster's and its own name alone, the same for every reader."""

import zlib

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

_MULTIPLIER = np.uint64(0x100000001B3)


def bucket_of(cluster: str, groups: pa.StringArray, buckets: int) -> NDArray[np.int64]:
    """The bucket of each group of one cluster, hashed over whole columns of bytes."""
    if len(groups) == 0:
        return np.zeros(0, dtype=np.int64)
    compact = pa.concat_arrays([groups])
    offsets = np.frombuffer(compact.buffers()[1], dtype=np.int32)[compact.offset :][: len(groups) + 1].astype(np.int64)
    data = compact.buffers()[2]
    text = np.frombuffer(data, dtype=np.uint8) if data is not None else np.zeros(0, dtype=np.uint8)
    lengths = np.diff(offsets)
    mixed = np.full(len(groups), zlib.crc32(cluster.encode()), dtype=np.uint64)
    for position in range(int(lengths.max())):
        has_byte = np.flatnonzero(lengths > position)
        mixed[has_byte] = (mixed[has_byte] ^ text[offsets[has_byte] + position]) * _MULTIPLIER
    mixed ^= mixed >> np.uint64(32)
    return (mixed % np.uint64(buckets)).astype(np.int64)
