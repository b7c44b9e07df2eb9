"""JSON equal byte by byte to that of Go."""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warren.web.go_json import dumps, to_number

TEXT = st.text(st.characters(codec="utf-8"))


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ({"b": 1, "a": [None, True, 0.5]}, b'{"b":1,"a":[null,true,0.5]}'),
        ("<a href='x'>&amp;</a>", rb'''"\u003ca href='x'\u003e\u0026amp;\u003c/a\u003e"'''),
        ({"<": ">"}, rb'{"\u003c":"\u003e"}'),
        ("line\u2028and\u2029paragraph", rb'"line\u2028and\u2029paragraph"'),
        ("grün ✓ 🐇", '"grün ✓ 🐇"'.encode()),
        ('"\\/\n\t\r\x00\x1f\x7f', rb'"\"\\/\n\t\r\u0000\u001f' + b'\x7f"'),
        (2**63 - 1, b"9223372036854775807"),
    ],
)
def test_values_are_encoded_as_in_go(value: object, written: bytes) -> None:
    assert dumps(value) == written


@settings(max_examples=40)
@given(st.recursive(TEXT | st.integers(-(2**63), 2**63 - 1) | st.none(), lambda inner: st.dictionaries(TEXT, inner)))
def test_decoding_gives_the_same_value(value: Any) -> None:
    written = dumps(value)
    assert json.loads(written) == value
    assert not set(b"<>&") & set(written)


@pytest.mark.parametrize(
    ("filled", "of", "written"),
    [
        (0, 10, b"0"),
        (10, 10, b"1"),
        (1, 2, b"0.5"),
        (1, 3, b"0.33333334"),
        (2, 3, b"0.6666667"),
        (7, 10, b"0.7"),
        (99_999, 100_000, b"0.99999"),
        (1, 1_000, b"0.001"),
        (1, 30_000, b"0.000033333334"),
    ],
)
def test_shares_are_written_as_go_writes_a_float32(filled: int, of: int, written: bytes) -> None:
    assert dumps(to_number(float(np.float32(filled / of)))) == written
