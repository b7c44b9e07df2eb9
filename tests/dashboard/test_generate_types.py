"""The dashboard's types of the API: made from the description, and up to date."""

import subprocess
import sys
from typing import Any

import pytest

from dashboard.generate_types import FILE, generated, type_of, typescript
from warren.domain.status import Status

NAMES = {"Colour": {"enum": ["red", "blue"]}}


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "integer"}, "number"),
        ({"type": "array", "items": {"type": "string"}}, "string[]"),
        ({"type": "array", "items": {"anyOf": [{"type": "number"}, {"type": "null"}]}}, "(number | null)[]"),
        ({"type": "array", "prefixItems": [{"type": "string"}, {"type": "boolean"}]}, "[string, boolean]"),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, "Record<string, number>"),
        (
            {
                "type": "object",
                "propertyNames": {"$ref": "#/components/schemas/Colour"},
                "additionalProperties": {"type": "integer"},
            },
            "Partial<Record<Colour, number>>",
        ),
        ({"enum": ["a", "b"]}, '"a" | "b"'),
        ({"$ref": "#/components/schemas/Colour", "description": "A colour"}, "Colour"),
    ],
)
def test_types(schema: dict[str, Any], expected: str) -> None:
    assert type_of(schema) == expected


def test_a_whole_file() -> None:
    car = {
        "description": "A car.",
        "properties": {"colour": {"$ref": "x/Colour", "description": "Its colour"}, "top-speed": {"type": "integer"}},
        "required": ["colour"],
    }
    made = typescript({int: {"type": "integer"}}, {**NAMES, "Car": car}, {"/cars": {"count": int}})
    assert made.split("\n\n")[1:] == [
        '/** A car. */\nexport interface Car {\n  /** Its colour */\n  colour: Colour\n  "top-speed"?: number\n}',
        'export const COLOUR_VALUES = ["red", "blue"] as const\nexport type Colour = (typeof COLOUR_VALUES)[number]',
        '/** The answers of GET requests by path. */\nexport interface Answers {\n  "/cars": { count: number }\n}\n',
    ]


def test_statuses_are_in_the_servers_order_of_severity() -> None:
    values = ", ".join(f'"{status.name}"' for status in sorted(Status))
    assert f"export const STATUS_VALUES = [{values}] as const" in generated()


def test_the_committed_file_is_up_to_date() -> None:
    assert (
        subprocess.run([sys.executable, FILE.parents[1] / "generate_types.py", "--check"], check=False).returncode == 0
    )
