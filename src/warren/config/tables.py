"""Sorts the tables of the configuration file into sections, and lets the environment override their keys.

BURROW_LOGGING_LEVEL overrides `level` of `[logging]`.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from warren.config.files import TablePath
from warren.config.findings import Findings, did_you_mean, shown
from warren.config.section import RawSection, Sections, keys_of

OWN_PREFIX = "WARREN"


@dataclass(frozen=True)
class SectionKind:
    """A kind of section: its classes, of which `class-name` chooses one, and how it is written."""

    classes: tuple[type, ...]
    shape: Literal["named", "single", "listed"] = "named"
    """`[cluster.NAME]`, `[general]` or `[[route]]`."""
    is_optional: bool = False
    """Whether it means something to leave out the section, although none of its keys is required."""


def read_sections(
    tables: Mapping[str, Any], kinds: Mapping[str, SectionKind], environ: Mapping[str, str], findings: Findings
) -> Sections:
    """All sections of a file with their values read, by kind and name."""
    sections: Sections = {kind: {} for kind in kinds}
    for written, table in tables.items():
        kind = written.lower()  # Burrow accepts its own words in any case; names that users choose keep theirs.
        if kind not in kinds:
            what = f"is not a known section and is ignored{did_you_mean(kind, kinds)}"
            findings.warning(what, (written,))
            continue
        for path, content in _split(kinds[kind], kind, written, table, findings):
            name = path[-1] if len(path) > 1 else ""
            if name in sections[kind]:
                findings.mistake(f"is defined twice, also as {sections[kind][name].title}", path)
            elif isinstance(content, dict):
                sections[kind][name] = RawSection(path, content, kinds[kind].classes[0], findings)
            else:
                findings.mistake(f"must be a section, not {shown(content)}", path)
    _choose_classes(sections, kinds, findings)
    _override(sections, kinds, environ, findings)
    for section in all_sections(sections):
        section.read_values()
    return sections


def all_sections(sections: Sections) -> Iterator[RawSection]:
    """Every section of every kind."""
    return (section for by_name in sections.values() for section in by_name.values())


def _split(
    declared: SectionKind, kind: str, written: str, table: object, findings: Findings
) -> Iterator[tuple[TablePath, object]]:
    """The sections that a table of the file holds, each with its path."""
    if declared.shape == "listed" and isinstance(table, list):
        yield from (((written, str(index)), item) for index, item in enumerate(table, start=1))
    elif declared.shape == "listed":
        findings.mistake(f"must be a list of sections, each [[{kind}]]", (written,))
    elif declared.shape == "single" or not isinstance(table, dict):
        yield (written,), table
    else:
        for name, content in table.items():
            if not isinstance(content, dict):
                findings.mistake(f"must be in a section with a name, such as [{kind}.local]", (written,), name)
            elif not name or not name.isprintable():
                findings.mistake("must have a name of printable characters", (written, name))
            else:
                yield (written, name), content


def _choose_classes(sections: Sections, kinds: Mapping[str, SectionKind], findings: Findings) -> None:
    # A section with a wrong class-name is read on all the same, so that its other mistakes are found.
    for kind, declared in kinds.items():
        by_name = {cls.class_name: cls for cls in declared.classes if hasattr(cls, "class_name")}
        if not by_name or "class-name" in keys_of(declared.classes[0]):
            continue
        allowed = " or ".join(f'"{name}"' for name in by_name)
        for section in sections[kind].values():
            written = next((key for key in section.table if key.lower() == "class-name"), None)
            class_name = section.table[written] if written else None
            if written is None:
                section.mistake(f"class-name is missing: must be {allowed}")
            elif not isinstance(class_name, str) or class_name not in by_name:
                findings.mistake(f"= {shown(class_name)}: must be {allowed}", section.path, written)
            else:
                section.cls = by_name[class_name]


def _override(
    sections: Sections, kinds: Mapping[str, SectionKind], environ: Mapping[str, str], findings: Findings
) -> None:
    general = (
        {key.lower(): value for key, value in sections["general"][""].table.items()} if sections["general"] else {}
    )
    default_prefix = kinds["general"].classes[0]().env_var_prefix
    prefixes = (str(general.get("env-var-prefix") or default_prefix), OWN_PREFIX)
    for kind, declared in kinds.items():
        if declared.shape == "single" and not sections[kind]:
            # A section that the file lacks is there when the environment sets all of its required keys.
            section = RawSection((kind,), {}, declared.classes[0], findings)
            required = {key.name for key in keys_of(section.cls).values() if key.is_required}
            set_keys = _overrides(section, prefixes, environ).keys()
            if required <= set_keys and (set_keys or not declared.is_optional):
                sections[kind][""] = section
    for section in all_sections(sections):
        keys = keys_of(section.cls)
        for name, (variable_name, value) in _overrides(section, prefixes, environ).items():
            names = {name, keys[name].check.formerly}
            table = {key: old for key, old in section.table.items() if key.lower() not in names}
            section.table = {**table, name: value}
            findings.variables[*section.path, name] = variable_name


def _overrides(
    section: RawSection, prefixes: Sequence[str], environ: Mapping[str, str]
) -> dict[str, tuple[str, object]]:
    """The keys of a section that the environment sets, with the variable and its value; an empty one sets nothing."""
    values: dict[str, tuple[str, object]] = {}
    for key in keys_of(section.cls).values():
        for name in filter(None, (key.check.formerly, key.name)):
            for prefix in prefixes:
                from_name = variable(prefix, *section.path, name)
                if environ.get(from_name):
                    values[key.name] = from_name, key.check.from_text(environ[from_name])
    return values


def variable(prefix: str, *path: str) -> str:
    """The variable of a key: the names of its section and itself in capitals, with `_` for `.`, `-` and spaces."""
    return re.sub(r"[.\- ]", "_", "_".join((prefix, *path)).upper())
