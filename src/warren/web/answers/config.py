"""The types of the answers about the configuration: Burrow's fields, and the other keys that the file sets."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, get_type_hints

from msgspec import UNSET, Struct, UnsetType, defstruct, field

from warren.config.general import General, Logging
from warren.config.http import HttpServer
from warren.config.kafka import ClientProfile, Cluster, Consumer
from warren.config.notifiers import Notifier, ZooKeeper
from warren.config.pipeline import Evaluator, Storage
from warren.config.section import keys_of
from warren.config.security import Iam, Sasl, Tls

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


def _answer(section: "type[DataclassInstance]", burrows: str, *, has_others: bool = True, **typed: Any) -> type[Struct]:  # noqa: ANN401
    """The type of a section's answer: Burrow's fields, and optionally all other keys that are not secret.

    The types of Burrow's fields are those of the section, unless they are given.
    """
    hints = get_type_hints(section)
    fields = {name: (typed.get(name, _shown(hints.get(name, str))), name.replace("_", "-")) for name in burrows.split()}
    fields |= {name: (hint, name.replace("_", "-")) for name, hint in typed.items()}
    for key in keys_of(section).values() if has_others else ():
        hint = hints[key.attribute]
        is_hidden = key.check.is_secret and _shown(hint) is str
        if not is_hidden:
            fields.setdefault(key.attribute, (str | UnsetType if hint in _PATHS else hint | UnsetType, key.name))
    declared = [
        (name, hint, field(name=key, default=UNSET) if UnsetType in getattr(hint, "__args__", ()) else field(name=key))
        for name, (hint, key) in fields.items()
    ]
    return defstruct(f"{section.__name__}Config", declared, kw_only=True)


_PATHS = (Path, Path | None)


def _shown(hint: Any) -> Any:  # noqa: ANN401
    """The type of a value as Burrow shows it: a text that is missing is empty."""
    return str if hint in (*_PATHS, str | None, ClassVar[str]) else hint


GENERAL = _answer(General, "pidfile stdout_logfile access_control_allow_origin", has_others=False)
LOGGING = _answer(
    Logging, "filename use_local_time use_compression level", has_others=False,
    max_size=int, max_backups=int, max_age=int, use_local_time=bool,
)  # fmt: skip
ZOOKEEPER = _answer(ZooKeeper, "timeout root_path", has_others=False, servers=list[str] | None)
HTTP_SERVER = _answer(HttpServer, "address tls timeout", has_others=False)
_PROFILE = _answer(
    ClientProfile,
    "name client_id kafka_version",
    tls=_answer(Tls, "name noverify certfile keyfile cafile") | None,
    sasl=_answer(Sasl, "name handshake_first username") | None,
    iam=_answer(Iam, "name") | UnsetType,
)

MODULES = {
    "storage": _answer(Storage, "class_name intervals min_distance group_allowlist expire_group"),
    "evaluator": _answer(Evaluator, "class_name expire_cache"),
    "cluster": _answer(Cluster, "class_name servers topic_refresh offset_refresh", client_profile=_PROFILE),
    "consumer": _answer(
        Consumer,
        "class_name cluster servers group_allowlist zookeeper_path offsets_topic start_latest",
        zookeeper_timeout=int,
        client_profile=_PROFILE,
    ),
    "notifier": _answer(
        Notifier,
        "class_name group_allowlist interval threshold template_open template_close",
        extra=dict[str, str],
        send_close=bool,
        url_open=str | UnsetType,
        url_close=str | UnsetType,
        # Burrow shows this switch as text.
        noverify=bool | str | UnsetType,
    ),
}
"""The answer about one section, by the kind of the section."""
