"""What is reported about a configuration, each with its file, line and section."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path

from warren.config.files import TablePath

_MAX_CHARS = 120


@dataclass
class Findings:
    """Mistakes prevent a start, warnings are probably mistakes, risks are as Burrow has them, notes only inform."""

    file: Path
    lines: Mapping[TablePath, int] = field(default_factory=dict)
    variables: dict[TablePath, str] = field(default_factory=dict)
    """The environment variables that set keys, by section and key."""
    mistakes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    risks: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def mistake(self, what: str, path: TablePath = (), key: str | None = None) -> None:
        """Report a mistake in the file, in a section, or in a key of that section."""
        self.mistakes.append(self._located(path, key, what))

    def warning(self, what: str, path: TablePath = (), key: str | None = None) -> None:
        """Report what is probably not intended."""
        self.warnings.append(self._located(path, key, what))

    def risk(self, what: str, path: TablePath = (), key: str | None = None) -> None:
        """Report what is open to everyone; shown as a warning, but never counted as a mistake."""
        self.risks.append(self._located(path, key, what))

    def note(self, what: str, path: TablePath = (), key: str | None = None) -> None:
        """Report what is good to know."""
        self.notes.append(self._located(path, key, what))

    def all(self) -> Iterator[str]:
        """All findings with their kind, the most serious last."""
        kinds = (("note", self.notes), ("warning", self.warnings + self.risks), ("mistake", self.mistakes))
        return (f"{kind}: {finding}" for kind, findings in kinds for finding in findings)

    def _located(self, path: TablePath, key: str | None, what: str) -> str:
        if key and (*path, key) in self.variables:
            return f"environment variable {self.variables[*path, key]} {what}"
        line = self.lines.get((*path, key) if key else path) or self.lines.get(path)
        parts = [f"{self.file}:{line}:" if line else f"{self.file}:"]
        parts += [f"[{'.'.join(map(_bare_or_quoted, path))}]"] if path else []
        parts += [_bare_or_quoted(key)] if key else []
        return f"{' '.join(parts)} {what}"


def shown(value: object) -> str:
    """A value as messages show it: on one line, shortened, and of a table only the keys."""
    # Any value of a table may be a secret.
    keys_only = dict.fromkeys(value, "…") if isinstance(value, dict) else value
    text = json.dumps(keys_only, ensure_ascii=False, default=str)
    return text if len(text) <= _MAX_CHARS else f"{text[:_MAX_CHARS]}…"


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A hint to the most similar known name, or nothing."""
    nearest = get_close_matches(name, list(known), n=1, cutoff=0.75)
    return f"; did you mean {nearest[0]}?" if nearest else ""


def _bare_or_quoted(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name, ensure_ascii=False)
