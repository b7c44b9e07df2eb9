"""The configuration as Burrow shows it, field by field and in its order, without secrets."""

import re
from collections.abc import Collection, Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import TYPE_CHECKING

from warren.config.kafka import ClientProfile, Cluster, Consumer, ZooKeeperConsumer
from warren.config.load import Config
from warren.config.notifiers import Notifier
from warren.config.pipeline import Evaluator, Storage
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
_NO_ZOOKEEPER: Answer = {"servers": None, "timeout": 0, "root-path": ""}


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
    logging, zookeeper = config.logging, config.zookeeper
    return {
        "general": _fields(config.general, "pidfile stdout_logfile access_control_allow_origin"),
        "logging": {
            "filename": _value(logging.filename),
            "max-size": logging.maxsize,
            "max-backups": logging.maxbackups,
            "max-age": logging.maxage,
            "use-local-time": logging.use_localtime,
            "use-compression": logging.use_compression,
            "level": logging.level,
        },
        "zookeeper": _fields(zookeeper, "servers timeout root_path") if zookeeper else dict(_NO_ZOOKEEPER),
        "httpserver": {
            name: _fields(server, "address tls timeout") for name, server in sorted(config.listeners.items())
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
            return _fields(module, "class_name intervals min_distance group_allowlist expire_group")
        case Evaluator():
            return _fields(module, "class_name expire_cache")
        case Cluster():
            profile: Answer = {"client-profile": _profile(config, config.profile_of(module))}
            return _fields(module, "class_name servers") | profile | _fields(module, "topic_refresh offset_refresh")
        case Notifier():
            return _notifier(module)
        case _:
            return _consumer(config, module)


def _consumer(config: Config, consumer: Consumer | ZooKeeperConsumer) -> Answer:
    answer = _fields(consumer, "class_name cluster servers group_allowlist")
    if isinstance(consumer, ZooKeeperConsumer):
        answer |= _fields(consumer, "zookeeper_path zookeeper_timeout")
        return answer | {"client-profile": _profile(config, None), "offsets-topic": "", "start-latest": False}
    answer |= {"zookeeper-path": "", "zookeeper-timeout": 0}
    answer |= {"client-profile": _profile(config, config.profile_of(consumer))}
    return answer | _fields(consumer, "offsets_topic start_latest")


def _profile(config: Config, profile: ClientProfile | None) -> Answer:
    if profile is None:
        return {"name": "", "client-id": "", "kafka-version": "", "tls": None, "sasl": None}
    tls, sasl = config.tls.get(profile.tls or ""), config.sasl.get(profile.sasl or "")
    iam = config.iam.get(profile.iam or "")
    answer = _fields(profile, "name client_id") | {
        "kafka-version": profile.kafka_version or _KAFKA_VERSION,
        "tls": _fields(tls, "name noverify certfile keyfile cafile") if tls else None,
        "sasl": _section(sasl, "name handshake_first username") if sasl else None,
    }
    answer |= _other_keys(profile, but=answer.keys() | {"iam"})
    return answer | ({"iam": _section(iam, "name")} if iam else {})


def _notifier(notifier: Notifier) -> Answer:
    common = _fields(notifier, "class_name group_allowlist interval threshold")
    templates: Answer = _fields(notifier, "template_open template_close") | {
        "extra": _masked(notifier.extras),
        "send-close": notifier.wants_close,
    }
    # Burrow shows this boolean as text.
    tls: Answer = {"extra-ca": _value(notifier.extra_ca), "noverify": "true" if notifier.noverify else ""}
    if notifier.class_name == "http":
        is_closing = notifier.wants_close or notifier.method_close != Notifier.method_close
        http: Answer = _fields(notifier, "timeout keepalive") | {
            "url-open": _scheme_and_host(notifier.url_open),
            "url-close": _scheme_and_host(notifier.url_close),
            "method-open": notifier.method_open,
            "method-close": notifier.method_close if is_closing else "",
        }
        return common | http | templates | tls
    if notifier.class_name == "email":
        email = _fields(notifier, "server") | {"port": notifier.port or 0}
        email |= _fields(notifier, "auth_type username") | {"from": _value(notifier.from_)} | _fields(notifier, "to")
        return common | templates | email | tls
    return common | templates


def _section(section: "DataclassInstance", names: str) -> Answer:
    """Burrow's fields of a section, then the other keys that the file sets."""
    answer = _fields(section, names)
    return answer | _other_keys(section, but=answer.keys())


def _fields(section: "DataclassInstance", names: str) -> Answer:
    """Fields of a section, by the names of its attributes."""
    return {name.replace("_", "-"): _value(getattr(section, name)) for name in names.split()}


def _value(value: object) -> object:
    """A value as Burrow shows it: a missing text is empty."""
    if value is None or isinstance(value, Path):
        return str(value or "")
    return list(value) if isinstance(value, tuple) else value


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
        if not key.check.is_secret:
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
