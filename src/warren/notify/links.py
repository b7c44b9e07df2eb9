"""Where people see on the dashboard what a letter is about."""

from dataclasses import dataclass
from urllib.parse import quote, urlencode

from warren.incidents.model import Notification

LINK_CHARS = 2000
"""What every service takes; a name that makes a longer link is not meant for people."""


@dataclass(frozen=True, slots=True)
class Links:
    """Links to the dashboard, for which it must be known where people reach it."""

    external_url: str | None = None

    def to(self, letter: Notification) -> str:
        """The page of a letter's group, or of the incidents where a storm is listed; without a dashboard, nothing."""
        if not self.external_url:
            return ""
        site = self.external_url.rstrip("/")
        group = f"{site}/#/group/{quote(letter.cluster, safe='')}/{quote(letter.group, safe='')}"
        if letter.is_storm or len(group) > LINK_CHARS:
            return f"{site}/#/incidents?{urlencode({'cluster': letter.cluster})}"
        return group
