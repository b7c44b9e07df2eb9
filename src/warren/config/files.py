"""The configuration file: burrow.toml, else burrow.yaml or burrow.json, and the line of every key in it."""

import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

TablePath = tuple[str, ...]

NAMES = ("burrow.toml", "burrow.yaml", "burrow.yml", "burrow.json")


class UnreadableFile(Exception):  # noqa: N818 - reads as what it is
    """The file cannot be read, or is not what its name says."""


def find_file(config_dir: Path) -> Path:
    """The configuration file of a directory; if there is none, the path of burrow.toml."""
    return next((config_dir / name for name in NAMES if (config_dir / name).exists()), config_dir / NAMES[0])


def parse(file: Path) -> tuple[dict[str, Any], dict[TablePath, int]]:
    """The tables of a file, and the line on which each table and key first appears."""
    try:
        text = file.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise UnreadableFile(f"cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UnreadableFile(f"must be UTF-8 text: {error}") from error
    kind = "TOML" if file.suffix == ".toml" else "JSON" if file.suffix == ".json" else "YAML"
    try:
        if kind == "TOML":
            return tomllib.loads(text), toml_lines(text)
        tables = json.loads(text) if kind == "JSON" else yaml.safe_load(text)
    except (tomllib.TOMLDecodeError, json.JSONDecodeError, yaml.YAMLError, RecursionError) as error:
        raise UnreadableFile(f"must be {kind}: {' '.join(str(error).split())}") from error
    if not isinstance(tables, dict | None):
        raise UnreadableFile("must contain sections with keys")
    return _with_string_keys(tables or {}), yaml_lines(text)


def toml_lines(text: str) -> dict[TablePath, int]:
    """The line on which each table and key of a valid TOML text first appears; tomllib does not tell."""
    lines: dict[TablePath, int] = {}
    listed: dict[TablePath, int] = {}
    table: TablePath = ()
    statement, start = "", 1
    for line_number, line in enumerate(text.split("\n"), start=1):
        start = start if statement else line_number
        statement += f"{line}\n"
        # A value over many lines can only end on one of these; trying each line would be quadratic.
        if start != line_number and not re.search(r"[\]}]|\"\"\"|'''", line):
            continue
        try:
            parsed = tomllib.loads(statement)
        except tomllib.TOMLDecodeError:
            continue
        paths = list(_paths(parsed))
        is_header = statement.lstrip().startswith("[")
        if statement.lstrip().startswith("[["):
            listed[paths[-1]] = listed.get(paths[-1], 0) + 1
            paths.append((*paths[-1], str(listed[paths[-1]])))
        for path in paths:
            lines.setdefault(path if is_header else table + path, start)
        if is_header:
            table = paths[-1]
        statement = ""
    return lines


def yaml_lines(text: str) -> dict[TablePath, int]:
    """The same for YAML, and for JSON, which nearly always is YAML too."""
    lines: dict[TablePath, int] = {}
    try:
        waiting: list[tuple[TablePath, Any]] = [((), yaml.compose(text, Loader=yaml.SafeLoader))]
    except yaml.YAMLError:
        return lines
    while waiting:
        prefix, node = waiting.pop()
        if isinstance(node, yaml.MappingNode):
            for name, inner in node.value:
                path = (*prefix, str(name.value))
                lines.setdefault(path, name.start_mark.line + 1)
                waiting.append((path, inner))
        # Only sections come in lists; a list within a list might contain itself.
        if isinstance(node, yaml.SequenceNode) and len(prefix) == 1:
            for index, inner in enumerate(node.value, start=1):
                lines.setdefault((*prefix, str(index)), inner.start_mark.line + 1)
                waiting.append(((*prefix, str(index)), inner))
    return lines


def _paths(value: object, prefix: TablePath = ()) -> Iterable[TablePath]:
    if prefix:
        yield prefix
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _paths(inner, (*prefix, name))


def _with_string_keys(table: Mapping[Any, Any]) -> dict[str, Any]:
    # YAML reads 1 and yes as a number and a boolean; as the name of a section or key they are meant as strings.
    return {
        name if isinstance(name, str) else json.dumps(name, default=str): _with_string_keys(value)
        if isinstance(value, dict)
        else value
        for name, value in table.items()
    }
