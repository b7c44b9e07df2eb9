"""The configuration file and the environment → Config, with every mistake reported at once."""

import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from warren.config.auth import Auth
from warren.config.files import UnreadableFile, find_file, parse
from warren.config.findings import Findings
from warren.config.general import General, Logging
from warren.config.http import HttpServer, Metrics
from warren.config.kafka import ClientProfile, Cluster, Connection, Consumer, StormConsumer, ZooKeeperConsumer
from warren.config.notifiers import Incidents, Notifier, NotifierLock, Route, ZooKeeper
from warren.config.pipeline import Evaluator, Pipeline, Storage
from warren.config.secrets import Secret, resolve
from warren.config.section import RawSection, Sections, keys_of
from warren.config.security import Iam, Sasl, Tls
from warren.config.sinks import ElasticsearchSink, InfluxSink, KafkaSink, LakeSink, OpenSearchSink, Sink
from warren.config.tables import SectionKind, all_sections, read_sections
from warren.config.values import Check
from warren.errors import ConfigError

log = logging.getLogger(__name__)

KINDS: Mapping[str, SectionKind] = {
    "general": SectionKind((General,), "single"),
    "logging": SectionKind((Logging,), "single"),
    "zookeeper": SectionKind((ZooKeeper,), "single"),
    "pipeline": SectionKind((Pipeline,), "single"),
    "auth": SectionKind((Auth,), "single", is_optional=True),
    "notifier-lock": SectionKind((NotifierLock,), "single"),
    "incidents": SectionKind((Incidents,), "single"),
    "metrics": SectionKind((Metrics,), "single"),
    "client-profile": SectionKind((ClientProfile,)),
    "cluster": SectionKind((Cluster,)),
    "consumer": SectionKind((Consumer, ZooKeeperConsumer, StormConsumer)),
    "storage": SectionKind((Storage,)),
    "evaluator": SectionKind((Evaluator,)),
    "httpserver": SectionKind((HttpServer,)),
    "notifier": SectionKind((Notifier,)),
    "route": SectionKind((Route,), "listed"),
    "tls": SectionKind((Tls,)),
    "sasl": SectionKind((Sasl,)),
    "iam": SectionKind((Iam,)),
    "sink": SectionKind((ElasticsearchSink, OpenSearchSink, InfluxSink, KafkaSink, LakeSink)),
}
"""Every kind of section that burrow.toml may have."""

_OWN_TEMPLATES = Path(__file__).parents[1] / "templates"
"""Templates under the names that Burrow gives its own, such as config/default-http-post.tmpl."""


@dataclass(frozen=True)
class Config:
    """The whole configuration, checked."""

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
    metrics: Metrics = field(default_factory=Metrics)
    sinks: Mapping[str, Sink] = field(default_factory=dict)

    @property
    def has_leader_election(self) -> bool:
        """Whether other Warrens may notify too, so that one of them must be elected."""
        return bool(self.notifiers) and (self.zookeeper is not None or self.notifier_lock is not None)

    @property
    def has_replicated_incidents(self) -> bool:
        """Whether incidents are kept where other Warrens find them."""
        class_name = self.incidents.class_name
        return self.has_leader_election if class_name is None else class_name == "kafka"

    @property
    def own_topics(self) -> frozenset[str]:
        """The topics that Warren itself writes."""
        sinks = [sink for sink in self.sinks.values() if isinstance(sink, KafkaSink)]
        topics = {topic for sink in sinks for topic in (sink.topic, sink.changes_topic) if topic}
        shared = {self.incidents.topic} if self.has_replicated_incidents else set()
        locks = {self.incidents.lock_topic} if self.notifier_lock else set()
        return frozenset(topics | shared | locks)

    @property
    def listeners(self) -> Mapping[str, HttpServer]:
        """The HTTP servers to start: those of the file, or one on a free port where it has none."""
        return self.http_servers or {"default": HttpServer(":0", name="default")}

    @property
    def trigger_s(self) -> float:
        """The time between two cycles: `trigger`, or the shortest `offset-refresh` if that is shorter."""
        return min([self.pipeline.trigger, *(cluster.offset_refresh for cluster in self.clusters.values())])

    def profile_of(self, section: Cluster | Consumer) -> ClientProfile:
        """The client profile that a section names, or Burrow's defaults when it names none."""
        return self.client_profiles[section.client_profile] if section.client_profile else ClientProfile()

    def connection_of(self, section: Cluster | Consumer) -> Connection:
        """How to reach the brokers of a section."""
        profile = self.profile_of(section)
        return Connection(
            section.servers,
            profile,
            self.tls[profile.tls] if profile.tls is not None else None,
            self.sasl[profile.sasl] if profile.sasl is not None else None,
            self.iam[profile.iam] if profile.iam is not None else None,
        )

    @property
    def uses_iam(self) -> bool:
        """Whether a cluster or consumer is reached with credentials of AWS."""
        sections: list[Cluster | Consumer] = [*self.clusters.values(), *self.consumers.values()]
        return any(self.profile_of(section).iam is not None for section in sections)

    def cluster_or_first(self, name: str | None) -> Cluster:
        """The cluster of that name, by default the first one."""
        return self.clusters[name] if name else next(iter(self.clusters.values()))


def load(config_dir: Path) -> Config:
    """Read the configuration of a directory, log its warnings, raise ConfigError with all of its mistakes."""
    return accepted(*read(config_dir))


def accepted(config: Config | None, findings: Findings) -> Config:
    """Log the notes and warnings of a configuration; raise ConfigError if it has mistakes."""
    for note in findings.notes:
        log.info("%s", note)
    for warning in findings.warnings + findings.risks:
        log.warning("%s", warning)
    if config is None:
        raise ConfigError(findings.mistakes)
    return config


def read(config_dir: Path, environ: Mapping[str, str] = os.environ) -> tuple[Config | None, Findings]:
    """Read the configuration of a directory; it is None if there are mistakes among the findings."""
    findings = Findings(find_file(config_dir))
    try:
        tables, findings.lines = parse(findings.file)
    except UnreadableFile as error:
        findings.mistake(str(error))
        return None, findings
    sections = read_sections(tables, KINDS, environ, findings)
    if not sections["cluster"]:
        findings.mistake("has no [cluster.NAME] section: at least one is required")
    for kind in ("storage", "evaluator"):
        for section in list(sections[kind].values())[1:]:
            section.mistake(f"only one [{kind}.NAME] section is allowed")
    for section in all_sections(sections):
        _check_references(section, sections)
        _find_files(section, config_dir)
        _resolve_secrets(section, config_dir, environ)
        if hasattr(section.cls, "check"):
            section.cls.check(section, sections)
    return None if findings.mistakes else _to_config(sections, config_dir), findings


def _check_references(section: RawSection, sections: Sections) -> None:
    for key in keys_of(section.cls).values():
        value, kind = section.values.get(key.attribute), key.check.refers_to
        if kind is None or value is None:
            continue
        for name in [value] if isinstance(value, str) else value:
            if name not in sections[kind]:
                known = ", ".join(sections[kind]) or "there is none"
                section.refuse(key.attribute, f"must be {key.check.allowed} ({known})", name)


def _find_files(section: RawSection, config_dir: Path) -> None:
    """Find input files from the working directory, as Burrow does, from that of burrow.toml, or among Warren's own."""
    for key in keys_of(section.cls).values():
        path = section.values.get(key.attribute)
        if not key.check.must_exist or path is None:
            continue
        candidates = (path, config_dir / path, _OWN_TEMPLATES / path)
        existing = next((candidate for candidate in candidates if candidate.exists()), path)
        try:
            existing.read_bytes()
        except OSError as error:
            section.refuse(key.attribute, f"cannot be read: {error.strerror}")
        section.values[key.attribute] = existing.absolute()


def _resolve_secrets(section: RawSection, config_dir: Path, environ: Mapping[str, str]) -> None:
    """Replace what is written in place of secrets; those of tables and URLs are read now, the others at each use."""
    for key in keys_of(section.cls).values():
        value = section.values.get(key.attribute)
        if not key.check.is_secret or value is None:
            continue

        def resolved(written: Secret | str, check: Check = key.check) -> Secret | str:
            text = written.text if isinstance(written, Secret) else written
            secret = resolve(text, config_dir, environ, may_be_file=check.may_be_file)
            return secret if isinstance(written, Secret) else secret.reveal()

        try:
            if isinstance(value, Mapping):
                whole: object = {name: resolved(item) for name, item in value.items()}
            else:
                whole = tuple(map(resolved, value)) if isinstance(value, tuple) else resolved(value)
        except ValueError as error:
            section.mistake(f"= (not shown): {error}", key.attribute)
        else:
            section.values[key.attribute] = whole


def _to_config(sections: Sections, config_dir: Path) -> Config:
    made: dict[str, dict[str, Any]] = {
        kind: {name: raw.cls(**raw.values, **({"name": name} if name else {})) for name, raw in by_name.items()}
        for kind, by_name in sections.items()
    }
    single = {kind.replace("-", "_"): by_name[""] for kind, by_name in made.items() if "" in by_name}
    first = {kind: next(iter(made[kind].values())) for kind in ("storage", "evaluator") if made[kind]}
    pipeline = single.pop("pipeline")
    consumers = made["consumer"].items()
    return Config(
        clusters=made["cluster"],
        consumers={name: consumer for name, consumer in consumers if isinstance(consumer, Consumer)},
        zookeeper_consumers={name: consumer for name, consumer in consumers if isinstance(consumer, ZooKeeperConsumer)},
        client_profiles=made["client-profile"],
        pipeline=replace(pipeline, data_dir=(config_dir / pipeline.data_dir).absolute()),
        http_servers=made["httpserver"],
        notifiers=made["notifier"],
        routes=tuple(made["route"].values()),
        tls=made["tls"],
        sasl=made["sasl"],
        iam=made["iam"],
        sinks=made["sink"],
        **single,
        **first,
    )
