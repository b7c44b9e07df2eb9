"""What somebody looks at who opens our dashboards after some history."""

from tests.kit.answers import Answer
from tests.kit.grafana import ALL, Json, Series, View, boards, panels
from tests.kit.history import EVERY_MS, History

DASHBOARDS = {
    # First those that take longest to start, which they do while history is made.
    "elasticsearch": "elasticsearch",
    "opensearch": "elasticsearch",
    "influxdb": "influxdb",
    "prometheus": "prometheus",
}
"""Which dashboards each store is asked by."""
GROUPS = ["slow", "stalled", "a+b c", "billing/eu", "{}"]
CHOSEN = {"cluster": ALL, "group": GROUPS, "topic": ["orders", "unread"]}


def view_of(history: History, backend: str) -> View:
    """The time that sinks wrote of, or in which it was scraped."""
    if backend == "prometheus":
        return View(history.began_ms, history.ended_ms, EVERY_MS, CHOSEN)
    return View(min(history.moments) - EVERY_MS, max(history.moments), EVERY_MS, CHOSEN)


def panel_of(backend: str, board: str, panel: int | str) -> tuple[Json, Json]:
    """A panel by its number or its title, and its dashboard."""
    held = boards(DASHBOARDS[backend])[board]
    [found] = [one for one in panels(held) if panel in (one["id"], one["title"])]
    return found, held


def series(answer: Answer) -> list[Series]:
    """An answer that is series."""
    return [one for one in answer if isinstance(one, Series)]
