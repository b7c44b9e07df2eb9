"""The tables of the configuration file as sections: sorted, overridden by the environment, and each value read."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from warren.config.environment import OWN_PREFIX, overrides
from warren.config.files import TablePath
from warren.config.findings import Findings, did_you_mean, shown
from warren.config.keys import Key, keys_of
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
from warren.config.sections import ClientProfile, Cluster, Consumer, Evaluator, Pipeline, Storage
from warren.config.sinks import ElasticsearchSink, InfluxSink, KafkaSink, LakeSink, OpenSearchSink, Sink

_NAMED: Mapping[str, tuple[type, ...]] = {
    "client-profile": (ClientProfile,),
    "cluster": (Cluster,),
    "consumer": (Consumer, ZooKeeperConsumer),
    "storage": (Storage,),
    "evaluator": (Evaluator,),
    "httpserver": (HttpServer,),
    "notifier": (Notifier,),
    "route": (Route,),
    "tls": (Tls,),
    "sasl": (Sasl,),
    "iam": (Iam,),
    "sink": (ElasticsearchSink, OpenSearchSink, InfluxSink, KafkaSink, LakeSink),
}
_SINGLE: Mapping[str, type] = {
    "general": General,
    "logging": Logging,
    "zookeeper": ZooKeeper,
    "pipeline": Pipeline,
    "auth": Auth,
    "notifier-lock": NotifierLock,
    "incidents": Incidents,
}
_LISTED = ("route",)
"""Sections without a name, of which there may be many: their order is their name."""
_KNOWN = (*_NAMED, *_SINGLE)


@dataclass
class Section:
    """A table of the file: where it stands, what was written, and what was understood of it."""

    path: TablePath
    table: Mapping[str, Any]
    cls: type
    values: dict[str, Any] = field(default_factory=dict)
    written: dict[str, str] = field(default_factory=dict)


Sections = dict[str, dict[str, Section]]
Singles = dict[str, Section]


def read_tables(tables: Mapping[str, Any], environ: Mapping[str, str], findings: Findings) -> tuple[Sections, Singles]:
    """The sections that have names, by kind and name, and those that have none, by kind, without what is not there."""
    named, single = _sort_tables(tables, findings)
    _choose_classes(named, findings)
    _override(named, single, environ, findings)
    for section in (*single.values(), *_all(named)):
        _read_values(section, findings)
    return named, single


def _all(named: Sections) -> Iterable[Section]:
    return (section for sections in named.values() for section in sections.values())


def _sort_tables(tables: Mapping[str, Any], findings: Findings) -> tuple[Sections, Singles]:
    named: Sections = {kind: {} for kind in _NAMED}
    single = {kind: Section((kind,), {}, cls) for kind, cls in _SINGLE.items() if not _required(cls)}
    for written, table in tables.items():
        kind = written.lower()  # Burrow takes its own words in any case; names that users choose keep theirs.
        if kind in _LISTED and isinstance(table, list):
            _sort_listed(kind, written, table, named[kind], findings)
        elif kind in _LISTED:
            findings.mistake(f"must be a list of sections, each [[{kind}]]", (written,))
        elif kind not in _KNOWN:
            findings.warning(f"is no section of ours and is ignored{did_you_mean(kind, _KNOWN)}", (written,))
        elif not isinstance(table, dict):
            findings.mistake(f"must be a section, not {shown(table)}", (written,))
        elif kind in _SINGLE:
            single[kind] = Section((written,), table, _SINGLE[kind])
        else:
            _sort_named(kind, written, table, named[kind], findings)
    return named, single


def _sort_listed(kind: str, written: str, tables: list[Any], known: dict[str, Section], findings: Findings) -> None:
    for number, table in enumerate(tables, start=1):
        if isinstance(table, dict):
            known[str(number)] = Section((written, str(number)), table, _NAMED[kind][0])
        else:
            findings.mistake(f"must be a section, not {shown(table)}", (written, str(number)))


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


def _required(cls: type) -> set[str]:
    return {key.name for key in keys_of(cls).values() if key.required}


def _override(named: Sections, single: Singles, environ: Mapping[str, str], findings: Findings) -> None:
    general = {written.lower(): value for written, value in single["general"].table.items()}
    prefixes = (str(general.get("env-var-prefix") or General().env_var_prefix), OWN_PREFIX)
    for kind, cls in _SINGLE.items():
        # A section that the file lacks is there when the environment says all it must.
        if kind not in single and _required(cls) <= overrides((kind,), keys_of(cls), prefixes, environ).keys():
            single[kind] = Section((kind,), {}, cls)
    for section in (*single.values(), *_all(named)):
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
    class_name = ("class-name",) if hasattr(section.cls, "class_name") and "class-name" not in keys else ()
    for written, value in section.table.items():
        name = written.lower()
        if issubclass(section.cls, Sink):
            # As telegraf writes them.
            name = name.replace("_", "-")
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
