"""How one leads to another: from dashboard to dashboard, and to Warren's own pages."""

from collections.abc import Sequence

from grafana_foundation_sdk.builders import dashboard as db
from grafana_foundation_sdk.models import dashboard as dm

from deploy.grafana.define.asks import Backend
from deploy.grafana.define.boards import BOARDS
from deploy.grafana.define.panels import Board, Panel

ALWAYS = ("datasource", "warren")
BOARD_OF = {board.name: board for board in BOARDS}


def uid_of(board: Board, backend: Backend) -> str:
    """The address of a dashboard."""
    return f"warren-{backend.name}-{board.name}"


def board_links(board: Board, backend: Backend) -> list[db.DashboardLink]:
    """To the other dashboards with what is chosen here, and to Warren."""
    links = [
        db.DashboardLink(other.title.removeprefix("Warren: ").capitalize())
        .type(dm.DashboardLinkType.LINK)
        .icon("dashboard")
        .url(f"/d/{uid_of(other, backend)}?{_chosen(board, other)}")
        .keep_time(True)
        for other in BOARDS
        if other is not board
    ]
    own = db.DashboardLink("Warren").type(dm.DashboardLinkType.LINK).icon("external link").url("${warren}")
    return [*links, own.tooltip("Warren's own page").target_blank(True)]


def series_links(panel: Panel, names: Sequence[str], board: Board, backend: Backend) -> list[db.DashboardLink]:
    """From a series to the dashboard that tells more, and to Warren's page of it."""
    return _links(panel, {name: f"__field.{backend.label(name)}" for name in names}, board, backend)


def cell_links(
    panel: Panel, name: str, names: Sequence[str], board: Board, backend: Backend
) -> list[dict[str, object]]:
    """From a cell that holds a name."""
    leads = {"group": ("group", "partitions"), "topic": ("topic",), "partition": ("partitions", "topic")}
    if not panel.leads_to or panel.leads_to not in leads.get(name, ()):
        return []
    fields = {one: f'__data.fields["{one}"]' for one in names}
    return [link.build().to_json() for link in _links(panel, fields, board, backend)]


def _links(panel: Panel, found: dict[str, str], board: Board, backend: Backend) -> list[db.DashboardLink]:
    if not panel.leads_to:
        return []
    other = BOARD_OF[panel.leads_to]
    own = [f"var-{name}=${{{place}:percentencode}}" for name, place in found.items() if name in other.held]
    url = f"/d/{uid_of(other, backend)}?{'&'.join([*own, *_queries(ALWAYS), '${__url_time_range}'])}"
    links = [db.DashboardLink(f"The {other.name} in Grafana").url(url)]
    page = "group" if "group" in found else "topic" if "topic" in found else ""
    if page:
        path = "/".join(f"${{{found[name]}:percentencode}}" for name in ("cluster", page))
        links.append(db.DashboardLink(f"The {page} in Warren").url(f"${{warren}}/#/{page}/{path}").target_blank(True))
    return links


def _chosen(board: Board, other: Board) -> str:
    """What is chosen and can be chosen there too; not all where there is no all."""
    has_all = {variable.name: variable.has_all for variable in other.variables}
    names = [one.name for one in board.variables if one.name in has_all and (has_all[one.name] or not one.has_all)]
    return "&".join(_queries([*ALWAYS, *names]))


def _queries(names: Sequence[str]) -> list[str]:
    return [f"${{{name}:queryparam}}" for name in names]
