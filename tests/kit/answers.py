"""Each store asked as Grafana asks it: a panel's requests become series or rows, a variable its values."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from tests.kit.grafana import Json, Series, View, combined, replaced
from tests.kit.prometheus import EVERY_S, Prometheus
from tests.kit.searches import rows_of, search_of, series_of, terms_of
from tests.kit.stores import InfluxDb, SearchServer

Answer = list[Series] | list[Json]


class Store(Protocol):
    """A store that answers."""

    def answer(self, panel: Json, board: Json, view: View) -> dict[str, Answer]:
        """What the requests of a panel give, by their names."""
        ...

    def values(self, variable: Json, board: Json, view: View) -> list[str]:
        """What a variable may be."""
        ...


def _within(panel: Json, view: View) -> View:
    """A panel may look at less."""
    if "timeFrom" not in panel:
        return view
    minutes = re.fullmatch(r"(\d+)m", panel["timeFrom"])
    assert minutes
    return View(view.to_ms - int(minutes[1]) * 60_000, view.to_ms, view.interval_ms, view.chosen)


@dataclass(frozen=True)
class Influx:
    """InfluxQL, whose macros Grafana's back end puts in."""

    server: InfluxDb
    database: str = "telegraf"

    def answer(self, panel: Json, board: Json, view: View) -> dict[str, Answer]:
        """Series, or rows where a table is asked for."""
        view = _within(panel, view)
        return {target["refId"]: self._target(target, board, view) for target in panel["targets"]}

    def _target(self, target: Json, board: Json, view: View) -> Answer:
        assert target["rawQuery"]
        found = self.server.rows(self._put_in(target["query"], board, view), self.database)
        if target["resultFormat"] == "table":
            return found
        tags = re.findall(r'"(\w+)"', target["query"].rpartition("GROUP BY")[2])
        lines: dict[tuple[str, ...], dict[int, float | None]] = {}
        for row in found:
            [value] = [held for name, held in row.items() if name not in (*tags, "time")]
            lines.setdefault(tuple(row[tag] for tag in tags), {})[row["time"]] = value
        return [Series(dict(zip(tags, names, strict=True)), points) for names, points in lines.items()]

    def values(self, variable: Json, board: Json, view: View) -> list[str]:
        """The values of a tag."""
        return [row["value"] for row in self.server.rows(self._put_in(variable["query"], board, view), self.database)]

    def _put_in(self, text: str, board: Json, view: View) -> str:
        made = replaced(text, board, view, "regex")
        made = made.replace("$timeFilter", f"time >= {view.from_ms}ms and time <= {view.to_ms}ms")
        made = made.replace("$__interval", f"{view.interval_ms}ms")
        assert "$__" not in made
        return made


@dataclass(frozen=True)
class Elastic:
    """Searches, and what Grafana makes of several."""

    server: SearchServer
    index: str = "burrow-*"

    def answer(self, panel: Json, board: Json, view: View) -> dict[str, Answer]:
        """Series, or rows where time is no bucket; requests that are hidden are not shown."""
        view = _within(panel, view)
        found: dict[str, Any] = {}
        for target in panel["targets"]:
            if target["datasource"]["type"] == "__expr__":
                assert target["type"] == "math"
                found[target["refId"]] = combined(target["expression"], found)
            else:
                query = replaced(target["query"], board, view, "lucene")
                found[target["refId"]] = self.target(target, query, view)
        hidden = {target["refId"] for target in panel["targets"] if target.get("hide")}
        return {ref: one for ref, one in found.items() if ref not in hidden}

    def target(self, target: Json, query: str, view: View) -> Answer:
        """What one request gives."""
        search = search_of(target, query, view.from_ms, view.to_ms, view.interval_ms)
        answer = self.server.ask("POST", f"/{self.index}/_search", search)
        is_over_time = target["bucketAggs"][-1]["type"] == "date_histogram"
        return series_of(target, answer) if is_over_time else rows_of(target, answer)

    def values(self, variable: Json, board: Json, view: View) -> list[str]:
        """The terms of a field."""
        wanted = json.loads(variable["query"])
        query = replaced(wanted["query"], board, view, "lucene")
        answer = self.server.ask("POST", f"/{self.index}/_search", terms_of(wanted, query, view.from_ms, view.to_ms))
        return [bucket["key"] for bucket in answer["aggregations"]["1"]["buckets"]]


@dataclass(frozen=True)
class Prom:
    """PromQL, over time or of now."""

    server: Prometheus

    def answer(self, panel: Json, board: Json, view: View) -> dict[str, Answer]:
        """Series, or rows of labels and a value."""
        return {target["refId"]: self._target(target, board, view) for target in panel["targets"]}

    def _target(self, target: Json, board: Json, view: View) -> Answer:
        expression = self._put_in(target["expr"], board, view)
        if target.get("instant"):
            found = self.server.ask("query", {"query": expression, "time": view.to_ms / 1000})["result"]
            return [{**one["metric"], "Value": float(one["value"][1])} for one in found]
        step = view.interval_ms // 1000
        # Grafana begins and ends with whole steps.
        first, last = (at_ms // 1000 // step * step for at_ms in (view.from_ms, view.to_ms))
        found = self.server.ask("query_range", {"query": expression, "start": first, "end": last, "step": step})[
            "result"
        ]
        return [
            Series(one["metric"], {round(float(at) * 1000): float(value) for at, value in one["values"]})
            for one in found
        ]

    def values(self, variable: Json, board: Json, view: View) -> list[str]:
        """The values of a label."""
        parts = re.fullmatch(r"label_values\((.+), (\w+)\)", variable["query"])
        assert parts
        when = {"start": view.from_ms // 1000, "end": view.to_ms // 1000}
        found: Sequence[str] = self.server.ask(
            f"label/{parts[2]}/values", {"match[]": self._put_in(parts[1], board, view), **when}
        )
        return list(found)

    def _put_in(self, text: str, board: Json, view: View) -> str:
        made = replaced(text, board, view, "promql")
        rate_s = max(view.interval_ms // 1000 + EVERY_S, 4 * EVERY_S)
        made = made.replace("$__rate_interval", f"{rate_s}s")
        assert "$__" not in made
        return made
