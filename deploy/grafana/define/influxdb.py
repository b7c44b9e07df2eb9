"""InfluxDB by InfluxQL, of version 1 and whatever speaks it."""

from collections.abc import Sequence

from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.cog.runtime import UnknownDataquery
from grafana_foundation_sdk.cog.variants import Dataquery
from grafana_foundation_sdk.models.dashboard import DataSourceRef

from deploy.grafana.define.asks import MEASUREMENTS, SOURCE_UID, Ask, How, Level, Ready, Rows, Table, is_written

EACH = "time($__interval)"


class InfluxDB:
    """Asks in InfluxQL."""

    name = "influxdb"
    title = "InfluxDB"
    all_value = ".*"
    source = DataSourceRef("influxdb", SOURCE_UID)

    def knows(self, ask: Ask | Rows) -> bool:
        """Whether sinks write it."""
        return is_written(ask)

    def series(self, ask: Ask, held: Sequence[str], ref: str) -> list[Builder[Dataquery]]:
        """One request."""
        alias = ask.legend
        for name in ask.names:
            alias = alias.replace(f"{{{name}}}", f"$tag_{name}")
        return [_target(ref, _statement(ask, held), "time_series", alias)]

    def table(self, rows: Rows, held: Sequence[str]) -> Table:
        """The newest point of each."""
        (first, selector), *others = rows.columns.items()
        wanted = [f'last("{selector}") AS "{first}"']
        wanted += [f'"{column}" AS "{title}"' for title, column in (*others, *rows.words.items())]
        statement = f"SELECT {', '.join(wanted)} {_of(rows.level, held)} GROUP BY {_quoted(rows.names)}"
        titles = [*rows.names, *rows.columns, *rows.words]
        return Table([_target("A", statement, "table")], {title: title for title in titles})

    def values(self, name: str, level: Level, held: Sequence[str]) -> str:
        """The values of a tag; InfluxDB 1 gives those of all times."""
        where = " AND ".join(_filters(level, held))
        statement = f'SHOW TAG VALUES FROM "{MEASUREMENTS[level]}" WITH KEY = "{name}"'
        return f"{statement} WHERE {where}" if where else statement

    def label(self, name: str) -> str:
        """A tag."""
        return f"labels.{name}"

    def legend(self, ask: Ask) -> str:
        """The alias says it."""
        del ask
        return ""

    def note(self, rows: Rows) -> str:
        """Nothing to add."""
        del rows
        return ""


def _statement(ask: Ask, held: Sequence[str]) -> str:
    each, everyone = f"{EACH}, {_quoted(ask.names)}", f"{EACH}, {_quoted(ask.level.value)}"
    some = _of(ask.level, held) + (f' AND "{ask.field}" > {ask.above}' if ask.above is not None else "")
    match ask.how:
        case How.WORST:
            return f'SELECT max("{ask.field}") {some} GROUP BY {each} fill(null)'
        case How.SUM:
            # The newest of each partition, all of one time, and then the sum: right however long an interval is.
            newest = f'SELECT last("{ask.field}") AS "one" {some} GROUP BY {everyone} fill(none)'
            return f'SELECT sum("one") FROM ({newest}) WHERE $timeFilter GROUP BY {each} fill(null)'
        case How.RATE if ask.plus:
            both = f'SELECT last("{ask.field}") + last("{ask.plus}") AS "both" {some} GROUP BY {everyone} fill(none)'
            return f'SELECT non_negative_derivative("both", 1s) FROM ({both}) GROUP BY {_quoted(ask.names)}'
        case How.RATE:
            return f'SELECT non_negative_derivative(last("{ask.field}"), 1s) {some} GROUP BY {each} fill(none)'
        case How.GROWTH:
            return f'SELECT derivative(last("{ask.field}"), 1s) {some} GROUP BY {each} fill(none)'


def _of(level: Level, held: Sequence[str]) -> str:
    return f'FROM "{MEASUREMENTS[level]}" WHERE {" AND ".join([*_filters(level, held), "$timeFilter"])}'


def _filters(level: Level, held: Sequence[str]) -> list[str]:
    return [f'"{name}" =~ /^${{{name}:regex}}$/' for name in level.value if name in held]


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def _target(ref: str, statement: str, form: str, alias: str = "") -> Builder[Dataquery]:
    # The SDK has no model of this data source's requests.
    query: dict[str, object] = {
        "refId": ref,
        "datasource": InfluxDB.source.to_json(),
        "query": statement,
        "rawQuery": True,
        "resultFormat": form,
        "alias": alias,
    }
    return Ready(UnknownDataquery(query))
