"""A real browser, Debian's Chromium, driven by Playwright."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

ROOT = Path(__file__).parents[2]
SCREENSHOTS = ROOT / "build" / "screenshots"
AXE = ROOT / "dashboard" / "node_modules" / "axe-core" / "axe.min.js"
NAMES = ("chromium", "chromium-browser", "google-chrome")


@cache
def chromium() -> str:
    """A browser of this machine; installed where we may do that and there is none."""
    found = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if found is None and os.geteuid() == 0 and shutil.which("apt-get"):
        for words in (["update", "-qq"], ["install", "-y", "-qq", "--no-install-recommends", "chromium"]):
            subprocess.run(["apt-get", *words], check=True, stdout=subprocess.DEVNULL)
        found = shutil.which("chromium")
    if found is None:
        pytest.fail("no browser: install Debian's chromium, or set CHROMIUM to one that is there")
    return found


@contextmanager
def a_browser() -> Iterator[Browser]:
    """A browser without a window."""
    with sync_playwright() as playwright:
        sandbox = [] if os.geteuid() else ["--no-sandbox"]
        with playwright.chromium.launch(executable_path=chromium(), args=sandbox) as browser:
            yield browser


def picture(page: Page, name: str) -> None:
    """Keep what the page looks like now."""
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SCREENSHOTS / f"{name}.png")


def barriers(page: Page) -> list[str]:
    """What axe finds serious or critical for people who use a page in another way, one line each."""
    # Not as a script of the page, whose policy forbids strangers.
    page.evaluate(AXE.read_text())
    found = page.evaluate("async () => (await axe.run()).violations")
    return [
        f"{one['impact']} {one['id']}: {one['nodes'][0]['html'][:200]}"
        for one in found
        if one["impact"] in ("serious", "critical")
    ]
