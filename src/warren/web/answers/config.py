"""The types of the answers about the configuration: Burrow's fields, and the other keys that the file sets."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

from msgspec import UNSET, Struct, UnsetType, defstruct, field

from warren.config import ClientProfile, Cluster, Consumer, Evaluator, Iam, Notifier, Sasl, Storage
from warren.config.section import keys_of

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


def _answer(name: str, section: "type[DataclassInstance] | None" = None, /, **shown: Any) -> type[Struct]:  # noqa: ANN401
    """The type of an answer: Burrow's fields, then the section's other keys, which are optional."""
    fields = {attribute: (hint, attribute.replace("_", "-")) for attribute, hint in shown.items()}
    if section:
        hints = get_type_hints(section)
        for key in keys_of(section).values():
            hint = str if hints[key.attribute] in (Path, Path | None) else hints[key.attribute]
            is_hidden = key.is_secret and hint == str | None
            if not is_hidden:
                fields.setdefault(key.attribute, (hint | UnsetType, key.name))
    declared = [
        (attribute, hint, field(name=key, default=UNSET) if _is_optional(hint) else field(name=key))
        for attribute, (hint, key) in fields.items()
    ]
    return defstruct(name, declared, kw_only=True)


def _is_optional(hint: Any) -> bool:  # noqa: ANN401
    return UnsetType in getattr(hint, "__args__", ())


GENERAL = _answer("GeneralConfig", pidfile=str, stdout_logfile=str, access_control_allow_origin=str)
LOGGING = _answer(
    "LoggingConfig",
    filename=str,
    max_size=int,
    max_backups=int,
    max_age=int,
    use_local_time=bool,
    use_compression=bool,
    level=str,
)
ZOOKEEPER = _answer("ZooKeeperConfig", servers=list[str] | None, timeout=int, root_path=str)
HTTP_SERVER = _answer("HttpServerConfig", address=str, tls=str, timeout=int)
_TLS = _answer("TlsConfig", name=str, noverify=bool, certfile=str, keyfile=str, cafile=str)
_SASL = _answer("SaslConfig", Sasl, name=str, handshake_first=bool, username=str)
_PROFILE = _answer(
    "ClientProfileConfig",
    ClientProfile,
    name=str,
    client_id=str,
    kafka_version=str,
    tls=_TLS | None,
    sasl=_SASL | None,
    iam=_answer("IamConfig", Iam, name=str) | UnsetType,
)

MODULES = {
    "storage": _answer(
        "StorageConfig",
        Storage,
        class_name=str,
        intervals=int,
        min_distance=int,
        group_allowlist=str,
        expire_group=int,
    ),
    "evaluator": _answer("EvaluatorConfig", Evaluator, class_name=str, expire_cache=int),
    "cluster": _answer(
        "ClusterConfig",
        Cluster,
        class_name=str,
        servers=list[str],
        client_profile=_PROFILE,
        topic_refresh=int,
        offset_refresh=int,
    ),
    "consumer": _answer(
        "ConsumerConfig",
        Consumer,
        class_name=str,
        cluster=str,
        servers=list[str],
        group_allowlist=str,
        zookeeper_path=str,
        zookeeper_timeout=int,
        client_profile=_PROFILE,
        offsets_topic=str,
        start_latest=bool,
    ),
    "notifier": _answer(
        "NotifierConfig",
        Notifier,
        class_name=str,
        group_allowlist=str,
        interval=int,
        threshold=int,
        template_open=str,
        template_close=str,
        extra=dict[str, str],
        send_close=bool,
        url_open=str | UnsetType,
        url_close=str | UnsetType,
        # Burrow shows this switch as text.
        noverify=bool | str | UnsetType,
    ),
}
"""The answer about one section, by the kind of the section."""
