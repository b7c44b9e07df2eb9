"""Which bucket of the state a group lives in: by its cluster's and its own name alone, the same for every reader."""

import zlib

import numpy as np
import pyarrow as pa

from warren.domain.arrays import Ints, offsets_and_bytes

_MULTIPLIER = np.uint64(0x100000001B3)


def bucket_of(cluster: str, groups: pa.StringArray, buckets: int) -> Ints:
    """The bucket of each group of one cluster, hashed over whole columns of bytes."""
    offsets, text = offsets_and_bytes(groups)
    lengths = np.diff(offsets)
    mixed = np.full(len(groups), zlib.crc32(cluster.encode()), dtype=np.uint64)
    for position in range(int(lengths.max(initial=0))):
        has_byte = np.flatnonzero(lengths > position)
        mixed[has_byte] = (mixed[has_byte] ^ text[offsets[has_byte] + position]) * _MULTIPLIER
    mixed ^= mixed >> np.uint64(32)
    return (mixed % np.uint64(buckets)).astype(np.int64)
