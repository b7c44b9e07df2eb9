"""Bad strings are found where they are, and a good one beside them stays good."""

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from warren.kafka.records.utf8 import is_not_utf8

# A busy machine is no mistake.
unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

# Bytes at the borders of every rule, so that short strings often go wrong in interesting ways.
BORDERS = b"\x00a\x7f\x80\x8f\x90\x9f\xa0\xbf\xc0\xc1\xc2\xdf\xe0\xec\xed\xee\xef\xf0\xf3\xf4\xf5\xff"
tricky = st.lists(st.sampled_from(BORDERS), max_size=6).map(bytes)
cut = st.text(max_size=4).map(lambda text: text.encode()[:-1])


def is_bad(raw: bytes) -> bool:
    try:
        raw.decode()
    except UnicodeDecodeError:
        return True
    return False


@unhurried
@given(st.lists(st.one_of(tricky, cut, st.text(max_size=6).map(str.encode), st.binary(max_size=6)), max_size=20))
def test_bad_strings_are_those_python_cannot_decode(strings: list[bytes]) -> None:
    data = np.frombuffer(b"??" + b"".join(strings), np.uint8)
    offsets = 2 + np.cumsum([0, *map(len, strings)])
    assert is_not_utf8(offsets, data).tolist() == [is_bad(raw) for raw in strings]
