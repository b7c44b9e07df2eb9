"""The overview in a real browser while open transactions hold back offsets partitions."""

from pathlib import Path

from playwright.sync_api import expect

from tests.kit.browsers import a_browser, picture
from tests.kit.plans import cluster_state
from tests.kit.servers import Town, server_config, serving
from warren.snapshot.manifest import Position, Source

HOSTILE = '<img src=x onerror="window.taken=1">\u202e' + "x" * 200


def test_the_overview_names_the_transaction_if_it_is_known(tmp_path: Path) -> None:
    town = Town(tmp_path).grow()
    since_ms = town.now_ms - 300_000
    town.hold_back("stalled", since_ms=since_ms)
    positions = {
        partition: Position(100, 100, 107, seen_until_ms=since_ms, stuck_since_ms=since_ms, held_by=held_by)
        for partition, held_by in enumerate([HOSTILE, None])
    }
    source = Source("id", positions)
    town.publish(clusters={"one": cluster_state(sources={"__consumer_offsets": source}), "two": cluster_state()})
    with serving(server_config(town.data)) as [client], a_browser() as browser:
        page = browser.new_page(viewport={"width": 390, "height": 844})
        page.goto(client.url)
        trouble = page.locator(".tile .trouble").first
        expect(trouble).to_contain_text(f", transaction {HOSTILE} holds it back; __consumer_offsets 1", timeout=60_000)
        expect(trouble).to_contain_text(", an open transaction holds it back")
        assert page.evaluate("window.taken") is None
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        picture(page, "phone-unread")
