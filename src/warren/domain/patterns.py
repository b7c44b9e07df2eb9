"""Names picked by a pattern as people write it: * stands for any characters, ? for any one."""

import re

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from warren.domain.filters import accepts

ANY = "*"
PATTERN_CHARS_MOST = 500


def picks(names: pa.Array, pattern: str) -> npt.NDArray[np.bool_]:
    """Mark the names that fit a pattern as a whole."""
    return accepts(names, None if pattern == ANY else _regex(pattern), None)


def _regex(pattern: str) -> str:
    # A row of stars says no more than one, and would only take longer.
    parts = re.split(r"(\*+|\?)", pattern)
    words = {"*": ".*", "?": "."}
    return rf"(?s)\A{''.join(words.get(part[:1], re.escape(part)) for part in parts)}\z"
