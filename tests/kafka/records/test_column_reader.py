"""Exactly the strings that Python cannot decode are reported."""

import pyarrow as pa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from warren.kafka.records.column_reader import ColumnReader, FieldSpan
from warren.kafka.records.rejects import Reject

# A busy machine must not fail a test.
unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

# Bytes at the bounds of every rule, so that short strings are often invalid.
BOUNDARY_BYTES = b"\x00a\x7f\x80\x8f\x90\x9f\xa0\xbf\xc0\xc1\xc2\xdf\xe0\xec\xed\xee\xef\xf0\xf3\xf4\xf5\xff"
tricky = st.lists(st.sampled_from(BOUNDARY_BYTES), max_size=6).map(bytes)
truncated = st.text(max_size=4).map(lambda text: text.encode()[:-1])


def is_bad(raw: bytes) -> bool:
    try:
        raw.decode()
    except UnicodeDecodeError:
        return True
    return False


@unhurried
@given(st.lists(st.one_of(tricky, truncated, st.text(max_size=6).map(str.encode), st.binary(max_size=6)), max_size=20))
def test_strings_that_python_cannot_decode_are_not_utf8(strings: list[bytes]) -> None:
    reader = ColumnReader.over(pa.array(strings, pa.binary()), Reject.VALUE_TRUNCATED)
    decoded = reader.strings(FieldSpan(reader.position, reader.end - reader.position))
    assert (reader.reject == Reject.BAD_UTF8).tolist() == [is_bad(raw) for raw in strings]
    assert decoded.to_pylist() == [None if is_bad(raw) else raw.decode() for raw in strings]
