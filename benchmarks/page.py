"""The dashboard in a real browser, with as many groups as a company has.

    python -m benchmarks.page [--groups 10000] [--partitions 200000]

The first paint is what the browser itself reports; a page is whole when its groups can be read. A key typed into the
search is measured to the frame that shows its rows.
"""

import argparse
import statistics
import tempfile
import time
from pathlib import Path

from playwright.sync_api import Browser, Page

from benchmarks.conditions import show
from benchmarks.snapshots import record
from tests.kit.browsers import a_browser
from warren.config import Cluster, Config, Consumer, HttpServer, Pipeline
from warren.history.write import HistoryWriter
from warren.web.server import WebServer

TURNS = 5
TYPED = "billing-service-004242"
_TO_FRAME = """key => new Promise(shown => {
  const search = document.querySelector("input[type=search]"), began = performance.now()
  search.value += key
  search.dispatchEvent(new Event("input", { bubbles: true }))
  requestAnimationFrame(() => setTimeout(() => shown(performance.now() - began)))
})"""
_SCROLLED = """() => new Promise(done => {
  const scroller = document.querySelector(".scroller"), gaps = []
  let last = performance.now(), left = 120
  const step = () => {
    const now = performance.now()
    gaps.push(now - last)
    last = now
    scroller.scrollTop += 900
    if (left--) requestAnimationFrame(step)
    else done(gaps)
  }
  requestAnimationFrame(step)
})"""


def main() -> None:
    """Open, search, sort, scroll."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--groups", type=int, default=10_000)
    parser.add_argument("--partitions", type=int, default=200_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        history = HistoryWriter(root, 30, 1.0)
        for manifest in record(root, options.partitions, per_group=options.partitions // options.groups):
            history.record(manifest)
        server = WebServer(_config(root))
        try:
            with a_browser() as browser:
                url = server.urls()[0]
                _settle(browser, url)
                show("page", measure(browser, url, options.groups, options.partitions))
        finally:
            server.close()


def _config(root: Path) -> Config:
    servers = ("127.0.0.1:1",)
    return Config(
        clusters={"local": Cluster("local", servers)},
        consumers={"local": Consumer("local", "local", servers)},
        pipeline=Pipeline(data_dir=root),
        http_servers={"default": HttpServer("127.0.0.1:0", name="default")},
    )


def _settle(browser: Browser, url: str) -> None:
    """Wait until the server has read everything."""
    with browser.new_context() as context:
        page = context.new_page()
        page.goto(f"{url}/#/groups")
        page.locator(".body .row").first.wait_for(timeout=60_000)
    time.sleep(1.0)


def measure(browser: Browser, url: str, groups: int, partitions: int) -> list[dict[str, object]]:
    """Medians over some turns, each in a browser that has never seen the page."""
    paints, wholes = [], []
    keys: list[float] = []
    gaps: list[float] = []
    sorts: list[float] = []
    for _ in range(TURNS):
        with browser.new_context(viewport={"width": 1280, "height": 900}) as context:
            page = context.new_page()
            began = time.perf_counter()
            page.goto(f"{url}/#/groups", wait_until="commit")
            page.locator(".body .row").first.wait_for()
            wholes.append((time.perf_counter() - began) * 1000)
            paints.append(_first_paint(page))
            keys += [page.evaluate(_TO_FRAME, key) for key in TYPED]
            assert page.locator(".filters output").inner_text().startswith("1 of"), "the search found its group"
            page.evaluate("document.querySelector('input[type=search]').value = ''")
            page.goto("about:blank")
            page.goto(f"{url}/#/groups")
            page.locator(".body .row").first.wait_for()
            gaps += page.evaluate(_SCROLLED)[1:]
            clicked = time.perf_counter()
            page.get_by_role("button", name="Lag", exact=True).click()
            page.locator("[aria-sort=descending]", has_text="Lag").wait_for()
            sorts.append((time.perf_counter() - clicked) * 1000)
    found = {
        "first paint": statistics.median(paints),
        "groups on the screen": statistics.median(wholes),
        "a key in the search": statistics.median(keys),
        "the slowest key": max(keys),
        "sorted by lag": statistics.median(sorts),
        "a frame while scrolling": statistics.median(gaps),
        "99 of 100 frames at most": sorted(gaps)[len(gaps) * 99 // 100],
    }
    return [
        {"groups": groups, "partitions": partitions, "what": what, "ms": round(ms, 1)} for what, ms in found.items()
    ]


def _first_paint(page: Page) -> float:
    found: float = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
    return found


if __name__ == "__main__":
    main()
