"""Dashboards as Grafana reads them."""

import json

from grafana_foundation_sdk.builders import dashboard as db
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import dashboard as dm

from deploy.grafana.define.asks import Backend, Rows
from deploy.grafana.define.elasticsearch import Elasticsearch
from deploy.grafana.define.influxdb import InfluxDB
from deploy.grafana.define.links import board_links, uid_of
from deploy.grafana.define.look import panel
from deploy.grafana.define.panels import Board, Row, Variable
from deploy.grafana.define.prometheus import Prometheus

BACKENDS: tuple[Backend, ...] = (InfluxDB(), Elasticsearch(), Prometheus())
WARREN = "http://localhost:8000"
"""Where Warren's own pages are, unless somebody types another address."""


def dashboard(board: Board, backend: Backend) -> db.Dashboard:
    """A dashboard on one store; panels that it cannot fill are left out."""
    made = (
        db.Dashboard(f"{board.title} ({backend.title})")
        .uid(uid_of(board, backend))
        .description(board.description)
        .tags(["warren", "kafka", backend.name])
        .time("now-1h", "now")
        .refresh("30s")
        .timezone("browser")
        .tooltip(dm.DashboardCursorSync.CROSSHAIR)
        .links(list(board_links(board, backend)))
        .readonly()
    )
    made.with_variable(_source(backend))
    for place, variable in enumerate(board.variables):
        made.with_variable(_variable(variable, board.held[:place], backend))
    typed = dm.VariableOption(text=WARREN, value=WARREN, selected=True)
    made.with_variable(db.TextBoxVariable("warren").label("Warren").default_value(WARREN).current(typed))
    for number, wanted in enumerate(board.panels, 1):
        if isinstance(wanted, Row):
            made.with_row(db.Row(wanted.title).id(number))
        elif all(backend.knows(ask) for ask in ([wanted.asks] if isinstance(wanted.asks, Rows) else wanted.asks)):
            made.with_panel(panel(wanted, board, backend).id(number))
    return made


def text_of(board: Board, backend: Backend) -> str:
    """A dashboard as the text of its file."""
    return json.dumps(dashboard(board, backend).build(), cls=JSONEncoder, indent=2, ensure_ascii=False) + "\n"


def _source(backend: Backend) -> db.DatasourceVariable:
    ours = dm.VariableOption(text=f"Warren {backend.title}", value=f"warren-{backend.name}", selected=True)
    return db.DatasourceVariable("datasource").label("Data source").type(backend.name).current(ours)


def _variable(variable: Variable, before: list[str], backend: Backend) -> db.QueryVariable:
    made = (
        db.QueryVariable(variable.name)
        .label(variable.name.capitalize())
        .datasource(backend.source)
        .query(backend.values(variable.name, variable.level, before))
        .refresh(dm.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(dm.VariableSort.ALPHABETICAL_CASE_INSENSITIVE_ASC)
        .multi(True)
        .include_all(variable.has_all)
    )
    if not variable.has_all:
        return made
    return made.all_value(backend.all_value).current(dm.VariableOption(text=["All"], value=["$__all"], selected=True))
