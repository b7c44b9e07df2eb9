"""The dashboard in a real browser, on the real demo: what an on-call engineer sees and does."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, Locator, Page, Route, ViewportSize, expect

from tests.kit.browsers import a_browser, barriers, picture
from tests.kit.demos import Demo, running_demo
from warren.demo.workload.consuming_groups import Healthy

pytestmark = pytest.mark.timeout(600)

HOSTILE = '<img src=x onerror="window.taken=1">\'&\u202egroup'
PATIENCE_MS = 90_000
expect.set_options(timeout=PATIENCE_MS)
WIDE: ViewportSize = {"width": 1280, "height": 900}
PHONE: ViewportSize = {"width": 390, "height": 844}


@pytest.fixture(scope="module")
def demo() -> Iterator[Demo]:
    with running_demo() as demo:
        yield demo
    assert f"curl {demo.url}/v3/kafka/demo/consumer/email-stalled/lag" in "".join(demo.output), "a command to try"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with a_browser() as browser:
        yield browser


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page; it must log no errors and load nothing from other hosts."""
    with browser.new_context(viewport=WIDE, color_scheme="light") as context:
        page = context.new_page()
        page.set_default_timeout(PATIENCE_MS)
        problems: list[str] = []
        page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("request", lambda request: problems.append(request.url) if not is_local(request.url) else None)
        yield page
        assert problems == []


def is_local(url: str) -> bool:
    return url.startswith(("http://127.0.0.1:", "data:"))


def too_wide(page: Page) -> list[str]:
    """The elements that make a page wider than its screen."""
    found: list[str] = page.evaluate("""() => {
      const wide = document.documentElement.clientWidth
      if (document.documentElement.scrollWidth <= screen.width) return []
      const all = [...document.querySelectorAll("body *")].filter(e => e.getBoundingClientRect().right > screen.width)
      return [`${wide}`, ...all.map(e => e.outerHTML.slice(0, 120))]
    }""")
    return found


def in_order(page: Page) -> list[str]:
    """The names in a table from top to bottom."""
    rows = page.locator(".body .row").all()
    return [row.locator(".name").inner_text() for row in sorted(rows, key=lambda row: row.bounding_box()["y"])]  # type: ignore[index]


def top_of(element: Locator) -> float:
    box = element.bounding_box()
    assert box is not None
    return box["y"]


def group_url(demo: Demo, group: str, more: str = "") -> str:
    return f"{demo.url}/#/group/demo/{quote(group, safe='')}{more}"


def test_from_the_overview_to_a_group_to_a_partition(demo: Demo, page: Page) -> None:
    page.goto(demo.url)
    worst = page.locator(".worst li").filter(has_text="email-stalled")
    expect(worst).to_contain_text("STALL")
    expect(worst).to_contain_text("all at offset")
    expect(page.locator(".tile")).to_contain_text("demo")
    expect(page.get_by_role("region", name="Pipeline")).to_contain_text("up to date")
    picture(page, "overview")
    assert barriers(page) == []

    worst.get_by_role("link", name="email-stalled").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(re.compile("email-stalled.*ERR"))
    expect(page.locator(".verdict")).to_contain_text("since")
    expect(page.locator(".map .cell")).to_have_count(3)
    expect(page.locator(".map .is-stall")).to_have_count(3)
    expect(page.locator(".timeline")).to_contain_text("Not OK")
    assert barriers(page) == []

    page.locator(".map .cell").nth(1).click()
    card = page.get_by_role("region", name="Partition 1", exact=True)
    expect(card).to_contain_text("all at offset")
    expect(card.get_by_role("img")).to_have_attribute("aria-label", re.compile(r"The last \d+ commits"))
    expect(page.locator("button[aria-expanded=true]")).to_have_text("1")
    picture(page, "group")
    expect(page.get_by_role("region", name="Incidents")).to_contain_text("open")
    shared = page.url
    assert "partition=orders%2F1" in shared

    page.goto("about:blank")
    page.goto(shared)
    expect(page.get_by_role("region", name="Partition 1", exact=True)).to_contain_text("all at offset")
    page.get_by_role("link", name="orders").first.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("orders")
    expect(page.locator(".readers li").filter(has_text="email-stalled")).to_contain_text("ERR")
    expect(page.locator(".facts")).to_contain_text(re.compile(r"Messages per second\s*[\d,]{2,}"))
    picture(page, "topic")
    assert barriers(page) == []


def test_groups_are_searched_filtered_and_sorted_by_keyboard(demo: Demo, page: Page) -> None:
    page.goto(f"{demo.url}/#/groups")
    rows = page.locator(".body .row")
    expect(page.locator(".filters output")).to_contain_text(re.compile(r"(\d+) of \1 groups"))
    assert rows.count() >= 10
    assert barriers(page) == []
    picture(page, "groups")

    page.keyboard.press("/")
    page.keyboard.type("PAIR inv")
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("inventory-pair")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text("inventory-pair")
    expect(page.get_by_role("table", name="Partitions of this group")).to_contain_text("/")

    page.goto(f"{demo.url}/#/groups?topic=payments")
    expect(rows.filter(has_text="settlement-transactional")).to_have_count(1)
    expect(rows.filter(has_text="email-stalled")).to_have_count(0)
    page.goto(f"{demo.url}/#/groups?status=ERR")
    expect(rows.filter(has_text="email-stalled")).to_have_count(1)
    expect(rows.filter(has_text="billing-healthy")).to_have_count(0)

    page.goto(f"{demo.url}/#/groups")
    page.get_by_role("button", name="Group", exact=True).click()
    expect(page.get_by_role("columnheader", name="Group")).to_have_attribute("aria-sort", "ascending")
    expect(page.locator('.body .row[aria-rowindex="2"]')).to_contain_text("backup-catching-up")
    names = in_order(page)
    assert names == sorted(names)
    page.get_by_role("button", name="Lag", exact=True).click()
    expect(page.locator("[aria-sort=descending]")).to_contain_text("Lag")
    assert in_order(page) != names


def test_groups_show_how_far_they_are_behind_in_time(demo: Demo, page: Page) -> None:
    page.goto(f"{demo.url}/#/groups")
    stopped = page.locator(".body .row").filter(has_text="export-stopped")
    expect(stopped).to_contain_text(re.compile(r"\d (s|min)\s*never"))
    expect(page.locator(".body .row").filter(has_text="billing-healthy")).to_contain_text("keeps up")
    expect(stopped.get_by_title(re.compile("first unread message"))).to_be_visible()
    for column in ("Catches up", "Time lag"):
        page.get_by_role("button", name=column).click()
        expect(page.get_by_role("columnheader", name=column)).to_have_attribute("aria-sort", "descending")
    assert in_order(page).index("export-stopped") < in_order(page).index("billing-healthy")


def test_a_consumer_that_stops_is_shown_at_once_and_its_hostile_name_is_text(demo: Demo, page: Page) -> None:
    with Healthy(demo.bootstrap, "orders", HOSTILE, commit_every_s=0.5):
        page.goto(f"{demo.url}/#/groups?q=onerror")
        expect(page.locator(".body .row")).to_contain_text("OK")
        expect(page.locator(".body .row .name")).to_have_text(HOSTILE)
        page.goto(group_url(demo, HOSTILE, "?range=1h"))
        title = page.get_by_role("heading", level=1)
        expect(title).to_contain_text(HOSTILE)
        expect(title).to_contain_text("OK")
        expect(page.locator(".timeline")).to_be_visible()
        page.locator("[data-row]").first.click()
        expect(page.get_by_role("region", name=re.compile(r"^Partition \d")).get_by_role("img")).to_be_visible()
        history = page.get_by_role("region", name="History")
        page.evaluate("scrollTo(0, 300)")
        page.wait_for_timeout(500)
        at = top_of(history)
    # From here on the page is only watched.
    expect(title).to_contain_text("ERR")
    expect(page.locator(".map .is-stop")).to_have_count(3)
    expect(page.locator(".verdict")).to_contain_text("no commit")
    assert page.locator("button[aria-expanded=true]").count() == 1, "the selected partition stays selected"
    assert top_of(history) == pytest.approx(at, abs=60), "the page does not scroll"
    assert page.locator("img[src=x]").count() == 0
    assert page.evaluate("window.taken") is None
    picture(page, "stopped")


def test_incidents_are_listed_open_and_closed(demo: Demo, page: Page) -> None:
    page.goto(f"{demo.url}/#/incidents?state=open")
    stalled = page.locator(".incidents li").filter(has_text="email-stalled")
    expect(stalled).to_contain_text("ERR")
    expect(stalled).to_contain_text("3 partitions: orders")
    picture(page, "incidents")
    page.get_by_role("button", name="closed").click()
    expect(stalled).to_have_count(0)
    assert "state=closed" in page.url


def test_an_incident_is_acknowledged_and_its_group_silenced_for_a_while(demo: Demo, page: Page) -> None:
    page.goto(f"{demo.url}/#/incidents?state=open")
    stalled = page.locator(".incidents li").filter(has_text="email-stalled")
    stalled.get_by_role("button", name="Acknowledge").click()
    expect(stalled.get_by_label("Your name")).to_be_focused()
    page.keyboard.type("ann <b>")
    stalled.get_by_label("What you are doing about it").fill("I restart it")
    assert barriers(page) == []
    page.keyboard.press("Enter")
    expect(stalled.locator(".state")).to_have_text(re.compile(r"Acknowledged by ann <b> \d+ s ago: I restart it"))
    expect(page.locator("[aria-live=polite]")).to_have_text("email-stalled is acknowledged")

    stalled.get_by_role("link", name="Silence…").click()
    form = page.get_by_role("form", name="Silence groups")
    expect(form.get_by_label("Why")).to_be_focused()
    expect(form.get_by_label("Group")).to_have_value("email-stalled")
    expect(form.get_by_label("Cluster")).to_have_value("demo")
    expect(form.get_by_label("Your name")).to_have_value("ann <b>")
    page.keyboard.type("a release")
    form.get_by_role("combobox").select_option("1 day")
    form.get_by_role("button", name="Silence").click()
    listed = page.get_by_role("region", name="Silences").get_by_role("listitem")
    expect(listed).to_have_text(re.compile("email-stalled in demo.*a release.*ann <b>, until .*, (1 d|23 h .*) left"))
    expect(stalled.locator(".state")).to_contain_text("silenced")
    assert "state=open" in page.url
    assert barriers(page) == []
    picture(page, "silences")

    page.goto(group_url(demo, "email-stalled"))
    expect(page.locator(".title .state")).to_have_text(re.compile("silenced.*Acknowledged by ann <b>"))
    page.get_by_role("link", name="Silence…", exact=True).click()
    expect(page.get_by_role("form").get_by_label("Why")).to_be_focused()
    page.reload()
    expect(page.get_by_role("form").get_by_label("Your name")).to_have_value("ann <b>")
    expect(listed).to_have_count(1)
    listed.get_by_role("button", name="End").click()
    expect(listed).to_have_count(0)
    stalled.get_by_role("button", name="Withdraw").click()
    expect(stalled.get_by_role("button", name="Acknowledge")).to_be_visible()
    expect(stalled.locator(".state")).to_have_count(0)


def test_an_error_of_the_server_is_shown_beside_the_form(demo: Demo, browser: Browser) -> None:
    with browser.new_context(viewport=WIDE) as context:
        page = context.new_page()
        page.goto(f"{demo.url}/#/incidents?for_cluster=demo&for_group=x*")
        form = page.get_by_role("form", name="Silence groups")
        form.get_by_label("Why").fill(" ")
        form.get_by_role("button", name="Silence").click()
        expect(form.get_by_role("alert")).to_have_text("Failed: `by` is missing")
        page.route(
            "**/v3/silences", lambda route: route.fulfill(status=403, json={"message": "the admin role is required"})
        )
        form.get_by_role("button", name="Silence").click()
        expect(form.get_by_role("alert")).to_have_text("Failed: the admin role is required")
        expect(form.get_by_label("Group")).to_have_value("x*")


MESSAGE = {
    "event": "open",
    "due": 1000,
    "sent": 2000,
    "given_up": None,
    "attempts": 0,
    "trouble": "",
    "why": "it is ERR",
}
NOTIFIER = {"class": "http", "waiting": 0, "sent": 7, "given_up": 1, "last_sent": 1000, "trouble": ""}


@contextmanager
def with_notifiers(page: Page) -> Iterator[None]:
    """The demo has no notifiers: answers of a server that has some are put in."""

    def answer(route: Route) -> None:
        got = route.fetch()
        said = got.json()
        away = {"state": "away", "why": "the lock is lost", "since": 1000}
        if "overview" in said:
            said["overview"]["notifying"] = away
        if "notifiers" in said:
            stuck = NOTIFIER | {"name": "mail", "waiting": 2, "trouble": "no answer from <mail>"}
            said |= {"duty": away, "notifiers": [NOTIFIER | {"name": "hook"}, stuck]}
        if "incident" in said:
            late = {"sent": None, "attempts": 3, "trouble": "no answer from <mail>"}
            told = [
                MESSAGE | {"notifier": "hook", "channel": "#x"},
                MESSAGE | late | {"notifier": "mail", "channel": ""},
            ]
            said["incident"] |= {"messages": told, "message_count": 2}
        route.fulfill(response=got, json=said)

    page.route(re.compile("/v3/(overview|notifiers|incidents/.*)$"), answer)
    yield
    # The page polls, and a request may be running.
    page.unroute_all(behavior="ignoreErrors")


def test_notifications_and_problems_of_notifiers_are_shown(demo: Demo, page: Page) -> None:
    with with_notifiers(page):
        page.goto(demo.url)
        notice = page.get_by_role("region", name="Notification problems")
        expect(notice).to_contain_text("This Warren sends no notifications: the lock is lost")
        expect(notice).to_contain_text("2 notifications are waiting for mail: no answer from <mail>")
        assert barriers(page) == []
        page.goto(f"{demo.url}/#/incidents?state=open")
        expect(page.get_by_role("region", name="Notifiers")).to_contain_text("7 sent")
        page.locator(".incidents li").filter(has_text="email-stalled").get_by_role("link", name="Notifications").click()
        expect(page.get_by_role("heading", level=1)).to_have_text(re.compile("email-stalled.*ERR"))
        hook, mail = page.locator("tbody tr").all()
        expect(hook).to_have_text(re.compile("^hook#xopenit is ERR1970.*1970"))
        expect(mail).to_have_text(re.compile("^mailopen.*Not yet, 3 attemptsno answer from <mail>$"))
        expect(page.get_by_role("region", name="Timeline")).to_contain_text("3 partitions: orders")
        assert barriers(page) == []
        picture(page, "incident")


def test_phones_and_the_dark_theme(demo: Demo, browser: Browser) -> None:
    with browser.new_context(viewport=PHONE, color_scheme="dark", has_touch=True, is_mobile=True) as context:
        page = context.new_page()
        page.set_default_timeout(PATIENCE_MS)
        incident = page.request.get(f"{demo.url}/v3/incidents?state=open").json()["incidents"][0]["id"]
        with with_notifiers(page):
            for name, path, landmark in (
                ("overview", "#/", ".worst li"),
                ("groups", "#/groups", ".body .row"),
                ("group", "#/group/demo/email-stalled", ".map .cell"),
                ("topic", "#/topic/demo/orders", ".readers li"),
                ("incidents", "#/incidents", ".incidents li"),
                ("incident", f"#/incident/{incident}", ".told tr"),
            ):
                page.goto(f"{demo.url}/{path}")
                expect(page.locator(landmark).first).to_be_visible()
                assert too_wide(page) == []
                assert barriers(page) == []
                picture(page, f"phone-{name}")
        page.get_by_role("button", name="Switch to light theme").click()
        assert page.evaluate("document.documentElement.dataset.theme") == "light"
        page.reload()
        expect(page.get_by_role("button", name="Switch to dark theme")).to_be_visible()


def test_unknown_groups_incidents_and_pages(demo: Demo, browser: Browser) -> None:
    with browser.new_context(viewport=WIDE) as context:
        page = context.new_page()
        page.goto(group_url(demo, "nobody"))
        expect(page.get_by_text("Group not found in demo")).to_be_visible()
        page.goto(f"{demo.url}/#/nowhere/%E0%A4%A")
        expect(page.get_by_text("Page not found")).to_be_visible()
        page.goto(f"{demo.url}/#/incident/nobody")
        expect(page.get_by_text("Incident not found")).to_be_visible()


def test_a_server_that_does_not_answer_is_shown_and_the_last_answer_stays(demo: Demo, browser: Browser) -> None:
    with browser.new_context(viewport=WIDE) as context:
        page = context.new_page()
        page.goto(demo.url)
        expect(page.locator(".worst li").first).to_be_visible(timeout=PATIENCE_MS)
        context.set_offline(True)
        expect(page.get_by_role("status")).to_contain_text("the server does not answer")
        expect(page.locator(".worst li").first).to_be_visible()
        context.set_offline(False)
        expect(page.get_by_role("status")).to_be_empty(timeout=PATIENCE_MS)
