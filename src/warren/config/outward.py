"""The sections of burrow.toml that say how Warren runs, answers and speaks to others, as frozen values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, ClassVar

from warren.config.auth_file import Entry
from warren.config.checks import (
    ADDRESS,
    ANY_TEXT,
    FILE,
    NAMES,
    PATTERN,
    SWITCH,
    TEXTS,
    TOPIC,
    URL,
    Secret,
    host_and_port,
    one_of,
    text,
    whole,
)
from warren.config.shared import SECONDS, SECONDS_OR_0, TIMEOUT, Allowlist, Denylist, SecurityName, Servers
from warren.domain.matching import ANY

LEVELS = ("trace", "debug", "info", "warn", "warning", "error", "panic", "fatal")

OptionalText = Annotated[str | None, ANY_TEXT]
OptionalFile = Annotated[Path | None, FILE]
Password = Annotated[str | None, ANY_TEXT, Secret()]
# Webhooks carry their token in the path.
SecretUrl = Annotated[str | None, URL, Secret()]


@dataclass(frozen=True)
class General:
    """`[general]`: files of the running process, and whose web pages may ask it."""

    pidfile: Annotated[Path, FILE] = Path("burrow.pid")
    stdout_logfile: OptionalFile = None
    access_control_allow_origin: OptionalText = None
    env_var_prefix: Annotated[str, text("a prefix of environment variables", r"\w+")] = "BURROW"
    external_url: Annotated[str | None, text("the URL at which people reach Warren", r"https?://\S+")] = None


@dataclass(frozen=True)
class Logging:
    """`[logging]`: to a file, which is turned over by size, or to standard output."""

    filename: OptionalFile = None
    level: Annotated[str, one_of(*LEVELS)] = "info"
    maxsize: Annotated[int, whole(0, 1_000_000, "megabytes")] = 100
    maxbackups: Annotated[int, whole(0, 1_000_000)] = 10
    maxage: Annotated[int, whole(0, 1_000_000, "days")] = 30
    use_localtime: Annotated[bool, SWITCH] = False
    use_compression: Annotated[bool, SWITCH] = False


@dataclass(frozen=True)
class ZooKeeper:
    """`[zookeeper]`: where several instances agree who of them sends messages."""

    servers: Servers
    timeout: Annotated[int, TIMEOUT] = 6
    root_path: Annotated[str, text("a path that begins with /", r"/.*")] = "/burrow"
    tls: SecurityName = None


@dataclass(frozen=True)
class Tls:
    """`[tls.NAME]`: certificates."""

    certfile: OptionalFile = None
    keyfile: OptionalFile = None
    cafile: OptionalFile = None
    noverify: Annotated[bool, SWITCH] = False
    name: str = ""


@dataclass(frozen=True)
class Sasl:
    """`[sasl.NAME]`: who we are to brokers."""

    username: OptionalText = None
    password: Password = None
    handshake_first: Annotated[bool, SWITCH] = False
    mechanism: OptionalText = None
    name: str = ""


@dataclass(frozen=True)
class Iam:
    """`[iam.NAME]`: who we are to brokers of AWS."""

    region: OptionalText = None
    role_arn: OptionalText = None
    profile: OptionalText = None
    name: str = ""


@dataclass(frozen=True)
class HttpServer:
    """`[httpserver.NAME]`: an address to answer at."""

    address: Annotated[str, ADDRESS] = ""
    timeout: Annotated[int, SECONDS] = 300
    tls: SecurityName = None
    name: str = ""

    @property
    def host(self) -> str:
        """The host of the address, "" for all interfaces."""
        return host_and_port(self.address)[0]

    @property
    def port(self) -> int:
        """The port of the address, 0 for any free one."""
        return host_and_port(self.address)[1]


@dataclass(frozen=True)
class Auth:
    """`[auth]`, Warren's own: who may ask and who may change, from a file of their secrets."""

    file: Annotated[Path, FILE]
    entries: tuple[Entry, ...] = field(default=(), repr=False)


@dataclass(frozen=True)
class ZooKeeperConsumer:
    """`[consumer.NAME]` of class kafka_zk: groups that commit to ZooKeeper."""

    class_name: ClassVar[str] = "kafka_zk"

    name: str
    cluster: Annotated[str, text("the name of a [cluster.NAME] section")]
    servers: Servers
    zookeeper_path: Annotated[str, ANY_TEXT] = ""
    zookeeper_timeout: Annotated[int, TIMEOUT] = 30
    group_allowlist: Allowlist = None
    group_denylist: Denylist = None


@dataclass(frozen=True)
class Notifier:
    """`[notifier.NAME]`: who is told about groups in trouble, when and how."""

    name: str
    class_name: Annotated[str, one_of("http", "email", "slack", "alertmanager", "apprise", "null")]
    template_open: OptionalFile = None
    template_close: OptionalFile = None
    interval: Annotated[int, SECONDS] = 60
    send_interval: Annotated[int | None, SECONDS] = None
    threshold: Annotated[int, whole(1, 6)] = 2
    send_once: Annotated[bool, SWITCH] = False
    send_close: Annotated[bool | None, SWITCH] = None
    extras: Annotated[Mapping[str, str], TEXTS, Secret()] = field(default_factory=dict)
    group_allowlist: Allowlist = None
    group_denylist: Denylist = None
    storm_groups: Annotated[int | None, whole(0, 1_000_000, "groups")] = None
    url_open: SecretUrl = None
    method_open: Annotated[str, text("an HTTP method", r"[A-Za-z]+")] = "POST"
    url_close: SecretUrl = None
    method_close: Annotated[str, text("an HTTP method", r"[A-Za-z]+")] = "POST"
    timeout: Annotated[int, SECONDS] = 5
    keepalive: Annotated[int, SECONDS_OR_0] = 300
    disable_http_keepalive: Annotated[bool, SWITCH] = False
    username: OptionalText = None
    password: Password = None
    headers: Annotated[Mapping[str, str], TEXTS, Secret()] = field(default_factory=dict)
    extra_ca: OptionalFile = None
    noverify: Annotated[bool, SWITCH] = False
    server: OptionalText = None
    port: Annotated[int | None, whole(1, 65_535)] = None
    # `from` is a word of Python's own.
    from_: OptionalText = None
    to: OptionalText = None
    auth_type: Annotated[str | None, one_of("", "plain", "crammd5")] = None
    token: Password = None
    channel: OptionalText = None

    @property
    def wants_close(self) -> bool:
        """Whether it hears of ends; where people read it and nothing was said, it does."""
        return self.class_name in _OF_OUR_OWN if self.send_close is None else self.send_close

    @property
    def storm_from(self) -> int:
        """From how many groups that turn bad together it hears of all of them in one message; 0 for never."""
        if self.storm_groups is not None:
            return self.storm_groups
        # Alertmanager groups what it is told by itself.
        return 0 if self.class_name == "alertmanager" else STORM_GROUPS


STORM_GROUPS = 20
_OF_OUR_OWN = ("slack", "alertmanager", "apprise")


@dataclass(frozen=True)
class Route:
    """`[[route]]`, Warren's own: whose groups these are, and which notifiers hear of them."""

    name: str
    notifiers: Annotated[tuple[str, ...], NAMES] = ()
    cluster: Annotated[str, PATTERN] = ANY
    group: Annotated[str, PATTERN] = ANY
    team: Annotated[str, ANY_TEXT] = ""
    channel: Annotated[str, ANY_TEXT] = ""
    # `continue` is a word of Python's own.
    continue_: Annotated[bool, SWITCH] = False


@dataclass(frozen=True)
class NotifierLock:
    """`[notifier-lock]`, Warren's own: how several agree who of them notifies, without ZooKeeper."""

    class_name: Annotated[str, one_of("kafka")]
    cluster: Annotated[str | None, text("the name of a [cluster.NAME] section")] = None
    group: Annotated[str, text()] = "warren-notifier"
    session_timeout: Annotated[int, TIMEOUT] = 10


@dataclass(frozen=True)
class Incidents:
    """`[incidents]`, Warren's own: where they are kept; in a topic where several Warrens may notify."""

    class_name: Annotated[str | None, one_of("local", "kafka")] = None
    cluster: Annotated[str | None, text("the name of a [cluster.NAME] section")] = None
    topic: Annotated[str, TOPIC] = "warren-incidents"
