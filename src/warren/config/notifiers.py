"""Who is notified of what: `[notifier.NAME]` and `[[route]]`; where incidents are kept, and who of several notifies."""

from dataclasses import dataclass, field, replace
from typing import Annotated

from warren.config import values as v
from warren.config.section import RawSection, Sections
from warren.domain.matching import ANY

STORM_GROUPS = 20

HttpMethod = Annotated[str, v.text("an HTTP method", r"[A-Za-z]+")]
# Webhooks carry their token in the path.
SecretUrl = Annotated[str | None, replace(v.text("a URL, or a template of one", r"\S.*"), is_secret=True)]

_REQUIRED = {
    "http": ("template-open", "url-open"),
    "email": ("template-open", "server", "from", "to"),
    "null": ("template-open",),
    "alertmanager": ("url-open",),
    "apprise": ("url-open",),
}
"""The keys that each class of notifier needs."""
MAIL_TLS_PORT = 465
LOCAL_SERVERS = ("localhost", "127.0.0.1", "::1")
"""Mail servers that passwords are sent to without encryption."""
_SENDS_CLOSE_BY_DEFAULT = ("slack", "alertmanager", "apprise")
"""The classes that Burrow does not have."""


@dataclass(frozen=True)
class Notifier:
    """`[notifier.NAME]`: where notifications go, about which groups, and when."""

    name: str
    class_name: Annotated[str, v.one_of("http", "email", "slack", "alertmanager", "apprise", "null")]
    template_open: v.InputFile = None
    template_close: v.InputFile = None
    interval: Annotated[int, v.SECONDS] = 60
    send_interval: Annotated[int | None, v.SECONDS] = None
    threshold: Annotated[int, v.whole(1, 6)] = 2
    send_once: v.Switch = False
    send_close: Annotated[bool | None, v.SWITCH] = None
    extras: v.SecretTexts = field(default_factory=dict, repr=False)
    group_allowlist: v.Allowlist = None
    group_denylist: v.Denylist = None
    storm_groups: Annotated[int | None, v.whole(0, 1_000_000, "groups")] = None
    url_open: SecretUrl = field(default=None, repr=False)
    method_open: HttpMethod = "POST"
    url_close: SecretUrl = field(default=None, repr=False)
    method_close: HttpMethod = "POST"
    timeout: Annotated[int, v.SECONDS] = 5
    keepalive: Annotated[int, v.SECONDS_OR_0] = 300
    disable_http_keepalive: v.Switch = False
    username: v.OptionalText = None
    password: v.Password = None
    headers: v.SecretTexts = field(default_factory=dict, repr=False)
    extra_ca: v.InputFile = None
    noverify: v.Switch = False
    server: v.OptionalText = None
    port: Annotated[int | None, v.whole(1, 65_535)] = None
    # `from` is a keyword of Python.
    from_: v.OptionalText = None
    to: v.OptionalText = None
    auth_type: Annotated[str | None, v.one_of("", "plain", "crammd5")] = None
    require_tls: v.Switch = False
    token: v.Password = None
    channel: v.OptionalText = None

    @property
    def send_interval_ms(self) -> int:
        """The time between two reminders of an incident."""
        return (self.send_interval or self.interval) * 1000

    @property
    def must_repeat(self) -> bool:
        """Whether its receiver resolves an alert that is not repeated."""
        return self.class_name == "alertmanager"

    @property
    def wants_close(self) -> bool:
        """Whether it is notified when an incident closes; by default for the classes that Burrow does not have."""
        return self.class_name in _SENDS_CLOSE_BY_DEFAULT if self.send_close is None else self.send_close

    @property
    def storm_from(self) -> int:
        """How many groups must turn bad together to be grouped into one notification; 0 for never."""
        if self.storm_groups is not None:
            return self.storm_groups
        # Alertmanager groups alerts by itself.
        return 0 if self.class_name == "alertmanager" else STORM_GROUPS

    @staticmethod
    def check(section: RawSection, sections: Sections) -> None:
        """Every key that its class needs is there."""
        kind = section.get("class_name")
        section.require(*_REQUIRED.get(kind, ()), because=f"a notifier of class {kind} needs it")
        if section.get("send_close") and "template_open" in section.written:
            section.require("template-close", because="send-close needs it")
        if kind == "slack" and ("url_open" in section.written) == ("token" in section.written):
            section.mistake("needs either url-open (the URL of a webhook) or token (of a bot)")
        elif kind == "slack" and "token" in section.written:
            section.require("channel", because="a bot needs a channel to post to")
        if section.get("noverify"):
            section.warning(v.NOT_VERIFIED, "noverify")
        may_be_clear = not section.get("require_tls") and section.get("port") != MAIL_TLS_PORT
        if section.get("auth_type") == "crammd5" and may_be_clear and section.get("server") not in LOCAL_SERVERS:
            what = (
                '= "crammd5": if the server offers no TLS, or somebody on the way removes the offer, the password '
                "can be guessed from what is sent: set require-tls = true"
            )
            section.warning(what, "auth_type")


@dataclass(frozen=True)
class Route:
    """`[[route]]`, Warren's own: the team and the notifiers of matching groups."""

    name: str
    notifiers: Annotated[tuple[str, ...], v.names_of("notifier")] = ()
    cluster: Annotated[str, v.PATTERN] = ANY
    group: Annotated[str, v.PATTERN] = ANY
    team: Annotated[str, v.ANY_TEXT] = ""
    channel: Annotated[str, v.ANY_TEXT] = ""
    # `continue` is a keyword of Python.
    continue_: v.Switch = False


@dataclass(frozen=True)
class Incidents:
    """`[incidents]`, Warren's own: where incidents are kept; several Warrens that may notify share a topic."""

    class_name: Annotated[str | None, v.one_of("local", "kafka")] = None
    cluster: Annotated[str | None, v.name_of("cluster")] = None
    topic: Annotated[str, v.TOPIC] = "warren-incidents"

    @property
    def lock_topic(self) -> str:
        """The topic of the lock of `[notifier-lock]`."""
        return f"{self.topic}-lock"


@dataclass(frozen=True)
class NotifierLock:
    """`[notifier-lock]`, Warren's own: how several Warrens agree which of them notifies, without ZooKeeper."""

    class_name: Annotated[str, v.one_of("kafka")]
    cluster: Annotated[str | None, v.name_of("cluster")] = None
    group: Annotated[str, v.text()] = "warren-notifier"
    session_timeout: Annotated[int, v.TIMEOUT] = 10

    @staticmethod
    def check(section: RawSection, sections: Sections) -> None:
        """It is the only lock, and there is something to notify."""
        if sections["zookeeper"]:
            section.warning("has no effect: the lock of [zookeeper] is used")
        _check_has_notifiers(section, sections)


@dataclass(frozen=True)
class ZooKeeper:
    """`[zookeeper]`: where several Warrens agree which of them notifies."""

    servers: v.Servers
    timeout: Annotated[int, v.TIMEOUT] = 6
    root_path: Annotated[str, v.text("a path that begins with /", r"/.*")] = "/burrow"
    tls: Annotated[str | None, v.name_of("tls")] = None

    @staticmethod
    def check(section: RawSection, sections: Sections) -> None:
        """There is something to notify."""
        _check_has_notifiers(section, sections)


def _check_has_notifiers(section: RawSection, sections: Sections) -> None:
    if not sections["notifier"]:
        section.note("is not used: there is no [notifier.NAME]")
