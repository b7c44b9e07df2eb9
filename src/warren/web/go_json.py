"""JSON as Go encodes it, so that answers equal Burrow's byte by byte."""

import msgspec
import numpy as np

_ESCAPES = ((b"<", rb"\u003c"), (b">", rb"\u003e"), (b"&", rb"\u0026"))
_LINE_ENDS = (("\u2028".encode(), rb"\u2028"), ("\u2029".encode(), rb"\u2029"))
_encoder = msgspec.json.Encoder()


def dumps(value: object) -> bytes:
    """Encode a value; characters that are special in HTML are escaped, which can only occur within strings."""
    data = _encoder.encode(value)
    # To search for several bytes takes longer than to encode most answers.
    for plain, escaped in _ESCAPES if data.isascii() else _ESCAPES + _LINE_ENDS:
        if plain in data:
            data = data.replace(plain, escaped)
    return data


def to_number(share: float) -> int | float:
    """A float32 as Go shows it: an integer without a fraction, else in as few digits as identify it."""
    return int(share) if share == int(share) else float(str(np.float32(share)))
