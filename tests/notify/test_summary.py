"""Notifications in plain words, and their links to the dashboard."""

from typing import Any

import pytest
from msgspec.structs import replace

from tests.notify.notifications import HOSTILE, hostile_notification
from warren.incidents.model import Event, Notification
from warren.notify.summary import Line, link_to, one_line, summarize
from warren.notify.templates.sample import sample_notification, sample_storm


def with_result(notification: Notification, **changes: Any) -> Notification:
    return replace(notification, result=replace(notification.result, **changes))


OPEN, CLOSE = sample_notification("x", Event.OPEN), sample_notification("x", Event.CLOSE)
STORM = sample_storm("x", Event.OPEN)
IN_TIME = "41 min behind, catches up in about 12 min, loses data in 3 h, 1,234 messages lost"


@pytest.mark.parametrize(
    ("notification", "headline", "reason"),
    [
        (
            OPEN,
            "ERR: sample-group on sample-cluster",
            f"1 partition does not move, 1 partition falls behind; {IN_TIME}",
        ),
        (
            replace(with_result(OPEN, status="WARN", partitions=OPEN.result.partitions[1:] * 2), event=Event.WORSE),
            "WARN, worse than before: sample-group on sample-cluster",
            f"2 partitions fall behind; {IN_TIME}",
        ),
        (
            replace(with_result(OPEN, partitions=OPEN.result.partitions[:1] * 1000), event=Event.REMINDER),
            "still ERR: sample-group on sample-cluster",
            f"1,000 partitions do not move; {IN_TIME}",
        ),
        (CLOSE, "OK again: sample-group on sample-cluster", "this is a sample, after 90 s; 1,234 messages lost"),
        (
            with_result(CLOSE, status="NOTFOUND"),
            "gone: sample-group on sample-cluster",
            "this is a sample, after 90 s; 1,234 messages lost",
        ),
        (
            with_result(
                replace(OPEN, event=Event.REPORT),
                status="OK",
                partitions=[],
                seconds_behind=0.0,
                lost_messages=0,
                retention_left_seconds=None,
            ),
            "OK: sample-group on sample-cluster",
            "all partitions keep up",
        ),
        (
            STORM,
            "ERR: 37 groups on sample-cluster",
            (
                "37 groups are in trouble at the same time; the furthest is 41 min behind, catches up in about 12 min, "
                "loses data in 3 h; 1,234 messages lost"
            ),
        ),
    ],
)
def test_headline_and_reason(notification: Notification, headline: str, reason: str) -> None:
    summary = summarize(notification)
    assert (summary.headline, summary.reason) == (headline, reason)


def test_the_worst_partitions_or_groups_are_listed_and_the_rest_is_counted() -> None:
    summary = summarize(OPEN)
    assert summary.lines[0] == Line("payments 3", "STALL, lag 45,000, read by /10.0.0.7 sample-client-1")
    assert (len(summary.lines), summary.more, summary.affected) == (2, "", "2 of 12 partitions")
    summary = summarize(with_result(OPEN, partitions=OPEN.result.partitions * 600))
    assert (len(summary.lines), summary.more) == (5, "and 1,195 more")
    summary = summarize(STORM)
    assert summary.lines[0] == Line("sample-group-1", "ERR, lag 46,199, 41 min behind, 2 bad partitions")
    assert (len(summary.lines), summary.more, summary.affected) == (10, "and 27 more", "37 groups")


@pytest.mark.parametrize("name", HOSTILE)
def test_names_have_no_line_breaks_and_are_short(name: str) -> None:
    summary = summarize(hostile_notification(name, Event.OPEN))
    for text in (summary.headline, summary.group, summary.reason, *(line.text for line in summary.lines)):
        assert text.isprintable()
        assert len(text) < 400
    assert one_line(" a\n\tb  ") == "a b"
    assert one_line("x" * 9, 5) == "xxxx…"


@pytest.mark.parametrize(
    ("external_url", "notification", "link"),
    [
        (None, OPEN, ""),
        ("", OPEN, ""),
        ("http://w:8000", OPEN, "http://w:8000/#/group/sample-cluster/sample-group"),
        ("https://w/kafka/", OPEN, "https://w/kafka/#/group/sample-cluster/sample-group"),
        ("http://w", replace(OPEN, group="a/b?c#d é"), "http://w/#/group/sample-cluster/a%2Fb%3Fc%23d%20%C3%A9"),
        ("http://w", replace(OPEN, group="x" * 5_000), "http://w/#/incidents?cluster=sample-cluster"),
        ("http://w", replace(STORM, cluster="a&b"), "http://w/#/incidents?cluster=a%26b"),
    ],
)
def test_a_link_leads_to_the_group_or_to_all_incidents(
    external_url: str | None, notification: Notification, link: str
) -> None:
    assert link_to(notification, external_url) == link
