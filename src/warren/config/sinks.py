"""`[sink.NAME]`, Warren's own: where lag is sent to, in telegraf's shape and by telegraf's names for keys.

Keys may be written as telegraf writes them, with `_` for `-`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, ClassVar

from warren.config.section import RawSection, Sections
from warren.config.values import (
    DURATION,
    JVM_SIZE,
    SPARK_CONF,
    SPARK_MASTER,
    SWITCH,
    TEXTS,
    TOPIC,
    Duration,
    Globs,
    InputFile,
    OptionalText,
    Packages,
    Password,
    SecretTexts,
    Switch,
    Urls,
    name_of,
    one_of,
    text,
    whole,
)

_INDEX = text(
    "a name of indices in lower case, with %Y, %m, %d and %H for the time", r"(?:[^\sA-Z%\"*<>|,#/\\?]|%[YmdH])+"
)
_LAKE_PATH = text("an absolute path, or a URI such as s3a://bucket/lake", r"(/|[a-z][a-z0-9+.-]*:/)[^`]*")

FILE_FORMATS = ("avro", "binaryfile", "csv", "json", "orc", "text", "xml")
"""Formats of Spark that have no transactions: a crash would leave half of what is written."""

DETAILS = ("group", "topic", "partition")


@dataclass(frozen=True)
class Sink:
    """What all sinks have: what is sent, how often, and how much is kept on disk while the server is unavailable."""

    class_name: ClassVar[str] = ""
    takes_underscores: ClassVar[bool] = True

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
    """What the sinks over HTTP have."""

    urls: Urls = ()
    timeout: Duration = 5.0
    username: OptionalText = None
    password: Password = None
    headers: SecretTexts = field(default_factory=dict)
    tls_ca: InputFile = None
    tls_cert: InputFile = None
    tls_key: InputFile = None
    insecure_skip_verify: Switch = False

    @classmethod
    def check(cls, section: RawSection, sections: Sections) -> None:
        """There is a server to send to."""
        section.require("urls", because=f"a sink of class {cls.class_name} needs it")


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
    health_check_interval: Annotated[float, replace(DURATION, no_effect="every answer shows the server's health")] = (
        10.0
    )
    enable_sniffer: Annotated[bool, replace(SWITCH, no_effect="only the servers of urls are used")] = False

    @classmethod
    def check(cls, section: RawSection, sections: Sections) -> None:
        """A data stream has one name, without a date."""
        super().check(section, sections)
        if section.get("data_stream") and "%" in section.get("index_name"):
            section.mistake("is true: then index-name must be the name of the stream, without a date", "data_stream")


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
    """`class-name = "kafka"`: telegraf's JSON to one topic, changes of verdicts to another, or only one of them."""

    class_name: ClassVar[str] = "kafka"

    cluster: Annotated[str | None, name_of("cluster")] = None
    topic: Annotated[str | None, TOPIC] = None
    changes_topic: Annotated[str | None, TOPIC] = None

    @staticmethod
    def check(section: RawSection, sections: Sections) -> None:
        """There is a topic to write to; the two kinds of records are not mixed in one."""
        if not {"topic", "changes_topic"} & section.written.keys():
            section.mistake("topic is missing: a sink of class kafka needs it, or changes-topic")
        elif section.get("changes_topic") is not None and section.get("changes_topic") == section.get("topic"):
            section.refuse("changes_topic", "must be another topic than that of the key topic")


@dataclass(frozen=True)
class LakeSink(Sink):
    """`class-name = "lake"`: tables that Spark writes, as Parquet files or in any table format it knows."""

    class_name: ClassVar[str] = "lake"

    interval: Duration = 60.0
    write_interval: Duration = 600.0
    path: Annotated[str | None, _LAKE_PATH] = None
    format: Annotated[str, text("parquet, delta, iceberg or another format that Spark knows", r"[a-z][\w.]*")] = (
        "parquet"
    )
    database: Annotated[str | None, text("a database of a catalog, such as lake.kafka", r"\w+(\.\w+)*")] = None
    keep_days: Annotated[int, whole(0, 36_500, "days")] = 0
    commits: Switch = False
    packages: Packages = ()
    master: Annotated[str, SPARK_MASTER] = "local[2]"
    driver_memory: Annotated[str, JVM_SIZE] = "1g"
    spark_conf: Annotated[Mapping[str, str], replace(SPARK_CONF, is_secret=True)] = field(default_factory=dict)

    @staticmethod
    def check(section: RawSection, sections: Sections) -> None:
        """The tables have one location, which fits their format."""
        table_format, given = section.get("format"), section.written.keys() & {"path", "database"}
        if not given:
            section.mistake("path is missing: a sink of class lake needs it, or a database of a catalog")
        elif len(given) == 2:
            section.mistake("has both a path and a database: only one of them is allowed")
        elif table_format == "parquet" and "path" not in given:
            section.mistake("path is missing: Parquet files are written below a path")
        elif table_format == "iceberg" and "." not in (section.get("database") or "."):
            section.refuse("database", "must be of a catalog, as in catalog.database")
        if table_format in FILE_FORMATS:
            why = "has no transactions; must be parquet, delta, iceberg or another table format"
            section.refuse("format", why)
