"""What a key of burrow.toml may hold: the words for it, and the reading of its value."""

import ipaddress
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from warren.domain.matching import MAX_PATTERN_CHARS, glob_error, regex_error

_OWN_SPARK_KEYS = {"spark.master": "master", "spark.driver.memory": "driver-memory"}


@dataclass(frozen=True)
class Check:
    """What a key may hold, in words, and the reading of its value, which raises ValueError for any other."""

    allowed: str
    read: Callable[[object], object]
    from_text: Callable[[str], object] = str
    """A value from the environment, where all is text; one that makes no sense stays text and is refused by `read`."""


@dataclass(frozen=True)
class Formerly:
    """An older name of a key that is taken as well."""

    name: str


@dataclass(frozen=True)
class Secret:
    """A value that is never shown, whoever asks."""


@dataclass(frozen=True)
class NoEffect:
    """Why a key of Burrow's is accepted and changes nothing here."""

    why: str


def whole(least: int, most: int, unit: str = "") -> Check:
    """A whole number within bounds."""

    def read(value: object) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise ValueError
        return value

    return Check(f"a whole number{unit and ' of ' + unit} from {least} to {most}", read, _number_from)


def number(least: float, most: float, unit: str = "") -> Check:
    """A number within bounds, with or without a fraction."""

    def read(value: object) -> float:
        if not isinstance(value, int | float) or isinstance(value, bool) or not least <= value <= most:
            raise ValueError
        return float(value)

    return Check(f"a number{unit and ' of ' + unit} from {least:g} to {most:g}", read, _number_from)


def one_of(*words: str) -> Check:
    """One of some words, in any case."""

    def read(value: object) -> str:
        if not isinstance(value, str) or value.lower() not in words:
            raise ValueError
        return value.lower()

    return Check(f"one of {', '.join(words)}", read)


def text(allowed: str = "a string that is not empty", pattern: str = r".+") -> Check:
    """A string of printable characters that matches a pattern as a whole."""

    def read(value: object) -> str:
        if not isinstance(value, str) or not value.isprintable() or not re.fullmatch(pattern, value):
            raise ValueError
        return value

    return Check(allowed, read)


def host_and_port(address: str) -> tuple[str, int]:
    """The two parts of an address to listen on, ValueError for no address; no host is "", no port is 0."""
    found = re.fullmatch(r"(?:\[([0-9a-fA-F:.]+)\]|([\w.-]*))(?::(\d{0,5}))?", address, re.ASCII)
    if found is None or int(found[3] or 0) > 65535:
        raise ValueError
    if found[1]:
        return str(ipaddress.IPv6Address(found[1])), int(found[3] or 0)
    # A host of numbers is an address; "8000" is most likely a port whose colon was forgotten.
    if re.fullmatch(r"[\d.]+", found[2]):
        ipaddress.IPv4Address(found[2])
    return found[2].lower(), int(found[3] or 0)


def _number_from(said: str) -> object:
    try:
        return int(said)
    except ValueError:
        pass
    try:
        return float(said)
    except ValueError:
        return said


def _switch_from(said: str) -> object:
    return {"true": True, "t": True, "1": True, "false": False, "f": False, "0": False}.get(said.lower(), said)


def _list_from(said: str) -> list[str]:
    return said.replace(",", " ").split()


def _read_switch(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError
    return value


def _read_servers(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not value:
        raise ValueError
    for server in value:
        if not _is_server(server):
            raise ValueError(f"{server!r} is none")
    return tuple(value)


def _read_names(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not value or not all(isinstance(one, str) and one for one in value):
        raise ValueError
    return tuple(value)


def _read_packages(value: object) -> tuple[str, ...]:
    packages = _read_names(value)
    if not all(re.fullmatch(r"[^:\s]+:[^:\s]+:[^:\s]+", one) for one in packages):
        raise ValueError
    return packages


def _read_pattern(value: object) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= MAX_PATTERN_CHARS:
        raise ValueError
    return value


def _read_globs(value: object) -> tuple[str, ...]:
    globs = _read_names(value) if value else ()
    for glob in globs:
        mistake = glob_error(glob)
        if mistake is not None:
            raise ValueError(f"{glob!r} {mistake}")
    return globs


def _read_duration(value: object) -> float:
    if isinstance(value, str):
        found = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|m|h)", value)
        if found is None:
            raise ValueError
        value = float(found[1]) * {"ms": 0.001, "s": 1, "m": 60, "h": 3600}[found[2]]
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value <= 86_400:
        raise ValueError
    return float(value)


def _read_texts(value: object) -> dict[str, str]:
    if not isinstance(value, dict):
        raise ValueError
    for name, one in value.items():
        if not isinstance(one, str | int | float):
            raise ValueError(f"{name} is neither a string, a number nor a boolean")
    return {name: str(one).lower() if isinstance(one, bool) else str(one) for name, one in value.items()}


def _is_server(value: object) -> bool:
    found = re.fullmatch(r"(?:[\w.-]+|\[[0-9a-fA-F:.]+\]):(\d{1,5})", str(value), re.ASCII)
    return isinstance(value, str) and found is not None and 1 <= int(found[1]) <= 65535


def _read_regex(value: object) -> str | None:
    if not isinstance(value, str):
        raise ValueError
    mistake = regex_error(value)
    if mistake is not None:
        raise ValueError(mistake)
    return value or None


def _read_path(value: object) -> Path:
    if not isinstance(value, str) or not value or not value.isprintable():
        raise ValueError
    return Path(value)


def _read_address(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError
    try:
        host_and_port(value)
    except ValueError:
        raise ValueError from None
    return value


def _read_spark_conf(value: object) -> dict[str, str]:
    if not isinstance(value, dict):
        raise ValueError
    settings: dict[str, str] = {}
    for name, setting in _flat(value):
        if name in _OWN_SPARK_KEYS:
            raise ValueError(f"{name} is set by the key {_OWN_SPARK_KEYS[name]}")
        if not name.startswith("spark.") or name in settings:
            raise ValueError(f"{name} is given twice" if name in settings else f"{name} is no Spark setting")
        if isinstance(setting, bool):
            settings[name] = str(setting).lower()
        elif isinstance(setting, str | int) or (isinstance(setting, float) and math.isfinite(setting)):
            settings[name] = str(setting)
        else:
            raise ValueError(f"{name} is neither a string, a number nor a boolean")
    return settings


def _flat(table: dict[str, object], prefix: str = "") -> list[tuple[str, object]]:
    # TOML reads spark.sql.x = 1 as tables within tables; to Spark the dots are part of the name.
    pairs: list[tuple[str, object]] = []
    for name, value in table.items():
        pairs += _flat(value, f"{prefix}{name}.") if isinstance(value, dict) else [(prefix + name, value)]
    return pairs


SWITCH = Check("true or false", _read_switch, _switch_from)
SERVERS = Check('a list of "host:port" strings, at least one', _read_servers, _list_from)
NAMES = Check("a list of names, at least one", _read_names, _list_from)
PACKAGES = Check('a list of "organisation:module:version"', _read_packages, _list_from)
GLOBS = Check("a list of globs as telegraf has them", _read_globs, _list_from)
DURATION = Check('seconds, or a text such as "10s", up to a day', _read_duration, _number_from)
PATTERN = Check("a name, in which * stands for any characters and ? for any one", _read_pattern)
REGEX = Check('a regular expression in RE2 syntax ("" for none)', _read_regex)
TOPIC = text("a topic name (letters, digits, '.', '_' and '-')", r"[A-Za-z0-9._-]{1,249}")
ANY_TEXT = text("a string", r".*")
DIRECTORY = Check("a directory, seen from the one of burrow.toml", _read_path)
SPARK_CONF = Check("a table of Spark settings, spark.NAME = VALUE", _read_spark_conf)
SPARK_MASTER = text(
    "a Spark master such as local[*], yarn, spark://HOST:PORT or k8s://URL",
    r"local(\[(\*|[1-9]\d*)(,\s*\d+)?\])?|local-cluster\[\d+,\s*\d+,\s*\d+\]|yarn|(spark|k8s)://\S+",
)
JVM_SIZE = text('a size for the JVM such as "4g"', r"[1-9]\d*[kmgtKMGT]")
FILE = Check("the path of a file", _read_path)
TEXTS = Check("a table of strings", _read_texts)
ADDRESS = Check('an address to listen on such as ":8000", "127.0.0.1:8000" or "[::1]:8000"', _read_address)
URL = text("a URL, or a template of one", r"\S.*")
