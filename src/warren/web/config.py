"""The configuration as Burrow shows it, field by field and in its order, without secrets."""

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
from warren.errors import RequestError
from warren.web.api import Api
from warren.web.go_json import dumps
from warren.web.http import Request, Response
from warren.web.responses import request_info, success

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Answer = dict[str, object]
Module = Storage | Evaluator | Cluster | Consumer | ZooKeeperConsumer | Notifier

_HIDDEN = "*****"
_KAFKA_VERSION = "2.8.0"
"""Burrow's default."""


def main(api: Api, request: Request) -> Response:
    """Get the configuration of the server itself."""
    return _envelope_first(request, "main config returned", main_config(api.config))


def modules(api: Api, request: Request) -> Response:
    """List the sections of one kind."""
    kind = request.path.rsplit("/", 1)[1]
    names = module_names(api.config, kind)
    return _envelope_first(request, "module list returned", {"coordinator": kind, "modules": names})


def _envelope_first(request: Request, message: str, fields: Answer) -> Response:
    """An answer whose `request` comes before its fields, as Burrow has it here."""
    envelope = {"error": False, "message": message, "request": request_info(request.path)}
    return Response(200, dumps({**envelope, **fields}))


def module(api: Api, request: Request) -> Response:
    """Get a section."""
    return _module(api, request, request.path.split("/")[3], request.params["name"])


def cluster(api: Api, request: Request) -> Response:
    """Get the configuration of a cluster."""
    return _module(api, request, "cluster", request.params["cluster"])


def _module(api: Api, request: Request, kind: str, name: str) -> Response:
    answer = module_detail(api.config, kind, name)
    if answer is None:
        raise RequestError(f"{kind} module not found", 404)
    return success(request, f"{kind} module detail returned", module=answer)


def main_config(config: Config) -> Answer:
    """The sections that are not modules."""
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
    """The names of the modules of a kind: storage, evaluator, cluster, consumer or notifier."""
    return sorted(_modules(config, kind))


def module_detail(config: Config, kind: str, name: str) -> Answer | None:
    """The fields of a module; None if there is none of that name."""
    module = _modules(config, kind).get(name)
    if module is None:
        return None
    answer = _burrow_fields(config, module)
    return answer | _other_keys(module, but=answer.keys() | {"extras"})


def _modules(config: Config, kind: str) -> Mapping[str, Module]:
    modules: Mapping[str, Mapping[str, Module]] = {
        # Without a section in the file, Burrow makes one of this name.
        "storage": {config.storage.name or "default": config.storage},
        "evaluator": {config.evaluator.name or "default": config.evaluator},
        "cluster": config.clusters,
        "consumer": {**config.consumers, **config.zookeeper_consumers},
        "notifier": config.notifiers,
    }
    return modules[kind]


def _burrow_fields(config: Config, module: Module) -> Answer:
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
    zookeeper = consumer if isinstance(consumer, ZooKeeperConsumer) else None
    kafka = consumer if isinstance(consumer, Consumer) else None
    return {
        "class-name": consumer.class_name,
        "cluster": consumer.cluster,
        "servers": list(consumer.servers),
        "group-allowlist": _text(consumer.group_allowlist),
        "zookeeper-path": zookeeper.zookeeper_path if zookeeper else "",
        "zookeeper-timeout": zookeeper.zookeeper_timeout if zookeeper else 0,
        "client-profile": _profile(config, config.profile_of(kafka) if kafka else None),
        "offsets-topic": kafka.offsets_topic if kafka else "",
        "start-latest": kafka.start_latest if kafka else False,
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
    return answer | _other_keys(profile, but=answer.keys() | {"iam"}) | ({"iam": _iam(iam)} if iam else {})


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
    return answer | _other_keys(sasl, but=answer.keys())


def _iam(iam: Iam) -> Answer:
    return {"name": iam.name} | _other_keys(iam)


def _notifier(notifier: Notifier) -> Answer:
    templates: Answer = {
        "template-open": _text(notifier.template_open),
        "template-close": _text(notifier.template_close),
        "extra": _masked(notifier.extras),
        "send-close": notifier.wants_close,
    }
    common: Answer = {
        "class-name": notifier.class_name,
        "group-allowlist": _text(notifier.group_allowlist),
        "interval": notifier.interval,
        "threshold": notifier.threshold,
    }
    # Burrow shows this boolean as text.
    tls: Answer = {"extra-ca": _text(notifier.extra_ca), "noverify": "true" if notifier.noverify else ""}
    if notifier.class_name == "http":
        is_closing = notifier.wants_close or notifier.method_close != Notifier.method_close
        http = {
            "timeout": notifier.timeout,
            "keepalive": notifier.keepalive,
            "url-open": _scheme_and_host(notifier.url_open),
            "url-close": _scheme_and_host(notifier.url_close),
            "method-open": notifier.method_open,
            "method-close": notifier.method_close if is_closing else "",
        }
        return common | http | templates | tls
    if notifier.class_name == "email":
        email = {
            "server": _text(notifier.server),
            "port": notifier.port or 0,
            "auth-type": _text(notifier.auth_type),
            "username": _text(notifier.username),
            "from": _text(notifier.from_),
            "to": _text(notifier.to),
        }
        return common | templates | email | tls
    return common | templates


def _other_keys(section: "DataclassInstance", but: Collection[str] = ()) -> Answer:
    """The keys that Burrow does not show, if the file sets them; of secrets only the names of their keys."""
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
            answer[key.name] = _masked(value)
    return answer


def _masked(secrets: Mapping[str, str]) -> Answer:
    return dict.fromkeys(sorted(secrets), _HIDDEN)


def _scheme_and_host(url: str | None) -> str:
    """The scheme and host of a URL, as the rest of it may contain a token; nothing of a URL that cannot be parsed."""
    if not url:
        return ""
    match = re.fullmatch(
        r"(https?://)(?:[^@/?#\\\s]*@)?([\w.-]+|\[[0-9a-fA-F:.]+\])(:\d+)?(?:[/?#][^@]*)?", url, re.IGNORECASE
    )
    return "".join(part or "" for part in match.groups()) if match else _HIDDEN


def _text(value: Path | str | None) -> str:
    return str(value or "")
