"""The apprise notifier: any service that Apprise knows, by its URL."""

import logging
from typing import TYPE_CHECKING

from warren.config import Notifier
from warren.errors import WarrenError
from warren.incidents.model import Event, Notification
from warren.notify.links import Links
from warren.notify.summary import one_line, summarize
from warren.notify.templates.render import templates_of

if TYPE_CHECKING:
    import apprise

# Names come from Kafka: to no service may one of them be a mention or a tag.
_HARMLESS = str.maketrans({"@": "@\u200b", "<": "\u2039", ">": "\u203a"})


class AppriseSender:
    """Says each letter by one URL."""

    def __init__(self, notifier: Notifier, links: Links) -> None:
        self._service = service_of(notifier)
        self._composer = templates_of(notifier, links)
        self._links = links

    def __call__(self, letter: Notification) -> None:
        """Say a letter; Apprise does not tell why a service has not taken it, so that it is tried again."""
        own = _body(letter, self._links.to(letter))
        body = self._composer.made(letter) or own
        title = summarize(letter).headline.translate(_HARMLESS)
        if not self._service.notify(body=body, title=title, notify_type=_kind(letter), body_format="text"):
            raise ConnectionError("the service did not take it")

    def close(self) -> None:
        """There is nothing to give back."""


def service_of(notifier: Notifier) -> "apprise.Apprise":
    """What a notifier's URL stands for; a WarrenError when Apprise is not installed or does not know it."""
    assert notifier.url_open is not None
    try:
        import apprise
    except ImportError:
        raise WarrenError("class apprise needs a package: pip install 'warren[apprise]'") from None
    # Both would log URLs, which hold tokens.
    logging.getLogger("apprise").setLevel(logging.CRITICAL + 1)
    logging.getLogger("urllib3").setLevel(logging.ERROR)
    asset = apprise.AppriseAsset(app_id="Warren", app_desc="Kafka consumer lag")
    service = apprise.Apprise(asset=asset)
    if not service.add(notifier.url_open) or not len(service):
        raise WarrenError("url-open: is no URL that Apprise knows")
    for one in service:
        # What is too long for a service is said in parts; else it would be refused, each time it is tried.
        one.overflow_mode = apprise.OverflowMode.SPLIT
    return service


def _kind(letter: Notification) -> str:
    if letter.event is Event.CLOSE:
        return "success"
    return {"ERR": "failure", "WARN": "warning"}.get(letter.result.status, "info")


def _body(letter: Notification, link: str) -> str:
    story = summarize(letter)
    lines = [
        story.reason,
        f"Lag: {story.lag}",
        *([f"In trouble: {story.trouble}"] if letter.event is not Event.CLOSE else []),
        *([f"Team: {one_line(letter.team)}"] if letter.team else []),
        *(f"- {line.name}: {line.words}" for line in story.lines),
        *([story.more] if story.more else []),
    ]
    return "\n".join([*(line.translate(_HARMLESS) for line in lines), *([link] if link else [])])
