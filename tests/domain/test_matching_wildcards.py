"""Patterns as people write them."""

import pyarrow as pa
import pytest

from warren.domain.matching import matches_wildcards


@pytest.mark.parametrize(
    ("pattern", "name", "fits"),
    [
        ("*", "", True),
        ("a*", "a", True),
        ("a*", "ba", False),
        ("*a", "ab", False),
        ("a?c", "abc", True),
        ("a?c", "ac", False),
        ("a?c", "a✓c", True),
        ("**a**", "bab", True),
        ("a.c", "abc", False),
        ("a.c", "a.c", True),
        ("[ab]", "a", False),
        ("[ab]", "[ab]", True),
        ("a b", "a b", True),
        ("a*", "a\nb", True),
        ("a", "a\n", False),
        (r"\d", r"\d", True),
        ("groß-*", "groß-1", True),
        ("A", "a", False),
    ],
)
def test_a_pattern_fits_a_whole_name(pattern: str, name: str, fits: bool) -> None:
    assert matches_wildcards(pa.array([name]), pattern).tolist() == [fits]


def test_nothing_fits_nothing() -> None:
    assert matches_wildcards(pa.array([], pa.string()), "a*").tolist() == []
