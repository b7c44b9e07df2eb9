"""`[sink.NAME]`, Warren's own: where lag is sent to, in telegraf's shape and by telegraf's names for keys.

Keys may be written as telegraf writes them, with `_` for `-`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, ClassVar

from warren.config import values as v
from warren.config.section import RawSection, Sections

_INDEX = v.text(
    "a name of indices in lower case, with %Y, %m, %d and %H for the time", r"(?:[^\sA-Z%\"*<>|,#/\\?]|%[YmdH])+"
)
_LAKE_PATH = v.text("an absolute path, or a URI such as s3a://bucket/lake", r"(/|[a-z][a-z0-9+.-]*:/)[^`]*")

FILE_FORMATS = ("avro", "binaryfile", "csv", "json", "orc", "text", "xml")
"""Formats of Spark that have no transactions: a crash would leave half of what is written."""

DETAILS = ("group", "topic", "partition")

SinkFilters = Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]
"""The globs of what is included and of what is excluded, by the column they apply to."""


@dataclass(frozen=True)
class Sink:
    """What all sinks have: what is sent, how often, and how much is kept on disk while the server is unavailable."""

    class_name: ClassVar[str] = ""
    takes_underscores: ClassVar[bool] = True

    name: str
    interval: v.Duration = 10.0
    detail: Annotated[str, v.one_of(*DETAILS)] = "partition"
    clusters_include: v.Globs = ()
    clusters_exclude: v.Globs = ()
    groups_include: v.Globs = ()
    groups_exclude: v.Globs = ()
    topics_include: v.Globs = ()
    topics_exclude: v.Globs = ()
    tags: Annotated[Mapping[str, str], v.TEXTS] = field(default_factory=dict)
    spool: Annotated[int, v.whole(1, 1_000_000, "megabytes")] = 1024

    @property
    def filters(self) -> SinkFilters:
        """What is sent; without the secrets of the section, so that Spark's tasks can have it."""
        return {
            "cluster": (self.clusters_include, self.clusters_exclude),
            "group": (self.groups_include, self.groups_exclude),
            "topic": (self.topics_include, self.topics_exclude),
        }


@dataclass(frozen=True)
class HttpSink(Sink):
    """What the sinks over HTTP have."""

    urls: v.Urls = field(default=(), repr=False)
    timeout: v.Duration = 5.0
    username: v.OptionalText = None
    password: v.Password = None
    headers: v.SecretTexts = field(default_factory=dict, repr=False)
    tls_ca: v.InputFile = None
    tls_cert: v.InputFile = None
    tls_key: v.InputFile = None
    insecure_skip_verify: v.Switch = False

    @classmethod
    def check(cls, section: RawSection, sections: Sections) -> None:
        """There is a server to send to."""
        section.require("urls", because=f"a sink of class {cls.class_name} needs it")
        if section.get("insecure_skip_verify"):
            section.warning(v.NOT_VERIFIED, "insecure_skip_verify")


@dataclass(frozen=True)
class ElasticsearchSink(HttpSink):
    """`class-name = "elasticsearch"`: documents as telegraf makes them, in indices by date or in a data stream."""

    class_name: ClassVar[str] = "elasticsearch"

    index_name: Annotated[str, _INDEX] = "burrow-%Y.%m.%d"
    data_stream: v.Switch = False
    manage_template: v.Switch = True
    template_name: Annotated[str, v.text()] = "warren"
    overwrite_template: v.Switch = False
    lifecycle: v.OptionalText = None
    auth_bearer_token: v.Password = None
    enable_gzip: v.Switch = True
    health_check_interval: Annotated[float, replace(v.DURATION, no_effect="every answer shows the server's health")] = (
        10.0
    )
    enable_sniffer: Annotated[bool, replace(v.SWITCH, no_effect="only the servers of urls are used")] = False

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

    database: Annotated[str, v.text()] = "telegraf"
    retention_policy: v.OptionalText = None
    write_consistency: Annotated[str | None, v.one_of("any", "one", "quorum", "all")] = None
    skip_database_creation: v.Switch = False
    organization: v.OptionalText = None
    bucket: v.OptionalText = None
    token: v.Password = None
    content_encoding: Annotated[str, v.one_of("gzip", "identity")] = "gzip"

    @property
    def is_v2(self) -> bool:
        """Whether it is written by the newer API."""
        return self.bucket is not None or self.token is not None


@dataclass(frozen=True)
class KafkaSink(Sink):
    """`class-name = "kafka"`: telegraf's JSON to one topic, changes of verdicts to another, or only one of them."""

    class_name: ClassVar[str] = "kafka"

    cluster: Annotated[str | None, v.name_of("cluster")] = None
    topic: Annotated[str | None, v.TOPIC] = None
    changes_topic: Annotated[str | None, v.TOPIC] = None

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

    interval: v.Duration = 60.0
    write_interval: v.Duration = 600.0
    path: Annotated[str | None, _LAKE_PATH] = None
    format: Annotated[str, v.text("parquet, delta, iceberg or another format that Spark knows", r"[a-z][\w.]*")] = (
        "parquet"
    )
    database: Annotated[str | None, v.text("a database of a catalog, such as lake.kafka", r"\w+(\.\w+)*")] = None
    keep_days: Annotated[int, v.whole(0, 36_500, "days")] = 0
    commits: v.Switch = False
    packages: v.Packages = ()
    master: Annotated[str, v.SPARK_MASTER] = "local[2]"
    driver_memory: Annotated[str, v.JVM_SIZE] = "1g"
    spark_conf: Annotated[Mapping[str, str], v.SECRET_SPARK_CONF] = field(default_factory=dict, repr=False)

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
