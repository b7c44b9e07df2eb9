import re
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warren.domain.matching import matches_lists, regex_error

BURROWS_OWN_DENYLIST = "^(console-consumer-|python-kafka-consumer-|quick-).*$"


@pytest.mark.parametrize(
    ("group", "allowlist", "denylist", "is_accepted"),
    [
        ("orders", None, None, True),
        ("orders", "", "", True),
        ("orders", "^orders$", None, True),
        ("orders-eu", "^orders$", None, False),
        ("orders-eu", "rder", None, True),
        ("orders-eu", None, "eu", False),
        ("orders-eu", "orders", "eu", False),
        ("payments", "orders", "eu", False),
        ("payments", None, "eu", True),
        ("Orders", "orders", None, False),
        ("Orders", "(?i)orders", None, True),
        ("console-consumer-17", None, BURROWS_OWN_DENYLIST, False),
        ("my-console-consumer-17", None, BURROWS_OWN_DENYLIST, True),
        ("배송-추적", "^배송", None, True),
        ("배송-추적", None, r"^\w", True),
        ("배송-추적", "^..-..$", None, True),
        ("", "^$", None, True),
        ("", "x", None, False),
        ("two\nlines", "two$", None, False),
        ("two\nlines", "two.lines", None, False),
        ("a.b", r"^a\.b$", None, True),
        ("acb", r"^a\.b$", None, False),
        (None, None, None, False),
        (None, ".*", None, False),
        (None, None, "x", False),
    ],
)
def test_a_group_is_watched_by_allowlist_then_denylist(
    group: str | None, allowlist: str | None, denylist: str | None, is_accepted: bool
) -> None:
    assert matches_lists(pa.array([group], pa.string()), allowlist, denylist).tolist() == [is_accepted]


@settings(deadline=None)  # a busy machine is no mistake
@given(
    groups=st.lists(st.none() | st.text("ab-\n", max_size=5), max_size=20),
    allowlist=st.sampled_from([None, "", "a", "^b", "a-*b", "b$", "^[ab]*$"]),
    denylist=st.sampled_from([None, "", "-", "^a", "bb"]),
)
def test_any_column_is_judged_as_one_group_at_a_time_would_be(
    groups: list[str | None], allowlist: str | None, denylist: str | None
) -> None:
    def is_accepted(group: str | None) -> bool:
        # Python's $ also matches before a last newline, RE2's does not.
        allowed, denied = ((pattern or "").replace("$", r"\Z") for pattern in (allowlist, denylist))
        if group is None or not re.search(allowed, group):
            return False
        return not (denied and re.search(denied, group))

    expected = [is_accepted(group) for group in groups]
    column = pa.array(groups, pa.string())
    assert matches_lists(column, allowlist, denylist).tolist() == expected
    assert matches_lists(column.dictionary_encode(), allowlist, denylist).tolist() == expected
    assert matches_lists(column.cast(pa.large_string()), allowlist, denylist).tolist() == expected
    assert matches_lists(pa.concat_arrays([column, column])[len(groups) :], allowlist, denylist).tolist() == expected


def test_the_mask_is_a_boolean_array_of_its_own() -> None:
    groups = pa.array(["a", "b"])
    mask = matches_lists(groups, "a", None)
    mask[:] = True
    assert mask.dtype == np.bool_
    assert matches_lists(groups, "a", None).tolist() == [True, False]


@pytest.mark.parametrize("pattern", ["", ".*", BURROWS_OWN_DENYLIST, "(?i)x", r"\pL+", "a|b", "[[:alpha:]]"])
def test_patterns_of_re2_have_no_mistake(pattern: str) -> None:
    assert regex_error(pattern) is None


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("(", "missing )"),
        ("[z-a]", "z-a"),
        ("*", "no argument"),
        ("a{2000}", "repetition"),
        ("(?=a)", "(?="),
        (r"(a)\1", r"\1"),
    ],
)
def test_what_re2_cannot_read_is_said(pattern: str, why: str) -> None:
    mistake = regex_error(pattern)
    assert mistake is not None
    assert why in mistake


def test_patterns_are_checked_without_pandas() -> None:
    # Every process checks the patterns of the configuration, and pandas would cost each of them a second.
    script = "import sys, warren.config, warren.report, warren.kafka.sampler_process; print('pandas' in sys.modules)"
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ended.stdout == "False\n"
