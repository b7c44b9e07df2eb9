"""No key that is marked as a secret is in any answer about the configuration."""

import json
import types
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import pytest

from warren.config import Config, HttpServer, Notifier
from warren.config.kafka import ZooKeeperConsumer
from warren.config.secrets import Secret
from warren.config.section import keys_of
from warren.web.config import MODULES, main_config, module_detail, module_names

MARK = "c0ffee-secret"


def sections_of(hint: Any) -> Iterator[type]:
    """The classes of sections in the type of one of Config's attributes."""
    if is_dataclass(hint) and isinstance(hint, type):
        yield hint
    for inner in get_args(hint):
        yield from sections_of(inner)


def sections() -> dict[str, type]:
    """Every section of a configuration, by the attribute of Config that holds it."""
    return {name: cls for name, hint in get_type_hints(Config).items() for cls in sections_of(hint)}


def of_type(hint: Any, words: str) -> Any:
    """Some value of a type, with the words in it wherever there can be words."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return of_type(inner[0], words)
    if origin in (Union, types.UnionType):
        return of_type(inner[0], words)
    if hint in (int, float, bool):
        return hint(1)
    if origin is tuple:
        return (of_type(inner[0], words),)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {"key": of_type(inner[1], words)}
    return hint(words) if hint in (Path, Secret) else words


def filled(cls: type, words: str, **given: Any) -> Any:
    """A section with words of its own for every key that is no secret, and the mark for every one that is."""
    hints = get_type_hints(cls, include_extras=True)
    values = {
        key.attribute: of_type(hints[key.attribute], MARK if key.check.is_secret else words)
        for key in keys_of(cls).values()
        if key.attribute not in given
    }
    return cls(**values, **given)


def revealed(value: Any) -> str:
    if isinstance(value, Mapping):
        return " ".join(map(revealed, value.values()))
    return value.reveal() if isinstance(value, Secret) else str(value)


def full_config(url: str, notifier_class: str) -> Config:
    """A configuration whose every section is there under the name x, with every key set."""
    hints = get_type_hints(Config)
    found: dict[str, Any] = {}
    for attribute, cls in sections().items():
        given: dict[str, Any] = {"name": "x"} if any(one.name == "name" for one in fields(cls)) else {}
        if cls is Notifier:
            given |= {"class_name": notifier_class, "url_open": url, "url_close": url}
        if cls is HttpServer:
            given |= {"address": ":1"}
        section = filled(cls, "x", **given)
        # Consumers of both classes are answered for together.
        name = "zk" if cls is ZooKeeperConsumer else "x"
        found[attribute] = {name: section} if get_origin(hints[attribute]) is Mapping else section
    return Config(**found)


def answers(config: Config) -> str:
    names = [(kind, name) for kind in MODULES for name in module_names(config, kind)]
    details = [module_detail(config, kind, name) for kind, name in names]
    assert len(details) == len(MODULES) + 1, "one of each, and consumers of both classes"
    return json.dumps([main_config(config), details])


def test_the_walk_over_the_secrets_meets_them_all() -> None:
    config = full_config(MARK, "http")
    met = set()
    for attribute, cls in sections().items():
        held = getattr(config, attribute)
        section = next(iter(held.values())) if isinstance(held, Mapping) else held
        for key in (key for key in keys_of(cls).values() if key.check.is_secret):
            assert MARK in revealed(getattr(section, key.attribute))
            assert MARK not in repr(section)
            met.add((cls.__name__, key.name))
    of_notifiers = ("password", "extras", "headers", "url-open", "url-close")
    assert {("Sasl", "password"), *(("Notifier", key) for key in of_notifiers)} <= met


@pytest.mark.parametrize("notifier_class", ["http", "email", "null"])
@pytest.mark.parametrize("url", [MARK, f"https://{MARK}:{MARK}@a.b:1/{MARK}?{MARK}#{MARK}"])
def test_no_secret_is_in_any_answer(notifier_class: str, url: str) -> None:
    config = full_config(url, notifier_class)
    said = answers(config)
    assert MARK not in said
    assert '"extra": {"key": "*****"}' in said
    # The profile's own secrets can only slip through where the answer comes to its sections at all.
    assert '"sasl": {"name": "x"' in said
    assert '"iam": {"name": "x"' in said
