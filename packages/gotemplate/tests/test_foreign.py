"""Which parts of a rendering others chose, whatever functions their texts went through."""

import pytest

from gotemplate import Foreign, Part, Source, parse
from gotemplate.burrow_functions import HELPERS

OWN, FOREIGN, ENCODED = Source.OWN, Source.FOREIGN, Source.ENCODED
DATA = {"name": Foreign("a b"), "own": "x/y", "names": [Foreign("c"), "d"], "empty": Foreign("")}


@pytest.mark.parametrize(
    ("template", "parts"),
    [
        ("plain", [("plain", OWN)]),
        ("{{.own}}", [("x/y", OWN)]),
        ("<{{.name}}>", [("<", OWN), ("a b", FOREIGN), (">", OWN)]),
        ("{{.empty}}", [("", FOREIGN)]),
        ('{{printf "%s=%s" .own .name}}', [("x/y", OWN), ("=", OWN), ("a b", FOREIGN)]),
        ('{{printf "%s!" (printf "<%s>" .name)}}', [("<", OWN), ("a b", FOREIGN), (">", OWN), ("!", OWN)]),
        ('{{printf "%5s|" .name}}', [("  a b", FOREIGN), ("|", OWN)]),
        ('{{printf .name "x"}}', [("a b%!(EXTRA string=x)", FOREIGN)]),
        ('{{printf "%c" (index .name 0)}}', [("a", FOREIGN)]),
        ("{{print .own .name}}", [("x/y", OWN), ("a b", FOREIGN)]),
        ("{{urlquery .own .name}}", [("x%2Fy", OWN), ("a+b", ENCODED)]),
        ('{{urlquery .name | printf "<%s>"}}', [("<", OWN), ("a+b", ENCODED), (">", OWN)]),
        ("{{urlquery .name | html}}", [("a+b", FOREIGN)]),
        ("{{urlquery .name | urlquery}}", [("a%2Bb", ENCODED)]),
        ("{{html .name}}{{js .own}}", [("a b", FOREIGN), ("x/y", OWN)]),
        ("{{jsonencoder .names}}", [('["c","d"]', FOREIGN)]),
        ("{{.names}}", [("[c d]", FOREIGN)]),
        ("{{range .names}}{{.}},{{end}}", [("c", FOREIGN), (",", OWN), ("d", OWN), (",", OWN)]),
        ("{{slice .name 0 1}}{{slice .own 0 1}}", [("a", FOREIGN), ("x", OWN)]),
        ("{{index .names 0}}{{or .empty .own}}{{and .own .name}}", [("c", FOREIGN), ("x/y", OWN), ("a b", FOREIGN)]),
        ('{{len .name}}{{eq .name "a b"}}', [("3", OWN), ("true", OWN)]),
        ("{{$x := .name}}{{with .own}}{{$x}}{{end}}", [("a b", FOREIGN)]),
        ('{{define "t"}}{{.}}{{end}}{{template "t" .name}}', [("a b", FOREIGN)]),
    ],
)
def test_the_parts_of_a_rendering(template: str, parts: list[tuple[str, Source]]) -> None:
    rendered = parse(template, functions=HELPERS)
    found = list(rendered.render_parts(DATA))
    if all(source is OWN for _, source in parts):
        parts = [("".join(text for text, _ in parts), OWN)]
    assert found == [Part(*part) for part in parts]
    assert rendered.render(DATA) == "".join(text for text, _ in parts)
