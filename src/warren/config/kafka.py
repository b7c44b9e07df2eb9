"""`[cluster.NAME]`, `[consumer.NAME]` and `[client-profile.NAME]`: the Kafka clusters and how to reach them."""

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

from warren.config import values as v
from warren.config.findings import shown
from warren.config.section import RawSection, Sections

ProfileName = Annotated[str | None, v.name_of("client-profile")]

_UNSUPPORTED = {"tls": "TLS", "sasl": "SASL", "iam": "AWS IAM"}


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

    @staticmethod
    def check(section: RawSection, sections: Sections) -> None:
        """Some consumer section reads its offsets topic."""
        consumers = [consumer for consumer in sections["consumer"].values() if consumer.cls is Consumer]
        if section.path[-1] not in [consumer.get("cluster") for consumer in consumers]:
            section.warning("has no [consumer.NAME] of class kafka, so none of its groups will be seen")


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
    """`[consumer.NAME]` of class kafka_zk: groups that commit to ZooKeeper."""

    class_name: ClassVar[str] = "kafka_zk"

    name: str
    cluster: Annotated[str, v.name_of("cluster")]
    servers: v.Servers
    zookeeper_path: Annotated[str, v.ANY_TEXT] = ""
    zookeeper_timeout: Annotated[int, v.TIMEOUT] = 30
    group_allowlist: v.Allowlist = None
    group_denylist: v.Denylist = None

    @staticmethod
    def check(section: RawSection, sections: Sections) -> None:
        """It is not read yet."""
        section.note("is accepted but not used yet: groups that commit to ZooKeeper are not read")


@dataclass(frozen=True)
class ClientProfile:
    """`[client-profile.NAME]`: how to connect to brokers."""

    client_id: Annotated[str, v.text()] = "burrow-lagchecker"
    dial_timeout: Annotated[int | None, v.TIMEOUT] = None
    read_timeout: Annotated[int | None, v.TIMEOUT] = None
    tls: Annotated[str | None, v.name_of("tls")] = None
    sasl: Annotated[str | None, v.name_of("sasl")] = None
    iam: Annotated[str | None, v.name_of("iam")] = None
    kafka_version: Annotated[str | None, replace(v.ANY_TEXT, no_effect="versions are negotiated with each broker")] = (
        None
    )
    name: str = ""

    @staticmethod
    def check(section: RawSection, sections: Sections) -> None:
        """A profile that is used asks for nothing that is not supported yet."""
        users = (*sections["cluster"].values(), *sections["consumer"].values())
        is_used = section.path[-1] in [user.get("client_profile") for user in users]
        for key, why in unsupported_keys(ClientProfile(**section.values)).items():
            report = section.mistake if is_used else section.note
            report(f"= {shown(section.values[key])}: {why}", key)


def unsupported_keys(profile: ClientProfile) -> dict[str, str]:
    """The keys of a profile that ask for a connection Warren cannot make yet, and what to say about each."""
    return {
        key: f"{protocol} is not supported yet: brokers are reached by PLAINTEXT only"
        for key, protocol in _UNSUPPORTED.items()
        if getattr(profile, key) is not None
    }
