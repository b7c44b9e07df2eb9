"""The configuration file and the environment → Config: all is checked before it is refused."""

import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from warren.config.environment import OWN_PREFIX, overrides
from warren.config.files import TablePath, UnreadableFile, find_file, parse
from warren.config.findings import Findings, did_you_mean, shown
from warren.config.kafka import lands_later
from warren.config.keys import Key, keys_of
from warren.config.outward import General, HttpServer, Iam, Logging, Notifier, Sasl, Tls, ZooKeeper, ZooKeeperConsumer
from warren.config.sections import ClientProfile, Cluster, Config, Consumer, Evaluator, Pipeline, Storage
from warren.errors import ConfigError

log = logging.getLogger(__name__)

_NAMED: Mapping[str, tuple[type, ...]] = {
    "client-profile": (ClientProfile,),
    "cluster": (Cluster,),
    "consumer": (Consumer, ZooKeeperConsumer),
    "storage": (Storage,),
    "evaluator": (Evaluator,),
    "httpserver": (HttpServer,),
    "notifier": (Notifier,),
    "tls": (Tls,),
    "sasl": (Sasl,),
    "iam": (Iam,),
}
_SINGLE: Mapping[str, type] = {"general": General, "logging": Logging, "zookeeper": ZooKeeper, "pipeline": Pipeline}
_KNOWN = (*_NAMED, *_SINGLE)
_LATER = {
    ZooKeeperConsumer: "is accepted, and waits: groups that commit to ZooKeeper are not read yet",
    Notifier: "is accepted, and waits: nobody is notified yet",
    ZooKeeper: "is accepted, and without effect until there are notifiers",
    HttpServer: "is accepted, and waits: the HTTP API is not there yet",
}

S = TypeVar("S")


@dataclass
class Section:
    """A table of the file: where it stands, what was written, and what was understood of it."""

    path: TablePath
    table: Mapping[str, Any]
    cls: type
    values: dict[str, Any] = field(default_factory=dict)
    written: dict[str, str] = field(default_factory=dict)


Sections = dict[str, dict[str, Section]]


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
    named, single = _sort_tables(tables, findings)
    _choose_classes(named, findings)
    _override(named, single, environ, findings)
    for section in (*single.values(), *(s for sections in named.values() for s in sections.values())):
        _read_values(section, findings)
        if section.cls in _LATER:
            findings.note(_LATER[section.cls], section.path)

    _check_counts(named, findings)
    _check_references(named, single, findings)
    _check_security(named, findings)
    _check_consumers(named, findings)
    _check_notifiers(named, findings)
    _check_files(named, config_dir, findings)
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
    )


def _sort_tables(tables: Mapping[str, Any], findings: Findings) -> tuple[Sections, dict[str, Section]]:
    named: Sections = {kind: {} for kind in _NAMED}
    single = {kind: Section((kind,), {}, cls) for kind, cls in _SINGLE.items() if cls is not ZooKeeper}
    for written, table in tables.items():
        kind = written.lower()  # Burrow takes its own words in any case; names that users choose keep theirs.
        if kind not in _KNOWN:
            findings.warning(f"is no section of ours and is ignored{did_you_mean(kind, _KNOWN)}", (written,))
        elif not isinstance(table, dict):
            findings.mistake(f"must be a section, not {shown(table)}", (written,))
        elif kind in _SINGLE:
            single[kind] = Section((written,), table, _SINGLE[kind])
        else:
            _sort_named(kind, written, table, named[kind], findings)
    return named, single


def _sort_named(
    kind: str, written: str, tables: Mapping[str, Any], known: dict[str, Section], findings: Findings
) -> None:
    for name, table in tables.items():
        if not isinstance(table, dict):
            findings.mistake(f"must be in one section with a name, such as [{kind}.local]", (written,), name)
        elif not name or not name.isprintable():
            findings.mistake("must have a name of printable characters", (written, name))
        elif name in known:
            findings.mistake(f"is there twice, also as [{'.'.join(known[name].path)}]", (written, name))
        else:
            known[name] = Section((written, name), table, _NAMED[kind][0])


def _choose_classes(named: Sections, findings: Findings) -> None:
    # A section with a wrong class-name is read on all the same, so that its other mistakes are found.
    for kind, classes in _NAMED.items():
        by_name = {cls.class_name: cls for cls in classes if hasattr(cls, "class_name")}
        if not by_name:
            continue
        allowed = " or ".join(f'"{name}"' for name in by_name)
        for section in named[kind].values():
            said = [(written, value) for written, value in section.table.items() if written.lower() == "class-name"]
            if not said:
                findings.mistake(f"class-name is missing: must be {allowed}", section.path)
            elif not isinstance(said[0][1], str) or said[0][1] not in by_name:
                findings.mistake(f"= {shown(said[0][1])}: must be {allowed}", section.path, said[0][0])
            else:
                section.cls = by_name[said[0][1]]


def _override(named: Sections, single: Mapping[str, Section], environ: Mapping[str, str], findings: Findings) -> None:
    general = {written.lower(): value for written, value in single["general"].table.items()}
    prefixes = (str(general.get("env-var-prefix") or General().env_var_prefix), OWN_PREFIX)
    for section in (*single.values(), *(s for sections in named.values() for s in sections.values())):
        keys = keys_of(section.cls)
        for name, (variable, value) in overrides(section.path, keys, prefixes, environ).items():
            names = {name, keys[name].formerly}
            table = {written: old for written, old in section.table.items() if written.lower() not in names}
            section.table = {**table, name: value}
            findings.variables[*section.path, name] = variable


def _read_values(section: Section, findings: Findings) -> None:
    keys: dict[str, Key] = {}
    for name, key in keys_of(section.cls).items():
        keys |= {name: key, key.formerly or name: key}
    # A class is chosen by it, not a value of its own.
    class_name = ("class-name",) if hasattr(section.cls, "class_name") else ()
    for written, value in section.table.items():
        name = written.lower()
        if name in class_name:
            continue
        if name not in keys:
            hint = _hint(section, written, value) or did_you_mean(name, (*keys, *class_name))
            findings.warning(f"is no key of this section and is ignored{hint}", section.path, written)
            continue
        _read_value(keys[name], written, value, section, findings)
    for key in keys_of(section.cls).values():
        if key.required and key.attribute not in section.written:
            findings.mistake(f"{key.name} is missing: must be {key.check.allowed}", section.path)


def _read_value(key: Key, written: str, value: object, section: Section, findings: Findings) -> None:
    if key.attribute in section.written:
        other = section.written[key.attribute]
        findings.mistake(f"is another name of {other}, which is there too: keep one", section.path, written)
        return
    section.written[key.attribute] = written
    try:
        section.values[key.attribute] = key.check.read(value)
    except ValueError as error:
        why = f" ({error})" if str(error) and not key.is_secret else ""
        what = "= (not shown)" if key.is_secret else f"= {shown(value)}"
        findings.mistake(f"{what}: must be {key.check.allowed}{why}", section.path, written)
    if key.no_effect is not None:
        findings.note(f"is accepted, and without effect: {key.no_effect}", section.path, written)


def _hint(section: Section, written: str, value: object) -> str:
    if not isinstance(value, dict) or len(section.path) < 2:
        return ""
    kind, name = section.path
    return f'; a name with a dot needs quotes: [{kind}."{name}.{written}"]'


def _check_counts(named: Sections, findings: Findings) -> None:
    if not named["cluster"]:
        findings.mistake("has no [cluster.NAME] section: there must be at least one")
    for kind in ("storage", "evaluator"):
        for section in list(named[kind].values())[1:]:
            findings.mistake(f"is one too many: there must be at most one [{kind}.NAME]", section.path)


def _check_references(named: Sections, single: Mapping[str, Section], findings: Findings) -> None:
    referring = {
        "cluster": ("client-profile",),
        "consumer": ("cluster", "client-profile"),
        "client-profile": ("tls", "sasl", "iam"),
        "httpserver": ("tls",),
        "zookeeper": ("tls",),
    }
    for kind, targets in referring.items():
        sections = named[kind].values() if kind in named else [single[kind]] if kind in single else []
        for section in sections:
            for target in targets:
                attribute = target.replace("-", "_")
                name = section.values.get(attribute)
                if name is not None and name not in named[target]:
                    there = ", ".join(named[target]) or "there is none"
                    what = f"= {shown(name)}: must be the name of a [{target}.NAME] section ({there})"
                    findings.mistake(what, section.path, section.written[attribute])


def _check_security(named: Sections, findings: Findings) -> None:
    users = (*named["cluster"].values(), *named["consumer"].values())
    used = {section.values.get("client_profile") for section in users}
    for name, section in named["client-profile"].items():
        tell = findings.mistake if name in used else findings.note
        for attribute, why in lands_later(ClientProfile(**section.values)).items():
            tell(f"= {shown(section.values[attribute])}: {why}", section.path, section.written[attribute])


def _check_consumers(named: Sections, findings: Findings) -> None:
    consumers = [section for section in named["consumer"].values() if section.cls is Consumer]
    read_from = {section.values.get("cluster") for section in consumers}
    for name, section in named["cluster"].items():
        if name not in read_from:
            findings.warning("has no [consumer.NAME] of class kafka, so no group will be seen", section.path)
    for section in consumers:
        if section.values.get("backfill_earliest") and not section.values.get("start_latest"):
            what = "is without effect: start-latest is false, so all commits are read anyway"
            findings.warning(what, section.path, section.written["backfill_earliest"])


def _check_notifiers(named: Sections, findings: Findings) -> None:
    needed = {"http": ("url-open",), "email": ("server", "from", "to")}
    for section in named["notifier"].values():
        kind = section.values.get("class_name")
        for name in needed.get(str(kind), ()):
            key = keys_of(Notifier)[name]
            if key.attribute not in section.written:
                findings.mistake(f"{name} is missing: a notifier of class {kind} needs it", section.path)
        if section.values.get("send_close") and "template_close" not in section.written:
            findings.mistake("template-close is missing: send-close needs it", section.path)


def _check_files(named: Sections, config_dir: Path, findings: Findings) -> None:
    """Certificates and templates are found from where Warren runs, as Burrow does, or from beside the file."""
    for section in (*named["tls"].values(), *named["notifier"].values()):
        for attribute, value in section.values.items():
            if isinstance(value, Path):
                found = next((path for path in (value, config_dir / value) if path.exists()), value)
                section.values[attribute] = found.absolute()
                try:
                    found.read_bytes()
                except OSError as error:
                    what = f"= {shown(str(value))}: cannot be read: {error.strerror}"
                    findings.mistake(what, section.path, section.written[attribute])


def _built(cls: Callable[..., S], sections: Mapping[str, Section]) -> dict[str, S]:
    return {name: cls(name=name, **section.values) for name, section in sections.items() if section.cls is cls}
