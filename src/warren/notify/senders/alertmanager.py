"""The alertmanager notifier: an incident is one alert in Prometheus' Alertmanager, which notifies people itself."""

import json
import re
import time
from collections.abc import Mapping
from datetime import UTC, datetime

from warren.incidents.model import Event, Notification
from warren.notify.senders.sender import HttpClientSender
from warren.notify.summary import link_to, summarize, time_lag_fields

PATH = "/api/v2/alerts"
ALERT_NAME, STORM_ALERT_NAME = "ConsumerGroupLag", "ConsumerGroupLagStorm"
MISSED_REMINDERS = 4
"""After how many missed reminders an alert ends by itself."""
MIN_LIFETIME_S = 300
SEND_ONCE_LIFETIME_S = 30 * 86_400
"""How long an alert lives that is never repeated, unless it is closed."""
_SEVERITIES = {"ERR": "critical", "WARN": "warning"}


class AlertmanagerSender(HttpClientSender):
    """Keeps one alert per incident alive, and ends it with the incident."""

    def send(self, notification: Notification) -> None:
        """Send a notification as an alert; reports on healthy groups are not alerts, and are dropped."""
        if notification.event is Event.REPORT:
            return
        alert = {
            "labels": _labels(notification, self._notifier.extras),
            "annotations": _annotations(notification),
            "startsAt": _to_rfc3339(notification.opened_ms / 1000),
            "endsAt": _to_rfc3339(self._end_s(notification)),
            "generatorURL": link_to(notification, self._external_url),
        }
        url = self._url.rstrip("/").removesuffix(PATH) + PATH
        self._client.send("POST", url, json.dumps([alert], ensure_ascii=False).encode())

    def _end_s(self, notification: Notification) -> float:
        if notification.event is Event.CLOSE:
            # Never before the start, even if the clock was set back.
            return max(notification.due_ms, notification.opened_ms + 1) / 1000
        if self._notifier.send_once:
            return time.time() + SEND_ONCE_LIFETIME_S
        return time.time() + max(MISSED_REMINDERS * self._notifier.send_interval_ms / 1000, MIN_LIFETIME_S)


def _labels(notification: Notification, extras: Mapping[str, str]) -> dict[str, str]:
    """The alert's identity: the same for all notifications of an incident, so without status and counts."""
    labels = {_to_label_name(name): value for name, value in extras.items() if value}
    labels["cluster"] = notification.cluster
    if notification.is_storm:
        # Without a team: groups of other teams may join the storm.
        return labels | {"alertname": STORM_ALERT_NAME, "incident": notification.incident}
    labels |= {"alertname": ALERT_NAME, "group": notification.group}
    return labels | ({"team": notification.team} if notification.team else {})


def _annotations(notification: Notification) -> dict[str, str]:
    summary = summarize(notification)
    status = notification.result.status
    return {
        "summary": summary.headline,
        "description": "\n".join([summary.reason, *summary.list_lines()]),
        "status": status,
        "severity": _SEVERITIES.get(status, "none"),
        "totallag": str(notification.result.totallag),
        "incident": notification.incident,
        **{name: str(value) for name, value in time_lag_fields(notification).items()},
    }


def _to_label_name(name: str) -> str:
    """A name with only the characters that Prometheus allows in label names."""
    return re.sub(r"^(?=[0-9])", "_", re.sub(r"[^a-zA-Z0-9_]", "_", name))


def _to_rfc3339(at_s: float) -> str:
    return datetime.fromtimestamp(at_s, UTC).isoformat(timespec="milliseconds")
