"""Text built column by column."""

from collections.abc import Callable
from functools import lru_cache

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from warren.domain.arrays import Bools, Ints, offsets_and_bytes

_NOT_PLAIN_IN_JSON = r'["\\\x00-\x1f]'


def joined(*parts: str | pa.StringArray) -> pa.StringArray:
    """Columns and constants, concatenated row by row."""
    return pc.binary_join_element_wise(*(_constant(part) if isinstance(part, str) else part for part in parts), "")


def interleaved(*columns: tuple[pa.StringArray, NDArray[np.generic] | None]) -> pa.StringArray:
    """The texts of some columns, one text of each in turn; a column is given by its texts and each row's position.

    A column whose positions are None has one text per row. Long texts that many rows share are copied once only.
    """
    rows = next(len(texts) for texts, position in columns if position is None)
    order, first = np.empty((rows, len(columns)), np.int32), 0
    for number, (texts, position) in enumerate(columns):
        order[:, number] = np.arange(first, first + rows) if position is None else position
        if position is not None:
            order[:, number] += first
        first += len(texts)
    return pa.concat_arrays([texts for texts, _ in columns]).take(pa.array(order.reshape(-1)))


@lru_cache(1_000)
def _constant(text: str) -> pa.StringScalar:
    """A constant for Arrow; to convert one takes as long as to join a dozen rows."""
    return pa.scalar(text)


def as_text(numbers: NDArray[np.generic]) -> pa.StringArray:
    """Numbers as text."""
    return pc.cast(pa.array(numbers), pa.string())


def as_json(numbers: NDArray[np.floating]) -> pa.StringArray:
    """Numbers as JSON; NaN is null."""
    return null_where(np.isnan(numbers), as_text(numbers))


def null_where(is_null: Bools, texts: pa.StringArray) -> pa.StringArray:
    """The texts, with a null of JSON in place of some."""
    return pc.if_else(pa.array(is_null), "null", texts) if is_null.any() else texts


def lists(edges: Ints, texts: pa.StringArray) -> pa.StringArray:
    """The texts between each edge and the next as one text, separated by commas."""
    return pc.binary_join(pa.ListArray.from_arrays(pa.array(edges.astype(np.int32, copy=False)), texts), ",")


def replace_matching(
    names: pa.StringArray, plain: pa.StringArray, pattern: str, rewrite: Callable[[str], str]
) -> pa.StringArray:
    """The plain form of each name, except those that match a pattern: each of these is rewritten on its own."""
    matching = np.flatnonzero(np.asarray(pc.match_substring_regex(names, pattern)))
    if matching.size == 0:
        return plain
    others = pa.array([rewrite(name) for name in names.take(pa.array(matching)).to_pylist()], pa.string())
    is_matching = np.zeros(len(names), dtype=np.bool_)
    is_matching[matching] = True
    return pc.replace_with_mask(plain, pa.array(is_matching), others)


def json_strings(names: pa.StringArray) -> pa.StringArray:
    """Names as JSON strings."""
    return replace_matching(
        names, joined('"', names, '"'), _NOT_PLAIN_IN_JSON, lambda name: orjson.dumps(name).decode()
    )


def bytes_of(column: pa.StringArray) -> memoryview:
    """The bytes of all texts of a column, one after the other, without a copy."""
    bounds, data = offsets_and_bytes(column)
    return data[int(bounds[0]) : int(bounds[-1])].data
