"""The page of a group that is hours behind, on a topic that soon deletes what is unread."""

import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from tests.kit.browsers import a_browser, barriers, picture
from tests.kit.servers import Town, server_config, serving

BEHIND = [(900, 60.0), (1, 7200.0), (50, 600.0)]
"""Lag and time lag of each partition: the one with the smallest lag waits longest."""
FORECAST = {"catch_up_seconds": 900.0, "catch_up_seconds_at_most": 2400.0, "is_falling_behind": False}
RATES = {"produced_1m": 120.0, "produced_10m": 130.0, "consumed_1m": 0.0, "consumed_10m": 0.0}
OLD = {"oldest_unread_age_seconds": 432_000.0}
"""A backfill: what is unread was made long before it was written."""
DANGER = {"retention_left_seconds": 1800.0, "lost_messages": 1234}
HISTORY_S = 3000


def fulfil(route: Route) -> None:
    """The server's answer, with the hours that no test waits for put in."""
    got = route.fetch()
    answer: dict[str, Any] = got.json()
    if "explanation" in answer:
        group = answer["explanation"]
        group["totallag"] = 951
        group["time_lag"] |= FORECAST | DANGER | OLD | {"seconds_behind": 7200.0, "rates": RATES}
        for partition, (lag, seconds) in zip(group["partitions"], BEHIND, strict=True):
            left = 1800.0 if seconds == 7200.0 else None
            partition["current_lag"] = lag
            partition["time_lag"] |= {"seconds_behind": seconds, "seconds_behind_method": "head_history"}
            partition["time_lag"] |= {"retention_left_seconds": left, "rates": RATES}
    else:
        now_ms = route.request.frame.page.evaluate("Date.now()")
        point = {"status": "ERR", "worst": "STALL", "since": now_ms - HISTORY_S * 1000, "maxlag": 900, "known": True}
        answer["history"] = [
            point | {"time": now_ms - age_s * 1000, "totallag": 951 - age_s // 5, "seconds_behind": 7200.0 - age_s}
            for age_s in range(HISTORY_S, 0, -30)
        ]
    route.fulfill(response=got, json=answer)


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 390)])
def test_a_group_shows_its_time_lag_and_what_becomes_of_it(tmp_path: Path, scheme: Any, width: int) -> None:
    town = Town(tmp_path).grow()
    town.publish()
    with serving(server_config(town.data)) as [client], a_browser() as browser:
        page = browser.new_page(viewport={"width": width, "height": 1100}, color_scheme=scheme)
        page.set_default_timeout(60_000)
        page.route(re.compile("/consumer/stalled/(explain|history)"), fulfil)
        page.goto(f"{client.url}/#/group/one/stalled")
        show_facts_and_order(page)
        assert barriers(page) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        picture(page, f"time-lag-{scheme}")
        switch_units(page)
        picture(page, f"time-lag-{scheme}-messages")
        # The page polls, and a request may be running.
        page.unroute_all(behavior="ignoreErrors")


def show_facts_and_order(page: Page) -> None:
    """The facts, and the partitions by how long their first unread message has been waiting."""
    facts = page.locator(".facts").first
    expect(facts).to_contain_text(
        "Time lag≥ 2 hOldest unread5 d oldCatches up15\N{EN DASH}40 minLoses data in30 minLost messages1,234"
    )
    expect(facts).to_contain_text("Produced120/sConsumed0/s")
    expect(page.get_by_role("columnheader", name="Time lag")).to_have_attribute("aria-sort", "descending")
    for row, (partition, text) in enumerate([(1, "2 h"), (2, "10 min"), (0, "1 min")], start=2):
        cells = page.locator(f'.body .row[aria-rowindex="{row}"]')
        expect(cells).to_contain_text(f"orders{partition}{text}")


def switch_units(page: Page) -> None:
    """The history in seconds, which says what becomes of the lag, and by keyboard in messages."""
    history = page.get_by_role("region", name="History")
    expect(history.get_by_role("img", name="Time lag over the last 1h, now ≥ 2 h")).to_be_visible()
    expect(history).to_contain_text("catches up in 15\N{EN DASH}40 min. orders 1 loses messages in 30 min")
    button = history.get_by_role("button", name="messages")
    button.press("Enter")
    expect(button).to_have_attribute("aria-pressed", "true")
    expect(history.get_by_role("img", name=re.compile("^Lag over the last 1h"))).to_be_visible()
    assert "unit=messages" in page.url
