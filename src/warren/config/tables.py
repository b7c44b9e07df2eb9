"""Sorts the tables of the configuration file into sections, and lets the environment override their keys."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from warren.config.environment import OWN_PREFIX, overrides
from warren.config.files import TablePath
from warren.config.findings import Findings, did_you_mean, shown
from warren.config.section import RawSection, Sections, keys_of


@dataclass(frozen=True)
class SectionKind:
    """A kind of section: its classes, of which `class-name` chooses one, and how it is written."""

    classes: tuple[type, ...]
    shape: Literal["named", "single", "listed"] = "named"
    """`[cluster.NAME]`, `[general]` or `[[route]]`."""


def read_sections(
    tables: Mapping[str, Any], kinds: Mapping[str, SectionKind], environ: Mapping[str, str], findings: Findings
) -> Sections:
    """All sections of a file with their values read, by kind and name."""
    sections = _Sorter(kinds, findings).sort(tables)
    _choose_classes(sections, kinds, findings)
    _override(sections, kinds, environ, findings)
    for section in all_sections(sections):
        section.read_values()
    return sections


def all_sections(sections: Sections) -> Iterator[RawSection]:
    """Every section of every kind."""
    return (section for by_name in sections.values() for section in by_name.values())


class _Sorter:
    """Finds the sections among the tables of a file."""

    def __init__(self, kinds: Mapping[str, SectionKind], findings: Findings) -> None:
        self._kinds = kinds
        self._findings = findings
        self._sections: Sections = {kind: {} for kind in kinds}
        for kind, declared in kinds.items():
            # A section that needs no key is there even if the file lacks it.
            if declared.shape == "single" and not _required(declared.classes[0]):
                self._add(kind, "", (kind,), {})

    def sort(self, tables: Mapping[str, Any]) -> Sections:
        for written, table in tables.items():
            kind = written.lower()  # Burrow accepts its own words in any case; names that users choose keep theirs.
            shape = self._kinds[kind].shape if kind in self._kinds else None
            if shape == "listed" and isinstance(table, list):
                for number, item in enumerate(table, start=1):
                    self._add(kind, str(number), (written, str(number)), item)
            elif shape == "listed":
                self._findings.mistake(f"must be a list of sections, each [[{kind}]]", (written,))
            elif shape is None:
                what = f"is not a known section and is ignored{did_you_mean(kind, self._kinds)}"
                self._findings.warning(what, (written,))
            elif shape == "single" or not isinstance(table, dict):
                self._add(kind, "", (written,), table)
            else:
                self._sort_named(kind, written, table)
        return self._sections

    def _sort_named(self, kind: str, written: str, tables: Mapping[str, Any]) -> None:
        known = self._sections[kind]
        for name, table in tables.items():
            if not isinstance(table, dict):
                what = f"must be in a section with a name, such as [{kind}.local]"
                self._findings.mistake(what, (written,), name)
            elif not name or not name.isprintable():
                self._findings.mistake("must have a name of printable characters", (written, name))
            elif name in known:
                self._findings.mistake(f"is defined twice, also as {known[name].title}", (written, name))
            else:
                self._add(kind, name, (written, name), table)

    def _add(self, kind: str, name: str, path: TablePath, table: object) -> None:
        if isinstance(table, dict):
            self._sections[kind][name] = RawSection(path, table, self._kinds[kind].classes[0], self._findings)
        else:
            self._findings.mistake(f"must be a section, not {shown(table)}", path)


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


def _required(cls: type) -> set[str]:
    return {key.name for key in keys_of(cls).values() if key.is_required}


def _override(
    sections: Sections, kinds: Mapping[str, SectionKind], environ: Mapping[str, str], findings: Findings
) -> None:
    general = sections["general"][""]
    written = {key.lower(): value for key, value in general.table.items()}
    prefixes = (str(written.get("env-var-prefix") or general.get("env_var_prefix")), OWN_PREFIX)
    for kind, declared in kinds.items():
        cls = declared.classes[0]
        is_missing = declared.shape == "single" and not sections[kind]
        # A section that the file lacks is there when the environment sets all of its required keys.
        if is_missing and _required(cls) <= overrides((kind,), keys_of(cls), prefixes, environ).keys():
            sections[kind][""] = RawSection((kind,), {}, cls, findings)
    for section in all_sections(sections):
        keys = keys_of(section.cls)
        for name, (variable, value) in overrides(section.path, keys, prefixes, environ).items():
            names = {name, keys[name].formerly}
            table = {key: old for key, old in section.table.items() if key.lower() not in names}
            section.table = {**table, name: value}
            findings.variables[*section.path, name] = variable
