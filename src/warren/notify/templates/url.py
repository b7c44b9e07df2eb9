"""URLs of requests, which are Go templates: names from Kafka are percent-encoded, and never choose the server."""

import re
from dataclasses import dataclass
from urllib.parse import quote, unquote

from gotemplate import Source, TemplateError
from gotemplate.values import to_bytes
from warren.incidents.model import Notification
from warren.notify.templates.go import GoTemplate

_SERVER = re.compile(r"[^/?#]*//[^/?#]*(?=[/?#])")
"""Scheme, user, host and port, up to where the path or the query begins."""
_NAME_IN_SERVER = (
    "a name from Kafka (.Group, .Topic, .Owner, .ClientID) must not be in the scheme, user, host or port of a URL: "
    "whoever chose the name would choose the server that gets the request and its credentials"
)


class NameInServerError(TemplateError):
    """A URL in which a name from Kafka would be a part of the scheme, the user, the host or the port."""


@dataclass(frozen=True, slots=True)
class UrlTemplate:
    """A parsed template of a URL."""

    template: GoTemplate

    def render(self, notification: Notification) -> str:
        """The URL of a notification; a TemplateError says why there is none."""
        url, names = "", []
        for text, source in self.template.render_parts(notification):
            if source is Source.OWN:
                url += text
                continue
            start = len(url)
            url += quote(to_bytes(text), safe="") if source is Source.FOREIGN else text
            names.append((start, len(url)))
        server = _SERVER.match(url)
        if names and (server is None or names[0][0] < server.end()):
            raise NameInServerError(self.template.name, 1, _NAME_IN_SERVER)
        start = server.end() if server else 0
        for segment in re.split("[?#]", url[start:], maxsplit=1)[0].split("/"):
            end = start + len(segment)
            has_name = any(first <= end and start <= last for first, last in names)
            if has_name and _leads_elsewhere(segment, is_last=url[end : end + 1] != "/"):
                message = f"a name from Kafka makes the path segment {segment!r}, which leads to another path"
                raise TemplateError(self.template.name, 1, message)
            start = end + 1
        return url


def _leads_elsewhere(segment: str, *, is_last: bool) -> bool:
    """Whether a segment of a path stands for a directory: this one, the one above it, or with nothing after it."""
    # Some servers end a segment at a semicolon.
    return unquote(segment).partition(";")[0] in (".", "..") or (is_last and not segment)
