"""Renders notifications with the templates of a notifier; if a template fails, a plain message replaces it."""

import json
import logging
from dataclasses import dataclass
from pathlib import Path

from gotemplate import TemplateError
from warren.config import Notifier
from warren.incidents.model import Event, Notification
from warren.notify.summary import time_lag_fields
from warren.notify.templates import go, jinja
from warren.notify.templates.url import UrlTemplate

log = logging.getLogger(__name__)


Template = go.GoTemplate | jinja.JinjaTemplate
"""A parsed template."""


@dataclass(frozen=True, slots=True)
class MessageTemplates:
    """The templates of one notifier."""

    notifier: str
    template_open: Template | None
    template_close: Template | None

    def body(self, notification: Notification) -> str:
        """The rendered notification; a plain message without a template that works."""
        message = self.try_render(notification)
        return plain_message(notification) if message is None else message

    def try_render(self, notification: Notification) -> str | None:
        """The rendered notification; None without a template that works."""
        try:
            return self.render(notification)
        except TemplateError as error:
            log.error("notifier %s: %s; a plain message is sent instead", self.notifier, error)
            return None

    def render(self, notification: Notification) -> str | None:
        """The rendered notification, None without a template; a TemplateError says why the template fails."""
        template = self.template_close if notification.event is Event.CLOSE else self.template_open
        return None if template is None else template.render(notification)


def read_templates(notifier: Notifier, external_url: str | None = None) -> MessageTemplates:
    """Read the template files of a notifier; a TemplateError names the file, the line and the mistake."""

    def read(path: Path | None) -> Template | None:
        if path is None:
            return None
        text = path.read_text(encoding="utf-8")
        if path.suffix in jinja.SUFFIXES:
            return jinja.parse(text, str(path), notifier.extras, external_url)
        return go.parse(text, str(path), notifier.extras)

    return MessageTemplates(notifier.name, read(notifier.template_open), read(notifier.template_close))


def url_template(url: str, notifier: Notifier, key: str) -> UrlTemplate:
    """The Go template of a URL that is the value of a key."""
    return UrlTemplate(go.parse(url, f"notifier.{notifier.name}.{key}", notifier.extras))


def plain_message(notification: Notification) -> str:
    """The message that replaces a failing template."""
    return json.dumps(
        {
            "id": notification.incident,
            "event": str(notification.event),
            "cluster": notification.cluster,
            "group": notification.group,
            "status": notification.result.status,
            "totallag": notification.result.totallag,
            "start": notification.opened_ms,
            "why": notification.reason,
            **time_lag_fields(notification),
        },
        ensure_ascii=False,
    )
