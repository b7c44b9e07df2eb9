"""The configuration as Burrow shows it, field by field and in its order, without secrets; and the types of that."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, get_origin, get_type_hints

from msgspec import UNSET, Struct, UnsetType, defstruct

from warren.config.general import General, Logging
from warren.config.http import HttpServer
from warren.config.kafka import ClientProfile, Cluster, Consumer, ZooKeeperConsumer
from warren.config.load import Config
from warren.config.notifiers import Notifier, ZooKeeper
from warren.config.pipeline import Evaluator, Storage
from warren.config.section import keys_of
from warren.config.security import Iam, Sasl, Tls
from warren.errors import RequestError
from warren.web.api import Api
from warren.web.go_json import dumps
from warren.web.http import HOST, Request, RequestInfo, Response, success

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Answer = dict[str, object]
Module = Storage | Evaluator | Cluster | Consumer | ZooKeeperConsumer | Notifier

_HIDDEN = "*****"
_KAFKA_VERSION = "2.8.0"
"""Burrow's default."""
_NO_ZOOKEEPER: Answer = {"servers": None, "timeout": 0, "root-path": ""}
_EVERY_NOTIFIER = "class_name group_allowlist interval threshold"
_TEMPLATES = "template_open template_close extra send_close"
_BURROW_FIELDS = {
    General: "pidfile stdout_logfile access_control_allow_origin",
    Logging: "filename max_size max_backups max_age use_local_time use_compression level",
    ZooKeeper: "servers timeout root_path",
    HttpServer: "address tls timeout",
    Tls: "name noverify certfile keyfile cafile",
    Sasl: "name handshake_first username",
    Iam: "name",
    ClientProfile: "name client_id kafka_version tls sasl",
    Storage: "class_name intervals min_distance group_allowlist expire_group",
    Evaluator: "class_name expire_cache",
    Cluster: "class_name servers client_profile topic_refresh offset_refresh",
    Consumer: "class_name cluster servers group_allowlist zookeeper_path zookeeper_timeout client_profile "
    "offsets_topic start_latest",
    Notifier: f"{_EVERY_NOTIFIER} {_TEMPLATES}",
}
"""Burrow's fields of each section, in its order and named as attributes."""
_NOTIFIER_FIELDS = {
    "http": f"{_EVERY_NOTIFIER} timeout keepalive url_open url_close method_open method_close {_TEMPLATES} "
    "extra_ca noverify",
    "email": f"{_EVERY_NOTIFIER} {_TEMPLATES} server port auth_type username from_ to extra_ca noverify",
}
"""Burrow's fields of a notifier, for the classes that have more than every notifier."""


def _key(attribute: str) -> str:
    """The key of an attribute."""
    return attribute.rstrip("_").replace("_", "-")


def _answer(section: "type[DataclassInstance]", *, has_others: bool = True, **typed: Any) -> type[Struct]:  # noqa: ANN401
    """The type of a section's answer: Burrow's fields, and optionally all other keys that are not secret.

    The types of Burrow's fields are those of the section, unless they are given.
    """
    hints = get_type_hints(section)
    types = {name: typed.pop(name, _shown(hints.get(name, str))) for name in _BURROW_FIELDS[section].split()} | typed
    for key in keys_of(section).values() if has_others else ():
        hint = hints[key.attribute]
        is_table = get_origin(hint) is Mapping
        if not key.check.is_secret or is_table:
            shown = str if hint in _PATHS else Mapping[str, str] if is_table else hint
            types.setdefault(key.attribute, shown | UnsetType)
    may_be_unset = {name: UnsetType in getattr(hint, "__args__", ()) for name, hint in types.items()}
    fields = [(name, hint, UNSET) if may_be_unset[name] else (name, hint) for name, hint in types.items()]
    return defstruct(f"{section.__name__}Config", fields, kw_only=True, rename=_key)


_PATHS = (Path, Path | None)


def _shown(hint: Any) -> Any:  # noqa: ANN401
    """The type of a value as Burrow shows it: a text that is missing is empty."""
    return str if hint in (*_PATHS, str | None, ClassVar[str]) else hint


GENERAL = _answer(General, has_others=False)
LOGGING = _answer(Logging, has_others=False, max_size=int, max_backups=int, max_age=int, use_local_time=bool)
ZOOKEEPER = _answer(ZooKeeper, has_others=False, servers=list[str] | None)
HTTP_SERVER = _answer(HttpServer, has_others=False)
_PROFILE = _answer(ClientProfile, tls=_answer(Tls) | None, sasl=_answer(Sasl) | None, iam=_answer(Iam) | UnsetType)
# Burrow shows the switch `noverify` as text.
_NOTIFIER = _answer(
    Notifier, extra=dict[str, str], send_close=bool, url_open=str | UnsetType, url_close=str | UnsetType,
    noverify=bool | str | UnsetType,
)  # fmt: skip

MODULES = {
    "storage": _answer(Storage),
    "evaluator": _answer(Evaluator),
    "cluster": _answer(Cluster, client_profile=_PROFILE),
    "consumer": _answer(Consumer, zookeeper_timeout=int, client_profile=_PROFILE),
    "notifier": _NOTIFIER,
}
"""The answer about one section, by the kind of the section."""


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
    envelope = {"error": False, "message": message, "request": RequestInfo(request.path, HOST)}
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
    logging = config.logging
    return {
        "general": _fields(config.general),
        "logging": _fields(
            logging,
            max_size=logging.maxsize,
            max_backups=logging.maxbackups,
            max_age=logging.maxage,
            use_local_time=logging.use_localtime,
        ),
        "zookeeper": _fields(config.zookeeper) if config.zookeeper else _NO_ZOOKEEPER,
        "httpserver": {name: _fields(server) for name, server in sorted(config.listeners.items())},
    }


def module_names(config: Config, kind: str) -> list[str]:
    """The names of the modules of a kind: storage, evaluator, cluster, consumer or notifier."""
    return sorted(_modules(config, kind))


def module_detail(config: Config, kind: str, name: str) -> Answer | None:
    """The fields of a module; None if there is none of that name."""
    match _modules(config, kind).get(name):
        case None:
            return None
        case Cluster() as cluster:
            return _section(cluster, client_profile=_profile(config, config.profile_of(cluster)))
        case Consumer() as consumer:
            profile = _profile(config, config.profile_of(consumer))
            return _section(consumer, zookeeper_path="", zookeeper_timeout=0, client_profile=profile)
        case ZooKeeperConsumer() as consumer:
            none = {"client_profile": _profile(config, None), "offsets_topic": "", "start_latest": False}
            return _section(consumer, _BURROW_FIELDS[Consumer], **none)
        case Notifier() as notifier:
            return _notifier(notifier)
        case module:
            return _section(module)


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


def _profile(config: Config, profile: ClientProfile | None) -> Answer:
    if profile is None:
        return {"name": "", "client-id": "", "kafka-version": "", "tls": None, "sasl": None}
    tls, sasl = config.tls.get(profile.tls or ""), config.sasl.get(profile.sasl or "")
    answer = _section(profile, kafka_version=profile.kafka_version or _KAFKA_VERSION)
    answer |= {"tls": _section(tls) if tls else None, "sasl": _section(sasl) if sasl else None}
    return answer | ({"iam": _section(config.iam[profile.iam])} if profile.iam else {})


def _notifier(notifier: Notifier) -> Answer:
    is_closing = notifier.wants_close or notifier.method_close != Notifier.method_close
    answer = _section(
        notifier,
        _NOTIFIER_FIELDS.get(notifier.class_name),
        extra=_masked(notifier.extras),
        send_close=notifier.wants_close,
        url_open=_scheme_and_host(notifier.url_open),
        url_close=_scheme_and_host(notifier.url_close),
        method_close=notifier.method_close if is_closing else "",
        port=notifier.port or 0,
        # Burrow shows this boolean as text.
        noverify="true" if notifier.noverify else "",
    )
    answer.pop("extras", None)
    return answer


def _section(section: "DataclassInstance", names: str | None = None, **given: object) -> Answer:
    """Burrow's fields of a section, then the other keys that the file sets; of secrets only the names of their keys."""
    answer = _fields(section, names, **given)
    for key in keys_of(type(section)).values():
        value = getattr(section, key.attribute)
        is_shown = not key.check.is_secret or isinstance(value, Mapping)
        # A default that is no attribute of the class is an empty mapping.
        if is_shown and value != getattr(type(section), key.attribute, {}):
            answer.setdefault(key.name, _masked(value) if key.check.is_secret else _value(value))
    return answer


def _fields(section: "DataclassInstance", names: str | None = None, **given: object) -> Answer:
    """Burrow's fields of a section, or those of these names: given, or as the section has them."""
    attributes = (names or _BURROW_FIELDS[type(section)]).split()
    return {_key(name): given[name] if name in given else _value(getattr(section, name)) for name in attributes}


def _value(value: object) -> object:
    """A value as Burrow shows it: a missing text is empty."""
    if value is None or isinstance(value, Path):
        return str(value or "")
    return list(value) if isinstance(value, tuple) else value


def _masked(secrets: Mapping[str, object]) -> Answer:
    return dict.fromkeys(sorted(secrets), _HIDDEN)


def _scheme_and_host(url: str | None) -> str:
    """The scheme and host of a URL, as the rest of it may contain a token; nothing of a URL that cannot be parsed."""
    if not url:
        return ""
    match = re.fullmatch(
        r"(https?://)(?:[^@/?#\\\s]*@)?([\w.-]+|\[[0-9a-fA-F:.]+\])(:\d+)?(?:[/?#][^@]*)?", url, re.IGNORECASE
    )
    return "".join(part or "" for part in match.groups()) if match else _HIDDEN
