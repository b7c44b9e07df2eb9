"""Routing: the team, notifiers and channels of groups."""

import pytest

from tests.kit.incidents import notifier
from warren.config import Route
from warren.domain.status import Status
from warren.incidents.routing import MAX_CACHED_GROUPS, NotificationRouter

POLICIES = [notifier("slack"), notifier("pager"), notifier("log")]
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
def test_the_first_matching_route_sets_the_recipients(
    routes: tuple[Route, ...], name: tuple[str, str], expected: tuple[str, dict[str, str]]
) -> None:
    recipients = NotificationRouter(POLICIES, routes).recipients_of([name, ("other", "x")])[name]
    channels = {policy.name: recipients.channels.get(policy.name, "") for policy in recipients.notifiers}
    assert (recipients.team, channels) == expected


def test_the_lists_of_a_notifier_apply_in_addition_to_routes() -> None:
    router = NotificationRouter([notifier("pager", group_denylist="test$")], (PAYMENTS,))
    routed = router.recipients_of([("prod-1", "pay-test"), ("prod-1", "pay-x")])
    assert {group: len(recipients.notifiers) for (_, group), recipients in routed.items()} == {
        "pay-test": 0,
        "pay-x": 1,
    }


def test_the_cache_of_recipients_is_bounded() -> None:
    router = NotificationRouter(POLICIES, (PAYMENTS,))
    router.recipients_of(("c", f"g{index}") for index in range(MAX_CACHED_GROUPS + 1))
    assert len(router.recipients_of([("c", "new")])) == 1


def test_allowlists_and_denylists_choose_the_notifiers_of_a_group() -> None:
    router = NotificationRouter(
        [
            notifier("all"),
            notifier("payments", group_allowlist="^pay"),
            notifier("rest", group_denylist="^pay|test$"),
            notifier("some", group_allowlist="^pay", group_denylist="test$"),
        ]
    )
    by_group = router.recipients_of([("c", "pay-1"), ("c", "pay-test"), ("c", "orders")])
    assert {
        group: [notifier.name for notifier in recipients.notifiers] for (_, group), recipients in by_group.items()
    } == {
        "orders": ["all", "rest"],
        "pay-1": ["all", "payments", "some"],
        "pay-test": ["all", "payments"],
    }
    assert router.recipients_of([("c", "orders")])["c", "orders"] == by_group["c", "orders"]
    assert not router.reports_ok_groups
    assert NotificationRouter([notifier("good", threshold=Status.OK)]).reports_ok_groups
