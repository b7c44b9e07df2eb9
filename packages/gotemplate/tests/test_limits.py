"""No template can run away, whatever it says."""

import time
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gotemplate import Limits, TemplateError, parse
from gotemplate.burrow_functions import HELPERS

PIECES = (
    *(
        "{{",
        "}}",
        "{{- ",
        " -}}",
        "{{/*",
        "*/}}",
        " ",
        "\n",
        "text",
        "|",
        "(",
        ")",
        ".",
        ",",
        ":=",
        "=",
        "$",
        "$x",
        "'a'",
    ),
    *("if ", "else", "end", "range ", "with ", "define ", "block ", "template ", "break", "continue", "nil", "true"),
    *('"x"', "`y`", '"%d %v %-5s"', "0x1F", "1e3", "-7", "1_0", "9" * 30, ".A", ".B.C", ".list", "é", "\\", "\x00"),
    *("printf ", "print ", "len ", "index ", "slice ", "and ", "eq ", "lt ", "html ", "js ", "jsonencoder ", "add "),
)
SCRAPS = st.lists(st.sampled_from(PIECES), max_size=30).map("".join)
DATA = {"A": "text", "B": {"C": [1, None, 2.5]}, "list": [3, "x"]}

LEAF = st.sampled_from(
    ["{{.}}", "{{.A}}", "{{$x}}", "{{len .list}}", '{{printf "%v" .}}', "{{$x = .}}", "{{break}}", '{{template "t" .}}']
)
BODY = st.recursive(
    LEAF,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        inner.map(lambda body: f"{{{{if .}}}}{body}{{{{else}}}}x{{{{end}}}}"),
        inner.map(lambda body: f"{{{{with .list}}}}{body}{{{{end}}}}"),
        st.tuples(st.sampled_from([".", ".list", "1000000000", "$"]), inner).map(
            lambda parts: f"{{{{range {parts[0]}}}}}{parts[1]}{{{{end}}}}"
        ),
        inner.map(lambda body: f'{{{{$x = printf "%v%v" $x $x}}}}{body}'),
    ),
    max_leaves=6,
)
SMALL = Limits(steps=2_000, size=10_000, depth=50)
MEDIUM = Limits(steps=100_000)


@settings(max_examples=300, deadline=None)
@given(st.text() | SCRAPS | st.text(st.characters(exclude_categories=())))
def test_any_text_is_a_template_or_a_template_error(text: str) -> None:
    with suppress(TemplateError):
        parse(text, functions=HELPERS, limits=SMALL).render(DATA).encode()


@settings(max_examples=150, deadline=None)
@given(BODY)
def test_any_rendering_ends(body: str) -> None:
    text = '{{$x := "ab"}}' + body + '{{define "t"}}{{.}}{{template "t" .}}{{end}}'
    started = time.monotonic()
    with suppress(TemplateError):
        assert len(parse(text, limits=SMALL).render(DATA)) <= SMALL.size
    assert time.monotonic() - started < 5


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("{{range 1000000000}}{{end}}", "steps"),
        ("{{range 1000000000}}x{{end}}", "steps"),
        ('{{define "t"}}{{template "t"}}{{end}}{{template "t"}}', "exceeded maximum template depth"),
        ('{{define "t"}}{{template "t"}}{{template "t"}}{{end}}{{template "t"}}', "exceeded maximum template depth"),
        ('{{$x := "ab"}}{{range 100}}{{$x = printf "%s%s" $x $x}}{{end}}', "steps"),
        ('{{range 100}}{{printf "%1000000d" 1}}{{end}}', "steps"),
        ("{{printf `%1000000d` 1 | printf `" + "%[1]s" * 20 + "`}}", "a text of more than 16777216 characters"),
        ('{{$x := printf "%1000000d" 1}}{{range 1000000000}}{{len $x}}{{end}}', "steps"),
        ("{{" + "(" * 100 + "1" + ")" * 100 + "}}", "nested more than"),
        ("{{if 1}}" * 100 + "{{end}}" * 100, "nested more than"),
    ],
)
def test_a_template_that_would_run_away_is_stopped(text: str, complaint: str) -> None:
    with pytest.raises(TemplateError, match=complaint):
        parse(text, limits=MEDIUM).render(None)


def test_output_that_gets_too_long_is_stopped() -> None:
    with pytest.raises(TemplateError, match="more than 100 characters of output"):
        parse("{{range .}}text{{end}}", limits=Limits(size=100)).render([1] * 26)


def test_templates_may_call_each_other_deeply() -> None:
    text = '{{define "t"}}{{if .}}{{template "t" (minus . 1)}}{{else}}done{{end}}{{end}}{{template "t" 5000}}'
    assert parse(text, functions=HELPERS).render(None) == "done"


def test_a_chain_of_else_if_may_be_long() -> None:
    text = "{{if false}}" + "{{else if false}}" * 500 + "{{else}}last{{end}}"
    assert parse(text).render(None) == "last"


def test_data_nested_beyond_all_sense_is_an_error() -> None:
    data: list[object] = []
    for _ in range(5_000):
        data = [data]
    with pytest.raises(TemplateError, match="nested too deeply"):
        parse("{{.}}").render(data)


def test_data_that_go_could_not_have_is_an_error() -> None:
    with pytest.raises(TemplateError, match="a template cannot use a object"):
        parse("{{.x}}").render({"x": object()})
