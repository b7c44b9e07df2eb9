"""The sections of burrow.toml that say what is watched and how it is judged, as frozen values.

Beside each key stand its default and what it may hold.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, ClassVar

from warren.config.checks import (
    ANY_TEXT,
    DIRECTORY,
    JVM_SIZE,
    SPARK_CONF,
    SPARK_MASTER,
    SWITCH,
    TOPIC,
    NoEffect,
    number,
    text,
    whole,
)
from warren.config.outward import (
    Auth,
    General,
    HttpServer,
    Iam,
    Incidents,
    Logging,
    Notifier,
    NotifierLock,
    Route,
    Sasl,
    Tls,
    ZooKeeper,
    ZooKeeperConsumer,
)
from warren.config.shared import (
    SECONDS,
    SECONDS_OR_0,
    TIMEOUT,
    Allowlist,
    Denylist,
    ProfileName,
    SecurityName,
    Servers,
)
from warren.config.sinks import Sink


@dataclass(frozen=True)
class ClientProfile:
    """`[client-profile.NAME]`: how to introduce ourselves to brokers."""

    client_id: Annotated[str, text()] = "burrow-lagchecker"
    dial_timeout: Annotated[int | None, TIMEOUT] = None
    read_timeout: Annotated[int | None, TIMEOUT] = None
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
    topic_refresh: Annotated[int, SECONDS] = 60
    offset_refresh: Annotated[int, SECONDS] = 10
    groups_reaper_refresh: Annotated[int, SECONDS_OR_0, NoEffect("deleted groups are noticed as they go")] = 0


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
    expire_group: Annotated[int, SECONDS] = 604_800
    min_distance: Annotated[int, SECONDS_OR_0] = 0
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
    expire_cache: Annotated[int, SECONDS_OR_0, NoEffect("each cycle judges anew")] = 10
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
    history_days: Annotated[int, whole(0, 3650, "days")] = 30
    history_step: Annotated[float, number(1, 3600, "seconds")] = 10.0


@dataclass(frozen=True)
class Config:
    """Everything burrow.toml says, checked."""

    clusters: Mapping[str, Cluster]
    consumers: Mapping[str, Consumer]
    storage: Storage = field(default_factory=Storage)
    evaluator: Evaluator = field(default_factory=Evaluator)
    client_profiles: Mapping[str, ClientProfile] = field(default_factory=dict)
    pipeline: Pipeline = field(default_factory=Pipeline)
    general: General = field(default_factory=General)
    logging: Logging = field(default_factory=Logging)
    zookeeper: ZooKeeper | None = None
    http_servers: Mapping[str, HttpServer] = field(default_factory=dict)
    notifiers: Mapping[str, Notifier] = field(default_factory=dict)
    zookeeper_consumers: Mapping[str, ZooKeeperConsumer] = field(default_factory=dict)
    tls: Mapping[str, Tls] = field(default_factory=dict)
    sasl: Mapping[str, Sasl] = field(default_factory=dict)
    iam: Mapping[str, Iam] = field(default_factory=dict)
    auth: Auth | None = None
    routes: tuple[Route, ...] = ()
    notifier_lock: NotifierLock | None = None
    incidents: Incidents = field(default_factory=Incidents)
    sinks: Mapping[str, Sink] = field(default_factory=dict)

    @property
    def has_leader_election(self) -> bool:
        """Whether other Warrens may notify too, so that one of them must be chosen."""
        return bool(self.notifiers) and (self.zookeeper is not None or self.notifier_lock is not None)

    @property
    def has_replicated_incidents(self) -> bool:
        """Whether incidents are kept where other Warrens find them."""
        said = self.incidents.class_name
        return self.has_leader_election if said is None else said == "kafka"

    @property
    def listeners(self) -> Mapping[str, HttpServer]:
        """The HTTP servers to start: those of the file, or one on a free port where it names none."""
        return self.http_servers or {"default": HttpServer(":0", name="default")}

    def profile_of(self, section: Cluster | Consumer) -> ClientProfile:
        """The client profile a section names, or Burrow's defaults when it names none."""
        return self.client_profiles[section.client_profile] if section.client_profile else ClientProfile()


_LANDS_LATER = {"tls": "TLS", "sasl": "SASL", "iam": "AWS IAM"}


def lands_later(profile: ClientProfile) -> dict[str, str]:
    """The keys of a profile that ask for a connection we cannot make yet, and what to say about each."""
    return {
        key: f"{what} lands in a later version; for now brokers are reached by PLAINTEXT only"
        for key, what in _LANDS_LATER.items()
        if getattr(profile, key) is not None
    }
