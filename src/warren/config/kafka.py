"""`[cluster.NAME]`, `[consumer.NAME]` and `[client-profile.NAME]`: the Kafka clusters and how to reach them."""

from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from typing import Annotated, ClassVar

from warren.config import values as v
from warren.config.client_options import JAVA_OPTIONS, reserved_option
from warren.config.findings import did_you_mean
from warren.config.section import RawSection, Sections
from warren.config.security import Iam, Sasl, Tls

ProfileName = Annotated[str | None, v.name_of("client-profile")]


@dataclass(frozen=True)
class Cluster:
    """`[cluster.NAME]`: a Kafka cluster whose topics and heads are sampled."""

    class_name: ClassVar[str] = "kafka"

    name: str
    servers: v.Servers
    client_profile: ProfileName = None
    topic_refresh: Annotated[int, v.SECONDS] = 60
    offset_refresh: Annotated[int, v.SECONDS] = 10
    groups_reaper_refresh: Annotated[int, v.SECONDS_OR_0] = 0
    read_records: v.Globs = ()
    """The topics whose first unread records are read, for their age."""

    @staticmethod
    def check(section: RawSection, sections: Sections) -> None:
        """Some consumer section reads what its groups commit."""
        if section.path[-1] not in [consumer.get("cluster") for consumer in sections["consumer"].values()]:
            section.warning("has no [consumer.NAME], so none of its groups will be seen")


@dataclass(frozen=True)
class Consumer:
    """`[consumer.NAME]` of class kafka: an offsets topic to which groups commit."""

    class_name: ClassVar[str] = "kafka"

    name: str
    cluster: Annotated[str, v.name_of("cluster")]
    servers: v.Servers
    client_profile: ProfileName = None
    offsets_topic: Annotated[str, v.TOPIC] = "__consumer_offsets"
    start_latest: v.Switch = False
    backfill_earliest: v.Switch = False
    group_allowlist: v.Allowlist = None
    group_denylist: v.Denylist = None

    @staticmethod
    def check(section: RawSection, sections: Sections) -> None:
        """Keys that depend on each other."""
        if section.get("backfill_earliest") and not section.get("start_latest"):
            what = "has no effect: start-latest is false, so all commits are read anyway"
            section.warning(what, "backfill_earliest")


@dataclass(frozen=True)
class ZooKeeperConsumer:
    """`[consumer.NAME]` of class kafka_zk: groups that commit to ZooKeeper as Kafka's old consumers do."""

    class_name: ClassVar[str] = "kafka_zk"

    name: str
    cluster: Annotated[str, v.name_of("cluster")]
    servers: v.Servers
    zookeeper_path: Annotated[str, v.ZNODE_PATH] = ""
    zookeeper_timeout: Annotated[int, v.TIMEOUT] = 30
    zookeeper_rate: Annotated[int, v.whole(10, 100_000, "requests per second")] = 1000
    tls: Annotated[str | None, v.name_of("tls")] = None
    username: v.OptionalText = None
    password: v.Password = None
    group_allowlist: v.Allowlist = None
    group_denylist: v.Denylist = None

    @staticmethod
    def check(section: RawSection, sections: Sections) -> None:
        """Keys that depend on each other."""
        for key, other in (("username", "password"), ("password", "username")):
            if section.get(key) and not section.get(other):
                section.mistake(f"needs {other} too", key)


@dataclass(frozen=True)
class StormConsumer(ZooKeeperConsumer):
    """`[consumer.NAME]` of class storm_zk: Kafka spouts of Storm, each of which is a group."""

    class_name: ClassVar[str] = "storm_zk"

    @staticmethod
    def check(section: RawSection, sections: Sections) -> None:
        """The root of the spouts is given."""
        ZooKeeperConsumer.check(section, sections)
        section.require("zookeeper-path", because="it is the root below which spouts keep their offsets")


@dataclass(frozen=True)
class ClientProfile:
    """`[client-profile.NAME]`: how to connect to brokers.

    Options of the clients that have no key here are in `[client-profile.NAME.librdkafka]` and `….java`.
    """

    client_id: Annotated[str, v.text()] = "burrow-lagchecker"
    dial_timeout: Annotated[int | None, v.TIMEOUT] = None
    read_timeout: Annotated[int | None, v.TIMEOUT] = None
    tls: Annotated[str | None, v.name_of("tls")] = None
    sasl: Annotated[str | None, v.name_of("sasl")] = None
    iam: Annotated[str | None, v.name_of("iam")] = None
    kafka_version: Annotated[str | None, replace(v.ANY_TEXT, no_effect="versions are negotiated with each broker")] = (
        None
    )
    librdkafka: v.ClientOptions = field(default_factory=dict)
    java: v.ClientOptions = field(default_factory=dict)
    name: str = ""

    @staticmethod
    def check(section: RawSection, sections: Sections) -> None:
        """There is one kind of credentials, they are not sent for all to read, and options have no key of their own."""
        tls, iam = section.get("tls"), section.get("iam")
        sasl = sections["sasl"].get(section.get("sasl"))
        if iam is not None and find_spec("aws_msk_iam_sasl_signer") is None:
            section.refuse("iam", "Amazon MSK needs a package that is not installed: pip install 'warren[msk]'")
        if iam is not None and sasl is not None:
            section.mistake("has both sasl and iam: only one of them is allowed", "iam")
        mechanism = sasl and (sasl.get("mechanism") or "PLAIN")
        if tls is None and mechanism in ("PLAIN", "OAUTHBEARER"):
            section.warning(f"sends secrets for all to read: {mechanism} needs TLS, so set tls", "sasl")
        client = sections["tls"].get(tls)
        if client is not None and ("certfile" in client.written) != ("keyfile" in client.written):
            section.refuse("tls", "a client that has a certfile needs its keyfile too, and the other way round")
        for table in ("librdkafka", "java"):
            for name in section.values.get(table, ()):
                if why := reserved_option(name, table):
                    section.mistake(f"has {name}: {why}", table)
                elif table == "java" and name not in JAVA_OPTIONS:
                    hint = did_you_mean(name, JAVA_OPTIONS)
                    section.warning(f"has {name}, which Java's client does not have{hint}", table)


@dataclass(frozen=True)
class Connection:
    """How to reach the brokers of a section: its servers, and its profile with all that it names."""

    servers: tuple[str, ...]
    profile: ClientProfile = field(default_factory=ClientProfile)
    tls: Tls | None = None
    sasl: Sasl | None = None
    iam: Iam | None = None
