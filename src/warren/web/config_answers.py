"""What the HTTP API says about the configuration, in Burrow's words and order, and never a secret."""

import re
from collections.abc import Collection, Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import TYPE_CHECKING

from warren.config import (
    ClientProfile,
    Cluster,
    Config,
    Consumer,
    Evaluator,
    Iam,
    Notifier,
    Sasl,
    Storage,
    Tls,
    ZooKeeperConsumer,
)
from warren.config.section import keys_of

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

KINDS = ("storage", "evaluator", "cluster", "consumer", "notifier")

Answer = dict[str, object]
Module = Storage | Evaluator | Cluster | Consumer | ZooKeeperConsumer | Notifier

_HIDDEN = "*****"
# What Burrow takes, and shows, where a profile says nothing.
_KAFKA_VERSION = "2.8.0"


def main_config(config: Config) -> Answer:
    """The sections that are no modules."""
    general, logging, zookeeper = config.general, config.logging, config.zookeeper
    return {
        "general": {
            "pidfile": str(general.pidfile),
            "stdout-logfile": _text(general.stdout_logfile),
            "access-control-allow-origin": _text(general.access_control_allow_origin),
        },
        "logging": {
            "filename": _text(logging.filename),
            "max-size": logging.maxsize,
            "max-backups": logging.maxbackups,
            "max-age": logging.maxage,
            "use-local-time": logging.use_localtime,
            "use-compression": logging.use_compression,
            "level": logging.level,
        },
        "zookeeper": {
            "servers": list(zookeeper.servers) if zookeeper else None,
            "timeout": zookeeper.timeout if zookeeper else 0,
            "root-path": zookeeper.root_path if zookeeper else "",
        },
        "httpserver": {
            name: {"address": server.address, "tls": _text(server.tls), "timeout": server.timeout}
            for name, server in sorted(config.listeners.items())
        },
    }


def module_names(config: Config, kind: str) -> list[str]:
    """The names of the modules of one of the KINDS."""
    return sorted(_modules(config, kind))


def module_detail(config: Config, kind: str, name: str) -> Answer | None:
    """What there is to say about a module, None where there is none of that name."""
    module = _modules(config, kind).get(name)
    if module is None:
        return None
    answer = _burrows_answer(config, module)
    return answer | _others(module, but=answer.keys() | {"extras"})


def _modules(config: Config, kind: str) -> Mapping[str, Module]:
    modules: Mapping[str, Mapping[str, Module]] = {
        # Where the file has no section, Burrow makes one of this name.
        "storage": {config.storage.name or "default": config.storage},
        "evaluator": {config.evaluator.name or "default": config.evaluator},
        "cluster": config.clusters,
        "consumer": {**config.consumers, **config.zookeeper_consumers},
        "notifier": config.notifiers,
    }
    return modules[kind]


def _burrows_answer(config: Config, module: Module) -> Answer:
    match module:
        case Storage():
            return {
                "class-name": module.class_name,
                "intervals": module.intervals,
                "min-distance": module.min_distance,
                "group-allowlist": _text(module.group_allowlist),
                "expire-group": module.expire_group,
            }
        case Evaluator():
            return {"class-name": module.class_name, "expire-cache": module.expire_cache}
        case Cluster():
            return {
                "class-name": module.class_name,
                "servers": list(module.servers),
                "client-profile": _profile(config, config.profile_of(module)),
                "topic-refresh": module.topic_refresh,
                "offset-refresh": module.offset_refresh,
            }
        case Notifier():
            return _notifier(module)
        case _:
            return _consumer(config, module)


def _consumer(config: Config, consumer: Consumer | ZooKeeperConsumer) -> Answer:
    of_zookeeper = consumer if isinstance(consumer, ZooKeeperConsumer) else None
    of_kafka = consumer if isinstance(consumer, Consumer) else None
    return {
        "class-name": consumer.class_name,
        "cluster": consumer.cluster,
        "servers": list(consumer.servers),
        "group-allowlist": _text(consumer.group_allowlist),
        "zookeeper-path": of_zookeeper.zookeeper_path if of_zookeeper else "",
        "zookeeper-timeout": of_zookeeper.zookeeper_timeout if of_zookeeper else 0,
        "client-profile": _profile(config, config.profile_of(of_kafka) if of_kafka else None),
        "offsets-topic": of_kafka.offsets_topic if of_kafka else "",
        "start-latest": of_kafka.start_latest if of_kafka else False,
    }


def _profile(config: Config, profile: ClientProfile | None) -> Answer:
    if profile is None:
        return {"name": "", "client-id": "", "kafka-version": "", "tls": None, "sasl": None}
    answer: Answer = {
        "name": profile.name,
        "client-id": profile.client_id,
        "kafka-version": profile.kafka_version or _KAFKA_VERSION,
        "tls": _tls(config.tls.get(profile.tls or "")),
        "sasl": _sasl(config.sasl.get(profile.sasl or "")),
    }
    iam = config.iam.get(profile.iam or "")
    return answer | _others(profile, but=answer.keys() | {"iam"}) | ({"iam": _iam(iam)} if iam else {})


def _tls(tls: Tls | None) -> Answer | None:
    if tls is None:
        return None
    return {
        "name": tls.name,
        "noverify": tls.noverify,
        "certfile": _text(tls.certfile),
        "keyfile": _text(tls.keyfile),
        "cafile": _text(tls.cafile),
    }


def _sasl(sasl: Sasl | None) -> Answer | None:
    if sasl is None:
        return None
    answer: Answer = {
        "name": sasl.name,
        "handshake-first": sasl.handshake_first,
        "username": _text(sasl.username),
    }
    return answer | _others(sasl, but=answer.keys())


def _iam(iam: Iam) -> Answer:
    return {"name": iam.name} | _others(iam)


def _notifier(notifier: Notifier) -> Answer:
    ends: Answer = {
        "template-open": _text(notifier.template_open),
        "template-close": _text(notifier.template_close),
        "extra": _keys_of_secrets(notifier.extras),
        "send-close": notifier.wants_close,
    }
    begins: Answer = {
        "class-name": notifier.class_name,
        "group-allowlist": _text(notifier.group_allowlist),
        "interval": notifier.interval,
        "threshold": notifier.threshold,
    }
    # Burrow shows this switch as text.
    tls: Answer = {"extra-ca": _text(notifier.extra_ca), "noverify": "true" if notifier.noverify else ""}
    if notifier.class_name == "http":
        is_closing = notifier.wants_close or notifier.method_close != Notifier.method_close
        http = {
            "timeout": notifier.timeout,
            "keepalive": notifier.keepalive,
            "url-open": _place_of(notifier.url_open),
            "url-close": _place_of(notifier.url_close),
            "method-open": notifier.method_open,
            "method-close": notifier.method_close if is_closing else "",
        }
        return begins | http | ends | tls
    if notifier.class_name == "email":
        email = {
            "server": _text(notifier.server),
            "port": notifier.port or 0,
            "auth-type": _text(notifier.auth_type),
            "username": _text(notifier.username),
            "from": _text(notifier.from_),
            "to": _text(notifier.to),
        }
        return begins | ends | email | tls
    return begins | ends


def _others(section: "DataclassInstance", but: Collection[str] = ()) -> Answer:
    """The keys that Burrow does not show, where the file sets them; of secrets at most that they are there."""
    defaults = {
        attribute.name: attribute.default if attribute.default_factory is MISSING else attribute.default_factory()
        for attribute in fields(section)
    }
    answer: Answer = {}
    for key in keys_of(type(section)).values():
        value = getattr(section, key.attribute)
        if key.name in but or value == defaults[key.attribute]:
            continue
        if not key.is_secret:
            answer[key.name] = str(value) if isinstance(value, Path) else value
        elif isinstance(value, Mapping):
            answer[key.name] = _keys_of_secrets(value)
    return answer


def _keys_of_secrets(secrets: Mapping[str, str]) -> Answer:
    return dict.fromkeys(sorted(secrets), _HIDDEN)


def _place_of(url: str | None) -> str:
    """Scheme and host of a URL, as all the rest of it may hold a token; nothing of one that is not plain to read."""
    if not url:
        return ""
    found = re.fullmatch(
        r"(https?://)(?:[^@/?#\\\s]*@)?([\w.-]+|\[[0-9a-fA-F:.]+\])(:\d+)?(?:[/?#][^@]*)?", url, re.IGNORECASE
    )
    return "".join(part or "" for part in found.groups()) if found else _HIDDEN


def _text(value: Path | str | None) -> str:
    return str(value or "")
