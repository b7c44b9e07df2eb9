"""JSON as Go writes it, so that whoever compares bytes with Burrow's finds the same."""

import numpy as np
import orjson

_ESCAPED = (
    (b"<", rb"\u003c"),
    (b">", rb"\u003e"),
    (b"&", rb"\u0026"),
    ("\u2028".encode(), rb"\u2028"),
    ("\u2029".encode(), rb"\u2029"),
)


def dumps(value: object) -> bytes:
    """A value as JSON; what HTML could take for its own is escaped, which can only stand within strings."""
    data = orjson.dumps(value)
    for plain, escaped in _ESCAPED:
        if plain in data:
            data = data.replace(plain, escaped)
    return data


def to_number(share: float) -> int | float:
    """A float32 as Go shows it: without a fraction where there is none, else in as few digits as tell it apart."""
    return int(share) if share == int(share) else float(str(np.float32(share)))
