"""What Grafana does between a dashboard's file and a store: choices and macros are put in, and requests are made.

Only what our dashboards use; anything else fails.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

DASHBOARDS = Path(__file__).parents[2] / "deploy" / "grafana" / "dashboards"
PROVISIONING = DASHBOARDS.parent / "provisioning"
ALL = "$__all"

Labels = Mapping[str, str]
Json = dict[str, Any]


@dataclass(frozen=True)
class Series:
    """A line in a panel: its labels, and its times in milliseconds with their values."""

    labels: Labels
    points: Mapping[int, float | None]

    @property
    def values(self) -> list[float]:
        """The values that are known, in their order."""
        return [value for _, value in sorted(self.points.items()) if value is not None]


@dataclass(frozen=True)
class View:
    """What somebody looks at: a time range, its interval, and what is chosen."""

    from_ms: int
    to_ms: int
    interval_ms: int = 10_000
    chosen: Mapping[str, Sequence[str] | str] = field(default_factory=dict)


Format = Callable[[Sequence[str]], str]


def boards(backend: str) -> dict[str, Json]:
    """The dashboards of a store, by name."""
    return {path.stem: json.loads(path.read_text()) for path in sorted((DASHBOARDS / backend).glob("*.json"))}


def panels(board: Json) -> Iterator[Json]:
    """The panels of a dashboard that ask for something."""
    return (panel for panel in board["panels"] if panel["type"] != "row")


def variables(board: Json) -> dict[str, Json]:
    """The variables of a dashboard that are asked of a store."""
    return {one["name"]: one for one in board["templating"]["list"] if one["type"] == "query"}


def replaced(text: str, board: Json, view: View, usual: str) -> str:
    """A text with what is chosen put in, in the form that it asks for or in the usual one."""
    known = variables(board)

    def value(found: re.Match[str]) -> str:
        name, form = found[1] or found[3], found[2] or usual
        if name not in known:
            # A group of an expression, such as $1, is no variable.
            is_known = name.startswith("__") or name == "timeFilter" or name.isdigit()
            assert is_known, f"nobody knows {found[0]}"
            return found[0]
        chosen = view.chosen[name]
        if chosen == ALL:
            # Its own value for all is put in as it is.
            assert known[name]["includeAll"], f"{name} has no all"
            return str(known[name]["allValue"])
        assert not isinstance(chosen, str)
        return FORMATS[form](chosen)

    return re.sub(r"\$\{(\w+)(?::(\w+))?\}|\$(\w+)", value, text)


def _regex(values: Sequence[str]) -> str:
    escaped = [re.sub(r"[\\^$*+?.()|\[\]{}/]", r"\\\g<0>", value) for value in values]
    return escaped[0] if len(escaped) == 1 else f"({'|'.join(escaped)})"


def _lucene(values: Sequence[str]) -> str:
    quoted = ['"' + re.sub(r'[!*+\-=<>\s&|()\[\]{}^~?:\\/"]', r"\\\g<0>", value) + '"' for value in values]
    return f"({' OR '.join(quoted)})"


def _promql(values: Sequence[str]) -> str:
    escaped = [
        re.sub(r"[$^*{}\[\]'+?.()|]", lambda found: rf"\\{found[0]}", value.replace("\\", "\\\\\\\\"))
        for value in values
    ]
    return escaped[0] if len(escaped) == 1 else f"({'|'.join(escaped)})"


FORMATS: Mapping[str, Format] = {"regex": _regex, "lucene": _lucene, "promql": _promql}


def combined(expression: str, found: Mapping[str, Sequence[Series]]) -> list[Series]:
    """What Grafana makes of two requests: the series with the same labels, where both have a value."""
    parts = re.fullmatch(r"\$(\w+) ([+/]) \$(\w+)", expression)
    assert parts, f"{expression} is more than we know"
    others = {tuple(sorted(one.labels.items())): one for one in found[parts[3]]}
    made = []
    for one in found[parts[1]]:
        other = others.get(tuple(sorted(one.labels.items())))
        if other is not None:
            made.append(Series(one.labels, _worked_out(parts[2], one.points, other.points)))
    return made


def _worked_out(
    sign: str, left: Mapping[int, float | None], right: Mapping[int, float | None]
) -> dict[int, float | None]:
    points: dict[int, float | None] = {}
    for at_ms in left.keys() & right.keys():
        one, other = left[at_ms], right[at_ms]
        if one is None or other is None or (sign == "/" and other == 0):
            points[at_ms] = None
        else:
            points[at_ms] = one + other if sign == "+" else one / other
    return points
