"""The dashboard in a real browser shows hostile names as text, and asks no other server for anything."""

from pathlib import Path
from urllib.parse import quote, urlsplit

from playwright.sync_api import Page, expect

from tests.kit.browsers import a_browser
from tests.kit.servers import server_config, serving
from tests.security.names import NAMES

OPENED = (
    "path traversal", "encoded traversal", "query", "fragment", "two slashes", "NUL", "clear the screen",
    "right to left", "script", "an image", "HTML attribute", "markdown", "quotes", "template of Jinja2",
)  # fmt: skip
"""The names that are a danger to addresses and to HTML. Browsers have no address for `..`, so it has no page."""


def test_no_name_is_markup_or_leads_elsewhere(hostile_data: Path) -> None:
    with serving(server_config(hostile_data)) as [client], a_browser() as browser:
        page = browser.new_page(viewport={"width": 1280, "height": 4000})
        page.set_default_timeout(60_000)
        hosts: set[str] = set()
        dialogs: list[str] = []
        page.on("request", lambda request: hosts.add(urlsplit(request.url).netloc))
        page.on("dialog", lambda dialog: dialogs.append(dialog.message))
        page.goto(f"{client.url}/#/groups")
        expect(page.locator(".body .row .name").first).to_be_visible()
        shown = set(page.locator(".body .row .name").all_text_contents())
        assert len(shown & set(NAMES.values())) > len(NAMES) // 2
        assert_harmless(page)
        for kind in OPENED:
            page.goto(f"{client.url}/#/group/one/{quote(NAMES[kind], safe='')}")
            expect(page.get_by_role("heading", level=1)).to_contain_text("ERR")
            title = page.get_by_role("heading", level=1).text_content() or ""
            assert NAMES[kind].replace("\x00", "") in title.replace("\x00", "").replace("\ufffd", ""), kind
            assert_harmless(page)
        assert hosts == {urlsplit(client.url).netloc}
        assert dialogs == []


def assert_harmless(page: Page) -> None:
    assert page.evaluate("window.taken") is None
    assert page.locator("img[src=x], [onmouseover], body script:not([src])").count() == 0
    hosts = page.locator("a[href*='evil.example']").evaluate_all("links => links.map(link => link.host)")
    assert set(hosts) <= {urlsplit(page.url).netloc}
