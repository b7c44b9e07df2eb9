"""Globs as telegraf has them."""

import pyarrow as pa
import pytest

from warren.domain.matching import glob_error, matches_globs


@pytest.mark.parametrize(
    ("glob", "name", "is_fitting"),
    [
        ("*", "", True),
        ("console-*", "console-consumer-1", True),
        ("console-*", "my-console-1", False),
        ("a?c", "abc", True),
        ("[ab]c", "bc", True),
        ("[!ab]c", "bc", False),
        ("[!ab]c", "xc", True),
        ("[a-c]1", "b1", True),
        ("[^a]", "^", True),
        ("{a,b*}x", "bbbx", True),
        ("{a,b*}x", "cx", False),
        ("a,b", "a,b", True),
        ("a}b", "a}b", True),
        (r"a\*", "a*", True),
        (r"a\*", "ab", False),
        ("a.b", "axb", False),
        ("__consumer_offsets", "__consumer_offsets", True),
    ],
)
def test_a_glob_fits_a_whole_name(glob: str, name: str, is_fitting: bool) -> None:
    assert glob_error(glob) is None
    assert matches_globs(pa.array([name]), [glob], []).tolist() == [is_fitting]
    assert matches_globs(pa.array([name]), [], [glob]).tolist() == [not is_fitting]


@pytest.mark.parametrize("glob", ["[a", "{a,b", "a\\", "[z-a]"])
def test_one_that_cannot_be_read_is_said(glob: str) -> None:
    assert glob_error(glob) is not None


def test_all_of_some_and_none_of_others() -> None:
    names = pa.array(["a1", "a2", "b1", None])
    assert matches_globs(names, [], []).tolist() == [True, True, True, False]
    assert matches_globs(names, ["a*", "b*"], ["*2"]).tolist() == [True, False, True, False]
