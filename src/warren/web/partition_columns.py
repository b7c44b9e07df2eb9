"""The columns of all partitions in the order of the index, read one bucket after the other."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from warren.domain.arrays import Codes, Ints, ranges
from warren.snapshot.reader import Snapshot
from warren.snapshot.schemas import PARTITIONS

NAME_COLUMNS = ("topic", "owner", "client_id")


@dataclass(frozen=True, slots=True)
class PartitionColumns:
    """Flat columns, one value per row; names are codes, which are positions in `names`."""

    numbers: dict[str, NDArray[np.generic]]
    codes: dict[str, Codes]
    names: dict[str, pa.StringArray]
    """The names, of which only topics are distinct; the last one is empty, for rows without an owner."""


def read_columns(snapshot: Snapshot, bucket: Ints, first: Ints, size: Ints, columns: Sequence[str]) -> PartitionColumns:
    """Read the partitions of groups, given by their bucket, first row in its file and size; in the order of the groups.

    Only one bucket at a time is in memory twice.
    """
    rows, target = int(size.sum()), np.cumsum(size) - size
    types = {name: np.dtype(PARTITIONS.field(name).type.to_pandas_dtype()) for name in columns}
    numbers = {name: np.empty(rows, dtype) for name, dtype in types.items()}
    codes = {name: np.empty(rows, np.int32) for name in NAME_COLUMNS}
    names: dict[str, list[pa.StringArray]] = {name: [] for name in NAME_COLUMNS}
    for number in range(len(snapshot.manifest.buckets)):
        own = np.flatnonzero(bucket == number)
        rows_of_file, rows_of_index = ranges(first[own], size[own]), ranges(target[own], size[own])
        table = snapshot.partitions_of_bucket(number, [*NAME_COLUMNS, *columns])
        for name, column in numbers.items():
            column[rows_of_index] = table[name].to_numpy()[rows_of_file]
        for name, column in codes.items():
            column[rows_of_index] = _encode(table[name], names[name])[rows_of_file]
    texts = {name: pa.concat_arrays([pa.array([], pa.string()), *parts]) for name, parts in names.items()}
    texts["topic"], codes["topic"] = _distinct(texts["topic"], codes["topic"])
    for name, column in codes.items():
        column[column < 0] = len(texts[name])
        texts[name] = pa.concat_arrays([texts[name], pa.array([""], pa.string())])
    return PartitionColumns(numbers, codes, texts)


def _encode(column: pa.ChunkedArray, names: list[pa.StringArray]) -> Codes:
    """The codes of a column, -1 for nulls; its names are added to those of other buckets."""
    known, codes = sum(map(len, names)), []
    for chunk in column.chunks:
        indices = chunk.indices
        code = indices.fill_null(-1).to_numpy(zero_copy_only=False) if indices.null_count else indices.to_numpy()
        codes.append(np.where(code < 0, -1, code + known).astype(np.int32))
        names.append(chunk.dictionary.cast(pa.string()))
        known += len(chunk.dictionary)
    return np.concatenate([np.zeros(0, np.int32), *codes])


def _distinct(names: pa.StringArray, codes: Codes) -> tuple[pa.StringArray, Codes]:
    encoded = pc.dictionary_encode(names)
    return encoded.dictionary, np.append(encoded.indices.to_numpy(), np.int32(-1))[codes]
