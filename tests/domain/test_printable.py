"""Text for logs and terminals."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warren.domain.printable import printable, printable_lines


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("", ""),
        ("plain é 소비자 🐇", "plain é 소비자 🐇"),
        ("a\nb\r\tc", r"a\nb\r\tc"),
        ("\x1b[2J\x00\x7f", r"\x1b[2J\x00\x7f"),
        ("\x9b2J\x85", r"\x9b2J\x85"),
        ("\u202eexe\u2066", r"\u202eexe\u2066"),
        ("\U000e0041\u200b", r"\U000e0041\u200b"),
        ("\ud800", r"\ud800"),
        ("back\\slash", "back\\slash"),
    ],
)
def test_what_cannot_be_seen_is_an_escape(text: str, shown: str) -> None:
    assert printable(text) == shown


@given(st.text(st.characters(exclude_categories=())))
def test_any_text_is_one_line_that_can_be_written(text: str) -> None:
    assert printable(text).isprintable()
    assert printable(printable(text)) == printable(text)
    printable(text).encode()
    assert len(printable_lines(text).split("\n")) == len(text.split("\n"))
