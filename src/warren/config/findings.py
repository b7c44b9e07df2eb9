"""Everything there is to say about a configuration file, each with its place in it."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path

from warren.config.files import TablePath

_SHOWN_CHARS = 120


@dataclass
class Findings:
    """What there is to say: mistakes forbid a start, warnings may hide a mistake, notes only inform."""

    file: Path
    lines: Mapping[TablePath, int] = field(default_factory=dict)
    variables: dict[TablePath, str] = field(default_factory=dict)
    """The environment variable that each key comes from which the file does not hold, or holds in vain."""
    mistakes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def mistake(self, what: str, path: TablePath = (), key: str | None = None) -> None:
        """Write down a mistake in the file, in one of its tables, or in a key of that table."""
        self.mistakes.append(self._said_at(path, key, what))

    def warning(self, what: str, path: TablePath = (), key: str | None = None) -> None:
        """Write down what is probably not meant."""
        self.warnings.append(self._said_at(path, key, what))

    def note(self, what: str, path: TablePath = (), key: str | None = None) -> None:
        """Write down what is good to know."""
        self.notes.append(self._said_at(path, key, what))

    def _said_at(self, path: TablePath, key: str | None, what: str) -> str:
        if key and (*path, key) in self.variables:
            return f"environment variable {self.variables[*path, key]} {what}"
        line = self.lines.get((*path, key) if key else path) or self.lines.get(path)
        words = [f"{self.file}:{line}:" if line else f"{self.file}:"]
        words += [f"[{'.'.join(map(_bare_or_quoted, path))}]"] if path else []
        words += [_bare_or_quoted(key)] if key else []
        return f"{' '.join(words)} {what}"


def shown(value: object) -> str:
    """A value of the file as it may stand in a message: one line, not too long, of a table only the names in it."""
    words = json.dumps(_names_alone(value), ensure_ascii=False, default=str)
    return words if len(words) <= _SHOWN_CHARS else f"{words[:_SHOWN_CHARS]}…"


def _names_alone(value: object) -> object:
    # What a table holds may be secret under any name.
    return dict.fromkeys(value, "…") if isinstance(value, dict) else value


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A hint to the known name that is most like this one, or nothing."""
    nearest = get_close_matches(name, list(known), n=1, cutoff=0.75)
    return f"; did you mean {nearest[0]}?" if nearest else ""


def _bare_or_quoted(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name, ensure_ascii=False)
