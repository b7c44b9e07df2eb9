"""The sections of burrow.toml as frozen values: beside each key its default and what it may hold.

An attribute is its key with `_` for `-`. One without a default must be given in the file.
"""

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import Annotated, ClassVar, get_type_hints

from warren.config.checks import (
    ANY_TEXT,
    DIRECTORY,
    JVM_SIZE,
    REGEX,
    SERVERS,
    SPARK_CONF,
    SPARK_MASTER,
    SWITCH,
    TOPIC,
    Check,
    Formerly,
    NoEffect,
    number,
    text,
    whole,
)

_SECONDS = whole(1, 1_000_000_000, "seconds")
_SECONDS_OR_0 = whole(0, 1_000_000_000, "seconds")
_TIMEOUT = whole(1, 300, "seconds")

Servers = Annotated[tuple[str, ...], SERVERS]
Allowlist = Annotated[str | None, REGEX, Formerly("group-whitelist")]
Denylist = Annotated[str | None, REGEX, Formerly("group-blacklist")]
ProfileName = Annotated[str | None, text("the name of a [client-profile.NAME] section")]
# Burrow turns on TLS or SASL when the key is there at all, so "" must not be taken for unset.
SecurityName = Annotated[str | None, ANY_TEXT]


@dataclass(frozen=True)
class ClientProfile:
    """`[client-profile.NAME]`: how to introduce ourselves to brokers."""

    client_id: Annotated[str, text()] = "burrow-lagchecker"
    dial_timeout: Annotated[int | None, _TIMEOUT] = None
    read_timeout: Annotated[int | None, _TIMEOUT] = None
    tls: SecurityName = None
    sasl: SecurityName = None
    iam: SecurityName = None
    kafka_version: Annotated[str | None, ANY_TEXT, NoEffect("versions are agreed with each broker")] = None
    name: str = ""


@dataclass(frozen=True)
class Cluster:
    """`[cluster.NAME]`: a Kafka cluster whose topics and heads are followed."""

    class_name: ClassVar[str] = "kafka"

    name: str
    servers: Servers
    client_profile: ProfileName = None
    topic_refresh: Annotated[int, _SECONDS] = 60
    offset_refresh: Annotated[int, _SECONDS] = 10
    groups_reaper_refresh: Annotated[int, _SECONDS_OR_0, NoEffect("deleted groups are noticed as they go")] = 0


@dataclass(frozen=True)
class Consumer:
    """`[consumer.NAME]` of class kafka: an offsets topic to which groups commit."""

    class_name: ClassVar[str] = "kafka"

    name: str
    cluster: Annotated[str, text("the name of a [cluster.NAME] section")]
    servers: Servers
    client_profile: ProfileName = None
    offsets_topic: Annotated[str, TOPIC] = "__consumer_offsets"
    start_latest: Annotated[bool, SWITCH] = False
    backfill_earliest: Annotated[bool, SWITCH] = False
    group_allowlist: Allowlist = None
    group_denylist: Denylist = None


@dataclass(frozen=True)
class Storage:
    """`[storage.NAME]`: how many commits a window holds and how long a silent group is kept."""

    class_name: ClassVar[str] = "inmemory"

    intervals: Annotated[int, whole(1, 10_000)] = 10
    expire_group: Annotated[int, _SECONDS] = 604_800
    min_distance: Annotated[int, _SECONDS_OR_0] = 0
    group_allowlist: Allowlist = None
    group_denylist: Denylist = None
    workers: Annotated[int, whole(1, 1_000_000), NoEffect("Spark spreads the work")] = 20
    queue_depth: Annotated[int, whole(0, 1_000_000_000), NoEffect("there is no queue")] = 1
    name: str = ""


@dataclass(frozen=True)
class Evaluator:
    """`[evaluator.NAME]`: how much must be known of a partition, and how much lag is fine."""

    class_name: ClassVar[str] = "caching"

    minimum_complete: Annotated[float, number(0, 1)] = 0.0
    allowed_lag: Annotated[int, whole(0, 2**63 - 1)] = 0
    expire_cache: Annotated[int, _SECONDS_OR_0, NoEffect("each cycle judges anew")] = 10
    name: str = ""


@dataclass(frozen=True)
class Pipeline:
    """`[pipeline]`, Warren's own: when a cycle runs, on which Spark, and where its data lives."""

    trigger: Annotated[float, number(0.1, 3600, "seconds")] = 10.0
    master: Annotated[str, SPARK_MASTER] = "local[*]"
    spark_conf: Annotated[Mapping[str, str], SPARK_CONF] = field(default_factory=dict)
    data_dir: Annotated[Path, DIRECTORY] = Path("warren-data")
    buckets: Annotated[int, whole(1, 4096)] = 8
    max_records: Annotated[int, whole(1_000, 1_000_000_000)] = 5_000_000
    driver_memory: Annotated[str, JVM_SIZE] = "4g"


@dataclass(frozen=True)
class Config:
    """Everything burrow.toml says, checked."""

    clusters: Mapping[str, Cluster]
    consumers: Mapping[str, Consumer]
    storage: Storage = field(default_factory=Storage)
    evaluator: Evaluator = field(default_factory=Evaluator)
    client_profiles: Mapping[str, ClientProfile] = field(default_factory=dict)
    pipeline: Pipeline = field(default_factory=Pipeline)

    def profile_of(self, section: Cluster | Consumer) -> ClientProfile:
        """The client profile a section names, or Burrow's defaults when it names none."""
        return self.client_profiles[section.client_profile] if section.client_profile else ClientProfile()


@dataclass(frozen=True)
class Key:
    """One key of a section, as declared on the section's attribute."""

    name: str
    attribute: str
    check: Check
    required: bool
    formerly: str | None
    no_effect: str | None


@cache
def keys_of(section: type) -> Mapping[str, Key]:
    """The keys of a section by their name in the file, in the order they are declared."""
    hints = get_type_hints(section, include_extras=True)
    found: dict[str, Key] = {}
    for attribute in fields(section):
        notes = getattr(hints[attribute.name], "__metadata__", ())
        for check in (note for note in notes if isinstance(note, Check)):
            name = attribute.name.replace("_", "-")
            found[name] = Key(
                name=name,
                attribute=attribute.name,
                check=check,
                required=attribute.default is MISSING and attribute.default_factory is MISSING,
                formerly=next((note.name for note in notes if isinstance(note, Formerly)), None),
                no_effect=next((note.why for note in notes if isinstance(note, NoEffect)), None),
            )
    return found
