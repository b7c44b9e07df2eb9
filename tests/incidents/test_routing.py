"""Routes: whose groups they are, and who hears of them where."""

import pytest

from warren.config import Route
from warren.incidents.model import NotifierPolicy
from warren.incidents.routing import MAX_CACHED_GROUPS, NotificationRouter, NotifierFilter

LISTENERS = [
    NotifierFilter(NotifierPolicy("slack")),
    NotifierFilter(NotifierPolicy("pager")),
    NotifierFilter(NotifierPolicy("log")),
]
PAYMENTS = Route("1", ("slack", "pager"), "prod-*", "pay-*", "payments", "#pay")
REST = Route("2", ("slack",), team="platform", channel="#all")


@pytest.mark.parametrize(
    ("routes", "name", "expected"),
    [
        ((), ("prod-1", "pay-1"), ("", {"slack": "", "pager": "", "log": ""})),
        ((PAYMENTS,), ("prod-1", "pay-1"), ("payments", {"slack": "#pay", "pager": "#pay", "log": ""})),
        ((PAYMENTS,), ("test", "pay-1"), ("", {"log": ""})),
        ((PAYMENTS, REST), ("prod-1", "pay-1"), ("payments", {"slack": "#pay", "pager": "#pay", "log": ""})),
        ((PAYMENTS, REST), ("prod-1", "other"), ("platform", {"slack": "#all", "log": ""})),
        ((REST, PAYMENTS), ("prod-1", "pay-1"), ("platform", {"slack": "#all", "log": ""})),
        (
            (Route("1", ("slack",), team="a", channel="#a", continue_=True), PAYMENTS),
            ("prod-1", "pay-1"),
            ("a", {"slack": "#a", "pager": "#pay", "log": ""}),
        ),
        (
            (Route("1", team="owner", group="pay-*"), REST),
            ("prod-1", "pay-1"),
            ("owner", {"slack": "#all", "pager": "", "log": ""}),
        ),
    ],
)
def test_a_group_goes_where_the_first_route_that_fits_says(
    routes: tuple[Route, ...], name: tuple[str, str], expected: tuple[str, dict[str, str]]
) -> None:
    heard = NotificationRouter(LISTENERS, routes).recipients_of([name, ("other", "x")])[name]
    channels = {one.name: heard.channels.get(one.name, "") for one in heard.notifiers}
    assert (heard.team, channels) == expected


def test_lists_of_a_notifier_count_beside_the_routes() -> None:
    audiences = NotificationRouter([NotifierFilter(NotifierPolicy("pager"), denylist="test$")], (PAYMENTS,))
    found = audiences.recipients_of([("prod-1", "pay-test"), ("prod-1", "pay-x")])
    assert {group: len(heard.notifiers) for (_, group), heard in found.items()} == {"pay-test": 0, "pay-x": 1}


def test_names_that_come_and_go_are_not_remembered_for_ever() -> None:
    audiences = NotificationRouter(LISTENERS, (PAYMENTS,))
    audiences.recipients_of(("c", f"g{number}") for number in range(MAX_CACHED_GROUPS + 1))
    assert len(audiences.recipients_of([("c", "new")])) == 1
