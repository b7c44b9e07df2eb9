"""What differs between two configurations, and which of it can change while Warren runs."""

from collections.abc import Mapping
from dataclasses import fields, replace

from warren.config.load import Config

_KINDS = {
    "clusters": "cluster",
    "consumers": "consumer",
    "zookeeper_consumers": "consumer",
    "client_profiles": "client-profile",
    "http_servers": "httpserver",
    "notifiers": "notifier",
    "notifier_lock": "notifier-lock",
    "sinks": "sink",
}
"""The kinds of sections, for attributes that have another name."""

_NEEDS_RESTART = {
    "general": ("pidfile", "stdout_logfile"),
    "logging": ("filename", "maxsize", "maxbackups", "maxage", "use_localtime", "use_compression"),
    "pipeline": ("master", "spark_conf", "data_dir", "driver_memory"),
}
"""The keys that are used at the start only, by section."""
_FIRST_START = {"pipeline": ("buckets",)}
"""The keys that are used only when a data directory is created."""


def changed_sections(before: Config, after: Config) -> list[str]:
    """Every section that was added, removed or changed, in the order of the configuration; never its values."""
    changes = []
    for attribute in fields(Config):
        kind = _KINDS.get(attribute.name, attribute.name)
        was, now = getattr(before, attribute.name), getattr(after, attribute.name)
        if isinstance(now, Mapping):
            sections = {f"[{kind}.{name}]": (was.get(name), now.get(name)) for name in {**was, **now}}
        elif isinstance(now, tuple):
            sections = {"[[route]]": (was, now)}
        else:
            name = getattr(now or was, "name", "")
            sections = {f"[{kind}.{name}]" if name else f"[{kind}]": (was, now)}
        changes += [f"{title} {_change(*pair)}" for title, pair in sections.items() if pair[0] != pair[1]]
    return changes


def _change(before: object, after: object) -> str:
    return "added" if before is None else "removed" if after is None else "changed"


def with_fixed_keys(running: Config, wanted: Config) -> tuple[Config, list[str]]:
    """What is wanted as far as it can change without a restart, and each key that keeps its value, with the reason."""
    reasons = []
    for keys_of, reason in (
        (_NEEDS_RESTART, "needs a restart; the value from before stays in use"),
        (_FIRST_START, "is used only for a new data directory"),
    ):
        for kind, names in keys_of.items():
            own, other = getattr(running, kind), getattr(wanted, kind)
            kept = {name: getattr(own, name) for name in names if getattr(own, name) != getattr(other, name)}
            wanted = replace(wanted, **{kind: replace(other, **kept)})
            reasons += [f"[{kind}] {name.replace('_', '-')} {reason}" for name in kept]
    if wanted.uses_iam and not running.uses_iam:
        reasons.append(
            "the first [iam.NAME] in use needs a restart: Spark's JVM loads Amazon's login only at its start"
        )
    return wanted, reasons
