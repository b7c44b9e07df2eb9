"""The configuration file and the environment → Config: all is checked before it is refused."""

import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from warren.config.files import UnreadableFile, find_file, parse
from warren.config.findings import Findings
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
from warren.config.relations import check_relations
from warren.config.sections import ClientProfile, Cluster, Config, Consumer, Evaluator, Pipeline, Storage
from warren.config.tables import Section, read_tables
from warren.errors import ConfigError

log = logging.getLogger(__name__)

_LATER = {
    ZooKeeperConsumer: "is accepted, and waits: groups that commit to ZooKeeper are not read yet",
}

S = TypeVar("S")


def load(config_dir: Path) -> Config:
    """Read the configuration of a directory, log what is odd in it, raise ConfigError with every mistake."""
    return accepted(*read(config_dir))


def accepted(config: Config | None, findings: Findings) -> Config:
    """Log what is odd in a configuration that was read; raise ConfigError if there are mistakes in it."""
    for note in findings.notes:
        log.info("%s", note)
    for warning in findings.warnings:
        log.warning("%s", warning)
    if config is None:
        raise ConfigError(findings.mistakes)
    return config


def read(config_dir: Path, environ: Mapping[str, str] = os.environ) -> tuple[Config | None, Findings]:
    """Read the configuration of a directory: the configuration, or None for its mistakes, and all findings."""
    findings = Findings(find_file(config_dir))
    try:
        tables, findings.lines = parse(findings.file)
    except UnreadableFile as error:
        findings.mistake(str(error))
        return None, findings
    return _to_config(tables, config_dir, environ, findings), findings


def _to_config(
    tables: Mapping[str, Any], config_dir: Path, environ: Mapping[str, str], findings: Findings
) -> Config | None:
    named, single = read_tables(tables, environ, findings)
    for section in (*single.values(), *(s for sections in named.values() for s in sections.values())):
        if section.cls in _LATER:
            findings.note(_LATER[section.cls], section.path)
    check_relations(named, single, config_dir, findings)
    if findings.mistakes:
        return None

    pipeline = Pipeline(**single["pipeline"].values)
    return Config(
        clusters=_built(Cluster, named["cluster"]),
        consumers=_built(Consumer, named["consumer"]),
        storage=next(iter(_built(Storage, named["storage"]).values()), Storage()),
        evaluator=next(iter(_built(Evaluator, named["evaluator"]).values()), Evaluator()),
        client_profiles=_built(ClientProfile, named["client-profile"]),
        pipeline=replace(pipeline, data_dir=(config_dir / pipeline.data_dir).absolute()),
        general=General(**single["general"].values),
        logging=Logging(**single["logging"].values),
        zookeeper=ZooKeeper(**single["zookeeper"].values) if "zookeeper" in single else None,
        http_servers=_built(HttpServer, named["httpserver"]),
        notifiers=_built(Notifier, named["notifier"]),
        zookeeper_consumers=_built(ZooKeeperConsumer, named["consumer"]),
        tls=_built(Tls, named["tls"]),
        sasl=_built(Sasl, named["sasl"]),
        iam=_built(Iam, named["iam"]),
        auth=Auth(**single["auth"].values) if "auth" in single else None,
        routes=tuple(_built(Route, named["route"]).values()),
        notifier_lock=NotifierLock(**single["notifier-lock"].values) if "notifier-lock" in single else None,
        incidents=Incidents(**single["incidents"].values),
        sinks={name: section.cls(name=name, **section.values) for name, section in named["sink"].items()},
    )


def _built(cls: Callable[..., S], sections: Mapping[str, Section]) -> dict[str, S]:
    return {name: cls(name=name, **section.values) for name, section in sections.items() if section.cls is cls}
