"""How panels look in Grafana."""

from collections.abc import Sequence
from typing import TypeAlias

from grafana_foundation_sdk.builders import bargauge, stat, statetimeline, table, timeseries
from grafana_foundation_sdk.builders import common as cb
from grafana_foundation_sdk.builders import dashboard as db
from grafana_foundation_sdk.models import common as cm
from grafana_foundation_sdk.models import dashboard as dm

from deploy.grafana.define.asks import Backend, How, Rows
from deploy.grafana.define.links import cell_links, series_links
from deploy.grafana.define.panels import GREEN, ORANGE, PURPLE, RED, Board, Kind, Panel

Graph: TypeAlias = timeseries.Panel | stat.Panel | statetimeline.Panel | bargauge.Panel | table.Panel

LEAST_INTERVAL = "10s"
"""How often sinks write unless told otherwise."""
LARGEST_GAP_MS = 120_000
"""Sinks may be told to write less often; a gap longer than that is one."""
NOW = "5m"
"""How far back a table looks for the newest."""
WORDS = {
    "status": {
        "0": ("NOTFOUND", "text"), "1": ("OK", GREEN), "2": ("WARN", ORANGE), "3": ("ERR", RED), "4": ("STOP", RED),
        "5": ("STALL", "dark-red"), "6": ("REWIND", PURPLE),
    },
    "judged": {"0": ("unknown", RED), "1": ("judged", GREEN)},
    "well": {"0": ("in trouble", RED), "1": ("well", GREEN)},
}  # fmt: skip
_REFS = "ABCDEFGH"


def panel(wanted: Panel, board: Board, backend: Backend) -> Graph:
    """A panel of a dashboard, as a store answers it."""
    asks = wanted.asks
    made = _table(wanted, asks, board, backend) if isinstance(asks, Rows) else _series(wanted, board, backend)
    made.title(wanted.title).datasource(backend.source).span(wanted.width).height(wanted.height)
    made.no_value(wanted.no_value)
    note = backend.note(asks) if isinstance(asks, Rows) else ""
    return made.description(f"{wanted.description} {note}".strip())


def _series(wanted: Panel, board: Board, backend: Backend) -> Graph:
    assert not isinstance(wanted.asks, Rows)
    made = _drawn(wanted).unit(wanted.unit).interval(LEAST_INTERVAL)
    names = list(dict.fromkeys(name for ask in wanted.asks for name in ask.names))
    made.data_links(list(series_links(wanted, names, board, backend)))
    for ref, ask in zip(_REFS, wanted.asks, strict=False):
        for target in backend.series(ask, board.held, ref):
            made.with_target(target)
        properties = []
        if ask.color:
            properties.append(dm.DynamicConfigValue("color", {"mode": "fixed", "fixedColor": ask.color}))
        if legend := backend.legend(ask):
            properties.append(dm.DynamicConfigValue("displayName", legend))
        if properties:
            made.override_by_query(ref, properties)
    if all(ask.how is How.RATE for ask in wanted.asks):
        # Elasticsearch has no derivative that stays above zero.
        made.min(0)
    if wanted.words:
        made.mappings(_mappings(wanted.words)).thresholds(_steps([]))
    else:
        made.thresholds(_steps(wanted.colors))
    return made


def _drawn(wanted: Panel) -> timeseries.Panel | stat.Panel | statetimeline.Panel:
    match wanted.kind:
        case Kind.STAT:
            color = cm.BigValueColorMode.BACKGROUND if wanted.words else cm.BigValueColorMode.VALUE
            return (
                stat.Panel()
                .reduce_options(cb.ReduceDataOptions().calcs(["lastNotNull"]).values(False))
                .color_mode(color)
                .graph_mode(cm.BigValueGraphMode.NONE if wanted.words else cm.BigValueGraphMode.AREA)
                .text_mode(cm.BigValueTextMode.VALUE_AND_NAME)
            )
        case Kind.TIMELINE:
            return (
                statetimeline.Panel()
                .merge_values(True)
                .show_value(cm.VisibilityMode.AUTO)
                .fill_opacity(80)
                .line_width(0)
                .per_page(20)
                .legend(cb.VizLegendOptions().show_legend(False).display_mode(cm.LegendDisplayMode.HIDDEN))
                .tooltip(cb.VizTooltipOptions().mode(cm.TooltipDisplayMode.SINGLE))
            )
        case _:
            is_stack = wanted.kind is Kind.STACK
            stacking = cm.StackingMode.NORMAL if is_stack else cm.StackingMode.NONE
            return (
                timeseries.Panel()
                .line_width(1)
                .fill_opacity(60 if is_stack else 10)
                .show_points(cm.VisibilityMode.NEVER)
                .span_nulls(LARGEST_GAP_MS)
                .stacking(cb.StackingConfig().mode(stacking))
                .axis_soft_min(0)
                .legend(
                    cb.VizLegendOptions()
                    .show_legend(True)
                    .display_mode(cm.LegendDisplayMode.TABLE)
                    .placement(cm.LegendPlacement.BOTTOM)
                    .calcs(["lastNotNull", "max"])
                )
                .tooltip(cb.VizTooltipOptions().mode(cm.TooltipDisplayMode.MULTI).sort(cm.SortOrder.DESCENDING))
            )


def _table(wanted: Panel, rows: Rows, board: Board, backend: Backend) -> Graph:
    found = backend.table(rows, board.held)
    made: table.Panel | bargauge.Panel
    if wanted.kind is Kind.BARS:
        reduced = cb.ReduceDataOptions().calcs([]).values(True).fields(f"/^{rows.order}$/").limit(rows.limit)
        made = bargauge.Panel().reduce_options(reduced).orientation(cm.VizOrientation.HORIZONTAL)
        made.display_mode(cm.BarGaugeDisplayMode.BASIC).unit(wanted.unit).min(0)
    else:
        made = table.Panel().align(cm.FieldTextAlignment.AUTO)
        made.sort_by([cb.TableSortByFieldState().display_name(rows.order).desc(True)])
        for title in rows.columns:
            made.override_by_name(title, _cells(title, wanted.unit))
    for name in rows.names:
        if links := cell_links(wanted, name, rows.names, board, backend):
            made.override_by_name(name, [dm.DynamicConfigValue("links", links)])
    made.thresholds(_steps([])).time_from(NOW)
    for target in found.targets:
        made.with_target(target)
    if found.is_merged:
        made.with_transformation(dm.DataTransformerConfig("merge", options={}))
    order = {"indexByName": {raw: place for place, raw in enumerate(found.titles)}}
    renamed = {raw: title for raw, title in found.titles.items() if raw != title}
    organized = {"excludeByName": {"Time": True}, **order, "renameByName": renamed}
    made.with_transformation(dm.DataTransformerConfig("organize", options=organized))
    by_worst = {"sort": [{"field": rows.order, "desc": True}]}
    made.with_transformation(dm.DataTransformerConfig("sortBy", options=by_worst))
    return made.with_transformation(dm.DataTransformerConfig("limit", options={"limitField": rows.limit}))


def _cells(title: str, unit: str) -> list[dm.DynamicConfigValue]:
    if title == "status":
        return [
            dm.DynamicConfigValue("mappings", [one.to_json() for one in _mappings("status")]),
            dm.DynamicConfigValue("custom.cellOptions", {"type": "color-background", "mode": "basic"}),
            dm.DynamicConfigValue("custom.width", 100),
        ]
    return [dm.DynamicConfigValue("unit", unit)]


def _mappings(words: str) -> list[dm.ValueMapping]:
    options = {
        code: dm.ValueMappingResult(text=text, color=color, index=place)
        for place, (code, (text, color)) in enumerate(WORDS[words].items())
    }
    return [dm.ValueMap(options=options)]


def _steps(colors: Sequence[tuple[float, str]]) -> db.ThresholdsConfig:
    # Verdicts are not made of thresholds, so numbers have one colour unless a panel says more.
    steps = [dm.Threshold(value=None, color=colors[0][1] if colors else "text")]
    steps += [dm.Threshold(value=value, color=color) for value, color in colors[1:]]
    return db.ThresholdsConfig().mode(dm.ThresholdsMode.ABSOLUTE).steps(steps)
