from pathlib import Path

import pytest

from warren.config.files import toml_lines
from warren.config.findings import Findings, did_you_mean, shown


def test_lines_are_found_through_values_over_many_lines() -> None:
    text = '''# a comment
top = 1
[a."b.c"] # [not.this]
x = [
  ["y = 1"],
  # z = 2
]
text = """
[d]
e = 1
"""
inline = {one = 1, two = {three = 3}}
dotted.key = 1

[[list]]
k = 1
[[list]]
k = 2
'''
    assert toml_lines(text) == {
        ("top",): 2,
        ("a",): 3,
        ("a", "b.c"): 3,
        ("a", "b.c", "x"): 4,
        ("a", "b.c", "text"): 8,
        ("a", "b.c", "inline"): 12,
        ("a", "b.c", "inline", "one"): 12,
        ("a", "b.c", "inline", "two"): 12,
        ("a", "b.c", "inline", "two", "three"): 12,
        ("a", "b.c", "dotted"): 13,
        ("a", "b.c", "dotted", "key"): 13,
        ("list",): 15,
        ("list", "1"): 15,
        ("list", "1", "k"): 16,
        ("list", "2"): 17,
        ("list", "2", "k"): 18,
    }


def test_a_list_of_ten_thousand_lines_is_one_value() -> None:
    text = "servers = [\n" + '"localhost:9092",\n' * 10_000 + "]\nnext = 1\n"
    assert toml_lines(text) == {("servers",): 1, ("next",): 10_003}


@pytest.mark.parametrize(
    ("path", "key", "expected"),
    [
        ((), None, "burrow.toml: is odd"),
        (("cluster", "a.b"), None, 'burrow.toml:2: [cluster."a.b"] is odd'),
        (("cluster", "a.b"), "servers", 'burrow.toml:3: [cluster."a.b"] servers is odd'),
        (("cluster", "a.b"), "no.where", 'burrow.toml:2: [cluster."a.b"] "no.where" is odd'),
        (("storage",), None, "burrow.toml: [storage] is odd"),
    ],
)
def test_a_finding_names_its_place_as_near_as_it_is_known(
    path: tuple[str, ...], key: str | None, expected: str
) -> None:
    findings = Findings(Path("burrow.toml"), toml_lines('\n[cluster."a.b"]\nservers = []\n'))
    findings.mistake("is odd", path, key)
    findings.warning("is odd", path, key)
    findings.note("is odd", path, key)
    assert findings.mistakes == findings.warnings == findings.notes == [expected]


def test_values_are_shown_on_one_line_and_not_too_long() -> None:
    assert shown("two\nlines") == '"two\\nlines"'
    assert shown(["배송", True, 1.5]) == '["배송", true, 1.5]'
    assert len(shown("x" * 1000)) < 130


def test_only_a_near_name_is_suggested() -> None:
    assert did_you_mean("topic-refesh", ["offset-refresh", "topic-refresh"]) == "; did you mean topic-refresh?"
    assert did_you_mean("colour", ["servers", "cluster"]) == ""
