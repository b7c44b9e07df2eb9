"""Takes the README's screenshots of the running demo: `make screenshots`."""

import time

from playwright.sync_api import expect

from tests.kit.browsers import a_browser
from tests.kit.demos import ROOT, running_demo

IMAGES = ROOT / "docs" / "images"
SETTLED_S = 150.0
"""How long it takes until every group has its status and there is some history."""


def main() -> None:
    """Take a screenshot of the overview, of all groups and of one group."""
    IMAGES.mkdir(parents=True, exist_ok=True)
    with running_demo() as demo, a_browser() as browser:
        time.sleep(SETTLED_S)
        for name, path, height in (
            ("overview", "#/", 860),
            ("groups", "#/groups", 720),
            ("group", "#/group/demo/export-stopped?partition=orders%2F1", 1080),
        ):
            page = browser.new_page(viewport={"width": 1280, "height": height}, color_scheme="light")
            page.goto(f"{demo.url}/{path}")
            expect(page.locator("main")).to_contain_text("STOP" if name == "group" else "ERR")
            page.wait_for_timeout(3_000)
            page.screenshot(path=IMAGES / f"{name}.png")
            page.close()


if __name__ == "__main__":
    main()
