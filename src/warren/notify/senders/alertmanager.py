"""The alertmanager notifier: an incident is one alert of Prometheus' Alertmanager, which tells people by itself."""

import json
import re
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from warren.config import Notifier
from warren.delivery.http_client import HttpClient
from warren.incidents.model import Event, Notification
from warren.notify.links import Links
from warren.notify.summary import summarize

PATH = "/api/v2/alerts"
ALERT, STORM = "ConsumerGroupLag", "ConsumerGroupLagStorm"
INTERVALS = 4
"""How many reminders may be late before an alert ends by itself."""
LEAST_S = 300
ONCE_S = 30 * 86_400
"""How long an alert lives that nobody repeats, unless its end is told."""


class AlertmanagerSender:
    """Keeps one alert an incident alive, and ends it."""

    def __init__(self, notifier: Notifier, links: Links, clock_s: Callable[[], float] = time.time) -> None:
        assert notifier.url_open is not None
        self._url = notifier.url_open.rstrip("/").removesuffix(PATH) + PATH
        self._notifier = notifier
        self._links = links
        self._clock_s = clock_s
        self._client = HttpClient.for_notifier(notifier)

    def __call__(self, letter: Notification) -> None:
        """Send an alert; RefusedError when it will never be taken."""
        if letter.event is Event.REPORT:
            # That a group is well is no alert.
            return
        alert = {
            "labels": labels_of(letter, self._notifier.extras),
            "annotations": _annotations(letter),
            "startsAt": _moment(letter.opened_ms / 1000),
            "endsAt": _moment(self._end_s(letter)),
            "generatorURL": self._links.to(letter),
        }
        self._client.send("POST", self._url, json.dumps([alert], ensure_ascii=False).encode())

    def _end_s(self, letter: Notification) -> float:
        if letter.event is Event.CLOSE:
            # After its beginning, whatever the clock did meanwhile.
            return max(letter.due_ms, letter.opened_ms + 1) / 1000
        interval_s = self._notifier.send_interval or self._notifier.interval
        return self._clock_s() + (ONCE_S if self._notifier.send_once else max(INTERVALS * interval_s, LEAST_S))

    def close(self) -> None:
        """Give the connection back."""
        self._client.close()


def labels_of(letter: Notification, extras: Mapping[str, str]) -> dict[str, str]:
    """What the alert is known by: the same from its first letter to its last, and so without a status or a count."""
    own = {"alertname": STORM if letter.is_storm else ALERT, "cluster": letter.cluster}
    if letter.is_storm:
        # Whose groups they are may change as others join.
        own |= {"incident": letter.incident}
    else:
        own |= {"group": letter.group} | ({"team": letter.team} if letter.team else {})
    return {_label(name): value for name, value in extras.items() if value} | own


def _annotations(letter: Notification) -> dict[str, str]:
    story = summarize(letter)
    lines = [f"{line.name}: {line.words}" for line in story.lines]
    status = letter.result.status
    return {
        "summary": story.headline,
        "description": "\n".join([story.reason, *lines, *([story.more] if story.more else [])]),
        "status": status,
        "severity": {"ERR": "critical", "WARN": "warning"}.get(status, "none"),
        "totallag": str(letter.result.totallag),
        "incident": letter.incident,
    }


def _label(name: str) -> str:
    """A name as Prometheus allows it for a label."""
    return re.sub(r"^(?=[0-9])", "_", re.sub(r"[^a-zA-Z0-9_]", "_", name))


def _moment(at_s: float) -> str:
    return datetime.fromtimestamp(at_s, UTC).isoformat(timespec="milliseconds")
