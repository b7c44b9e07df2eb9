"""Links from notifications to the dashboard."""

from dataclasses import dataclass
from urllib.parse import quote, urlencode

from warren.incidents.model import Notification

MAX_CHARS = 2000
"""Every service accepts links of this length."""


@dataclass(frozen=True, slots=True)
class Links:
    """Makes links, if the dashboard's address (`external-url`) is configured."""

    external_url: str | None = None

    def to(self, notification: Notification) -> str:
        """The page of the group, or the list of incidents for a storm; empty without an address."""
        if not self.external_url:
            return ""
        site = self.external_url.rstrip("/")
        group = f"{site}/#/group/{quote(notification.cluster, safe='')}/{quote(notification.group, safe='')}"
        if notification.is_storm or len(group) > MAX_CHARS:
            return f"{site}/#/incidents?{urlencode({'cluster': notification.cluster})}"
        return group
