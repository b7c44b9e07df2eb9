"""A section of burrow.toml: the keys that its class declares, and the section while it is read.

A class declares a key as an attribute, with `_` for `-`: its type is annotated with a Check, and its default is the
key's. A key without a default is required. A class may have a `check` of what its keys are to each other and to other
sections.
"""

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from functools import cache
from typing import Any, get_type_hints

from warren.config.files import TablePath
from warren.config.findings import Findings, did_you_mean, shown
from warren.config.values import Check


@dataclass(frozen=True)
class Key:
    """One key, as an attribute of a section's class declares it."""

    name: str
    attribute: str
    check: Check
    is_required: bool


@cache
def keys_of(section: type) -> Mapping[str, Key]:
    """The keys of a section by their name in the file, in the order they are declared."""
    hints = get_type_hints(section, include_extras=True)
    keys: dict[str, Key] = {}
    for attribute in fields(section):
        marks = getattr(hints[attribute.name], "__metadata__", ())
        for check in (mark for mark in marks if isinstance(mark, Check)):
            name = attribute.name.rstrip("_").replace("_", "-")
            is_required = attribute.default is MISSING and attribute.default_factory is MISSING
            keys[name] = Key(name, attribute.name, check, is_required)
    return keys


@dataclass
class RawSection:
    """A section while it is read: where it is in the file, what is written there, and the values read so far."""

    path: TablePath
    table: Mapping[str, Any]
    cls: type
    findings: Findings
    values: dict[str, Any] = field(default_factory=dict)
    """Values by attribute; one that is wrong is missing."""
    written: dict[str, str] = field(default_factory=dict)
    """The keys in the file, by attribute."""

    @property
    def title(self) -> str:
        """The header of the section."""
        return f"[{'.'.join(self.path)}]"

    def get(self, attribute: str) -> Any:  # noqa: ANN401 - whatever the key holds
        """A value: that of the file, else the default; None for a required one that is missing or wrong."""
        default = getattr(self.cls, attribute, None)
        return self.values.get(attribute, default)

    def mistake(self, what: str, attribute: str | None = None) -> None:
        """Report a mistake in the section, or in one of its keys."""
        self.findings.mistake(what, self.path, self.written[attribute] if attribute else None)

    def warning(self, what: str, attribute: str | None = None) -> None:
        """Report what is probably not intended."""
        self.findings.warning(what, self.path, self.written[attribute] if attribute else None)

    def note(self, what: str, attribute: str | None = None) -> None:
        """Report what is good to know."""
        self.findings.note(what, self.path, self.written[attribute] if attribute else None)

    def refuse(self, attribute: str, why: str, item: str | None = None) -> None:
        """Report that the value of a key, or an item of its list, is wrong."""
        value = self.table[self.written[attribute]] if item is None else item
        self.mistake(f"= {shown(value)}: {why}", attribute)

    def require(self, *names: str, because: str) -> None:
        """Report the keys of these that are missing."""
        for name in names:
            if keys_of(self.cls)[name].attribute not in self.written:
                self.mistake(f"{name} is missing: {because}")

    def read_values(self) -> None:
        """Read and check every key of the section by itself."""
        keys: dict[str, Key] = {}
        for name, key in keys_of(self.cls).items():
            keys |= {name: key, key.check.formerly or name: key}
        # The key class-name has chosen the class; it is not a value, except where the class declares it.
        ignored = ("class-name",) if hasattr(self.cls, "class_name") and "class-name" not in keys else ()
        for written, value in self.table.items():
            name = written.lower()
            if getattr(self.cls, "takes_underscores", False):
                name = name.replace("_", "-")
            if name in keys:
                self._read_value(keys[name], written, value)
            elif name not in ignored:
                hint = self._dot_hint(written, value) or did_you_mean(name, (*keys, *ignored))
                self.findings.warning(f"is not a key of this section and is ignored{hint}", self.path, written)
        for key in keys_of(self.cls).values():
            if key.is_required:
                self.require(key.name, because=f"must be {key.check.allowed}")

    def _read_value(self, key: Key, written: str, value: object) -> None:
        if key.attribute in self.written:
            other = self.written[key.attribute]
            what = f"is another name for {other}, which is set too: keep one of them"
            self.findings.mistake(what, self.path, written)
            return
        self.written[key.attribute] = written
        try:
            self.values[key.attribute] = key.check.read(value)
        except ValueError as error:
            why = f" ({error})" if str(error) and not key.check.is_secret else ""
            what = "= (not shown)" if key.check.is_secret else f"= {shown(value)}"
            self.mistake(f"{what}: must be {key.check.allowed}{why}", key.attribute)
        if key.check.no_effect is not None:
            self.note(f"is accepted but has no effect: {key.check.no_effect}", key.attribute)

    def _dot_hint(self, written: str, value: object) -> str:
        if not isinstance(value, dict) or len(self.path) < 2:
            return ""
        kind, name = self.path
        return f'; a name with a dot needs quotes: [{kind}."{name}.{written}"]'


Sections = dict[str, dict[str, RawSection]]
"""All sections of a file by kind and name; a kind that has no names, such as `[general]`, has the name ""."""
