"""`[sink.NAME]`, Warren's own: where lag is sent to, in telegraf's shape and by telegraf's names for keys.

Keys may be written as telegraf writes them, with `_` for `-`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, ClassVar

from warren.config.checks import (
    ANY_TEXT,
    DURATION,
    FILE,
    GLOBS,
    JVM_SIZE,
    NAMES,
    PACKAGES,
    SPARK_CONF,
    SPARK_MASTER,
    SWITCH,
    TEXTS,
    TOPIC,
    NoEffect,
    Secret,
    one_of,
    text,
    whole,
)

_INDEX = text(
    "a name of indices in lower case, with %Y, %m, %d and %H for the time", r"(?:[^\sA-Z%\"*<>|,#/\\?]|%[YmdH])+"
)

FILE_FORMATS = ("avro", "binaryfile", "csv", "json", "orc", "text", "xml")
"""What Spark can write, but only a file at a time: a crash would leave a part."""
_LAKE = r"(/|[a-z][a-z0-9+.-]*:/)[^`]*"

DETAILS = ("group", "topic", "partition")

Globs = Annotated[tuple[str, ...], GLOBS]
Urls = Annotated[tuple[str, ...], NAMES]
Password = Annotated[str | None, ANY_TEXT, Secret()]
OptionalText = Annotated[str | None, ANY_TEXT]
OptionalFile = Annotated[Path | None, FILE]
Duration = Annotated[float, DURATION]
Switch = Annotated[bool, SWITCH]


@dataclass(frozen=True)
class Sink:
    """What all sinks have: what is sent, how often, and how much is kept while nobody takes it."""

    class_name: ClassVar[str] = ""

    name: str
    interval: Duration = 10.0
    detail: Annotated[str, one_of(*DETAILS)] = "partition"
    clusters_include: Globs = ()
    clusters_exclude: Globs = ()
    groups_include: Globs = ()
    groups_exclude: Globs = ()
    topics_include: Globs = ()
    topics_exclude: Globs = ()
    tags: Annotated[Mapping[str, str], TEXTS] = field(default_factory=dict)
    spool: Annotated[int, whole(1, 1_000_000, "megabytes")] = 1024


@dataclass(frozen=True)
class HttpSink(Sink):
    """What sinks have that are reached by HTTP."""

    urls: Urls = ()
    timeout: Duration = 5.0
    username: OptionalText = None
    password: Password = None
    headers: Annotated[Mapping[str, str], TEXTS, Secret()] = field(default_factory=dict)
    tls_ca: OptionalFile = None
    tls_cert: OptionalFile = None
    tls_key: OptionalFile = None
    insecure_skip_verify: Switch = False


@dataclass(frozen=True)
class ElasticsearchSink(HttpSink):
    """`class-name = "elasticsearch"`: documents as telegraf makes them, in indices by date or in a data stream."""

    class_name: ClassVar[str] = "elasticsearch"

    index_name: Annotated[str, _INDEX] = "burrow-%Y.%m.%d"
    data_stream: Switch = False
    manage_template: Switch = True
    template_name: Annotated[str, text()] = "warren"
    overwrite_template: Switch = False
    lifecycle: OptionalText = None
    auth_bearer_token: Password = None
    enable_gzip: Switch = True
    health_check_interval: Annotated[float, DURATION, NoEffect("each answer says how the server is")] = 10.0
    enable_sniffer: Annotated[bool, SWITCH, NoEffect("the servers of urls are asked, and no others")] = False


@dataclass(frozen=True)
class OpenSearchSink(ElasticsearchSink):
    """`class-name = "opensearch"`: the same for OpenSearch."""

    class_name: ClassVar[str] = "opensearch"


@dataclass(frozen=True)
class InfluxSink(HttpSink):
    """`class-name = "influxdb"`: line protocol; with `bucket` or `token` by the API of version 2 and later."""

    class_name: ClassVar[str] = "influxdb"

    database: Annotated[str, text()] = "telegraf"
    retention_policy: OptionalText = None
    write_consistency: Annotated[str | None, one_of("any", "one", "quorum", "all")] = None
    skip_database_creation: Switch = False
    organization: OptionalText = None
    bucket: OptionalText = None
    token: Password = None
    content_encoding: Annotated[str, one_of("gzip", "identity")] = "gzip"

    @property
    def is_v2(self) -> bool:
        """Whether it is written by the newer API."""
        return self.bucket is not None or self.token is not None


@dataclass(frozen=True)
class KafkaSink(Sink):
    """`class-name = "kafka"`: telegraf's JSON to a topic, changes of verdicts to another, or one of both."""

    class_name: ClassVar[str] = "kafka"

    cluster: OptionalText = None
    topic: Annotated[str | None, TOPIC] = None
    changes_topic: Annotated[str | None, TOPIC] = None


@dataclass(frozen=True)
class LakeSink(Sink):
    """`class-name = "lake"`: tables that Spark writes, as Parquet files or in any table format it knows."""

    class_name: ClassVar[str] = "lake"

    interval: Duration = 60.0
    write_interval: Duration = 600.0
    path: Annotated[str | None, text("an absolute path, or a URI such as s3a://bucket/lake", _LAKE)] = None
    format: Annotated[str, text("parquet, delta, iceberg or another format that Spark knows", r"[a-z][\w.]*")] = (
        "parquet"
    )
    database: Annotated[str | None, text("a database of a catalog, such as lake.kafka", r"\w+(\.\w+)*")] = None
    keep_days: Annotated[int, whole(0, 36_500, "days")] = 0
    commits: Switch = False
    packages: Annotated[tuple[str, ...], PACKAGES] = ()
    master: Annotated[str, SPARK_MASTER] = "local[2]"
    driver_memory: Annotated[str, JVM_SIZE] = "1g"
    spark_conf: Annotated[Mapping[str, str], SPARK_CONF, Secret()] = field(default_factory=dict)
