"""burrow.toml → Config: all of it is checked before it is refused, so every mistake is told at once."""

import logging
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from warren.config.findings import Findings, TablePath, did_you_mean, shown
from warren.config.kafka import lands_later
from warren.config.sections import (
    ClientProfile,
    Cluster,
    Config,
    Consumer,
    Evaluator,
    Key,
    Pipeline,
    Storage,
    keys_of,
)
from warren.errors import ConfigError

log = logging.getLogger(__name__)

FILE_NAME = "burrow.toml"

_NAMED: Mapping[str, type] = {
    "client-profile": ClientProfile,
    "cluster": Cluster,
    "consumer": Consumer,
    "storage": Storage,
    "evaluator": Evaluator,
}
_LATER = ("general", "logging", "zookeeper", "httpserver", "notifier", "tls", "sasl", "iam")
_KNOWN = (*_NAMED, "pipeline", *_LATER)
_LATER_CLASSES = {
    ("consumer", "kafka_zk"): "groups that commit to ZooKeeper are not read yet, so this section waits",
}

S = TypeVar("S")


@dataclass
class Section:
    """A table of the file: where it stands, what was written, and what was understood of it."""

    path: TablePath
    table: Mapping[str, Any]
    values: dict[str, Any] = field(default_factory=dict)
    written: dict[str, str] = field(default_factory=dict)


Sections = dict[str, dict[str, Section]]


def load(config_dir: Path) -> Config:
    """Read the burrow.toml of a directory, log what is odd in it, raise ConfigError with every mistake."""
    config, findings = read(config_dir)
    for note in findings.notes:
        log.info("%s", note)
    for warning in findings.warnings:
        log.warning("%s", warning)
    if config is None:
        raise ConfigError(findings.mistakes)
    return config


def read(config_dir: Path) -> tuple[Config | None, Findings]:
    """Read the burrow.toml of a directory: the configuration, or None for its mistakes, and all findings."""
    findings = Findings(config_dir / FILE_NAME)
    try:
        text = findings.file.read_bytes().decode("utf-8-sig")
        tables = tomllib.loads(text)
    except OSError as error:
        findings.mistake(f"cannot be read: {error.strerror}")
    except UnicodeDecodeError as error:
        findings.mistake(f"must be UTF-8 text: {error}")
    except tomllib.TOMLDecodeError as error:
        findings.mistake(f"must be TOML: {error}")
    else:
        findings.text = text
        return _to_config(tables, config_dir, findings), findings
    return None, findings


def _to_config(tables: Mapping[str, Any], config_dir: Path, findings: Findings) -> Config | None:
    named, pipeline = _sort_tables(tables, findings)
    for kind, cls in _NAMED.items():
        named[kind] = {name: s for name, s in named[kind].items() if _is_of_class(kind, cls, s, findings)}
        for section in named[kind].values():
            _read_values(cls, section, findings)
    _read_values(Pipeline, pipeline, findings)

    _check_counts(named, findings)
    _check_references(named, findings)
    _check_security(named, findings)
    _check_consumers(named, findings)
    if findings.mistakes:
        return None

    settings = Pipeline(**pipeline.values)
    return Config(
        clusters=_built(Cluster, named["cluster"]),
        consumers=_built(Consumer, named["consumer"]),
        storage=next(iter(_built(Storage, named["storage"]).values()), Storage()),
        evaluator=next(iter(_built(Evaluator, named["evaluator"]).values()), Evaluator()),
        client_profiles=_built(ClientProfile, named["client-profile"]),
        pipeline=replace(settings, data_dir=(config_dir / settings.data_dir).absolute()),
    )


def _sort_tables(tables: Mapping[str, Any], findings: Findings) -> tuple[Sections, Section]:
    named: Sections = {kind: {} for kind in _NAMED}
    pipeline = Section(("pipeline",), {})
    for written, table in tables.items():
        kind = written.lower()  # Burrow takes its own words in any case; names that users choose keep theirs.
        if kind not in _KNOWN:
            findings.warning(f"is no section of ours and is ignored{did_you_mean(kind, _KNOWN)}", (written,))
        elif kind in _LATER:
            findings.note("is accepted, and without effect in this version", (written,))
        elif not isinstance(table, dict):
            findings.mistake(f"must be a section, not {shown(table)}", (written,))
        elif kind == "pipeline":
            pipeline = Section((written,), table)
        else:
            _sort_named(kind, written, table, named[kind], findings)
    return named, pipeline


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
            known[name] = Section((written, name), table)


def _is_of_class(kind: str, cls: type, section: Section, findings: Findings) -> bool:
    # A section with a wrong class-name is read on all the same, so that its other mistakes are found.
    if not hasattr(cls, "class_name"):
        return True
    later = [name for of_kind, name in _LATER_CLASSES if of_kind == kind]
    allowed = " or ".join(f'"{name}"' for name in (cls.class_name, *later))
    for written, value in section.table.items():
        if written.lower() != "class-name":
            continue
        if value in later:
            findings.note(f"= {shown(value)}: {_LATER_CLASSES[kind, value]}", section.path, written)
            return False
        if value != cls.class_name:
            findings.mistake(f"= {shown(value)}: must be {allowed}", section.path, written)
        return True
    findings.mistake(f"class-name is missing: must be {allowed}", section.path)
    return True


def _read_values(cls: type, section: Section, findings: Findings) -> None:
    keys: dict[str, Key] = {}
    for name, key in keys_of(cls).items():
        keys |= {name: key, key.formerly or name: key}
    class_name = ("class-name",) if hasattr(cls, "class_name") else ()
    for written, value in section.table.items():
        name = written.lower()
        if name in class_name:
            continue
        if name not in keys:
            hint = _hint(section, written, value) or did_you_mean(name, (*keys, *class_name))
            findings.warning(f"is no key of this section and is ignored{hint}", section.path, written)
            continue
        _read_value(keys[name], written, value, section, findings)
    for key in keys_of(cls).values():
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
        why = f" ({error})" if str(error) else ""
        findings.mistake(f"= {shown(value)}: must be {key.check.allowed}{why}", section.path, written)
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


def _check_references(named: Sections, findings: Findings) -> None:
    for attribute, target in (("cluster", "cluster"), ("client_profile", "client-profile")):
        for section in (*named["cluster"].values(), *named["consumer"].values()):
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
    read_from = {section.values.get("cluster") for section in named["consumer"].values()}
    for name, section in named["cluster"].items():
        if name not in read_from:
            findings.warning("has no [consumer.NAME] of class kafka, so no group will be seen", section.path)
    for section in named["consumer"].values():
        if section.values.get("backfill_earliest") and not section.values.get("start_latest"):
            what = "is without effect: start-latest is false, so all commits are read anyway"
            findings.warning(what, section.path, section.written["backfill_earliest"])


def _built(cls: Callable[..., S], sections: Mapping[str, Section]) -> dict[str, S]:
    return {name: cls(name=name, **section.values) for name, section in sections.items()}
