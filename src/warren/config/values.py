"""What a key of burrow.toml may hold: how to say it, and how to read and check a value."""

import ipaddress
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from warren.domain.matching import MAX_PATTERN_CHARS, glob_error, regex_error


@dataclass(frozen=True)
class Check:
    """What a key may hold, in words, and the reading of its value, which raises ValueError for anything else."""

    allowed: str
    read: Callable[[object], object]
    from_text: Callable[[str], object] = str
    """Converts an environment variable; text that makes no sense stays text, and `read` refuses it."""
    refers_to: str | None = None
    """The kind of section that the value names: `cluster` for the NAME of a `[cluster.NAME]`."""
    must_exist: bool = False
    """Whether the value is a file that Warren reads."""


@dataclass(frozen=True)
class Formerly:
    """An older name of a key that is accepted too."""

    name: str


@dataclass(frozen=True)
class Secret:
    """Marks a value that is never shown."""


@dataclass(frozen=True)
class NoEffect:
    """Marks a key of Burrow's that is accepted and changes nothing; says why."""

    why: str


def whole(minimum: int, maximum: int, unit: str = "") -> Check:
    """A whole number within bounds."""

    def read(value: object) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not minimum <= value <= maximum:
            raise ValueError
        return value

    return Check(f"a whole number{unit and ' of ' + unit} from {minimum} to {maximum}", read, _number_from)


def number(minimum: float, maximum: float, unit: str = "") -> Check:
    """A number within bounds, with or without a fraction."""

    def read(value: object) -> float:
        if not isinstance(value, int | float) or isinstance(value, bool) or not minimum <= value <= maximum:
            raise ValueError
        return float(value)

    return Check(f"a number{unit and ' of ' + unit} from {minimum:g} to {maximum:g}", read, _number_from)


def one_of(*words: str) -> Check:
    """One of some words, in upper or lower case."""

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


def list_of(allowed: str, item_error: Callable[[str], str | None], *, may_be_empty: bool = False) -> Check:
    """A list of strings; `item_error` says what is wrong with one of them."""

    def read(value: object) -> tuple[str, ...]:
        if not isinstance(value, list) or not (value or may_be_empty):
            raise ValueError
        for item in value:
            error = item_error(item) if isinstance(item, str) else "is not a string"
            if error is not None:
                raise ValueError(f"{item!r} {error}")
        return tuple(value)

    return Check(allowed, read, lambda given: given.replace(",", " ").split())


def name_of(kind: str) -> Check:
    """The name of another section."""
    # Burrow turns on TLS or SASL when the key is there at all, so "" must not be taken for unset.
    return Check(f"the name of a [{kind}.NAME] section", _read_string, refers_to=kind)


def names_of(kind: str) -> Check:
    """A list of names of other sections."""
    allowed = f"a list of names of [{kind}.NAME] sections"
    names = list_of(allowed, lambda name: None if name else "is empty")
    return Check(allowed, names.read, names.from_text, refers_to=kind)


def host_and_port(address: str) -> tuple[str, int]:
    """The two parts of an address to listen on, or ValueError; no host is "", no port is 0."""
    match = re.fullmatch(r"(?:\[([0-9a-fA-F:.]+)\]|([\w.-]*))(?::(\d{0,5}))?", address, re.ASCII)
    if match is None or int(match[3] or 0) > 65535:
        raise ValueError
    if match[1]:
        return str(ipaddress.IPv6Address(match[1])), int(match[3] or 0)
    # A host of numbers is an address; "8000" is most likely a port whose colon was forgotten.
    if re.fullmatch(r"[\d.]+", match[2]):
        ipaddress.IPv4Address(match[2])
    return match[2].lower(), int(match[3] or 0)


def _number_from(given: str) -> object:
    for convert in (int, float):
        try:
            return convert(given)
        except ValueError:
            continue
    return given


def _switch_from(given: str) -> object:
    return {"true": True, "t": True, "1": True, "false": False, "f": False, "0": False}.get(given.lower(), given)


def _read_switch(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError
    return value


def _read_string(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError
    return value


def _read_pattern(value: object) -> str:
    pattern = _read_string(value)
    if not 0 < len(pattern) <= MAX_PATTERN_CHARS:
        raise ValueError
    return pattern


def _read_regex(value: object) -> str | None:
    error = regex_error(_read_string(value))
    if error is not None:
        raise ValueError(error)
    return _read_string(value) or None


def _read_path(value: object) -> Path:
    path = _read_string(value)
    if not path or not path.isprintable():
        raise ValueError
    return Path(path)


def _read_address(value: object) -> str:
    address = _read_string(value)
    try:
        host_and_port(address)
    except ValueError:
        raise ValueError from None
    return address


def _read_duration(value: object) -> float:
    if isinstance(value, str):
        match = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|m|h)", value)
        if match is None:
            raise ValueError
        value = float(match[1]) * {"ms": 0.001, "s": 1, "m": 60, "h": 3600}[match[2]]
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value <= 86_400:
        raise ValueError
    return float(value)


def _read_texts(value: object) -> dict[str, str]:
    if not isinstance(value, dict):
        raise ValueError
    return {name: _scalar_text(name, item) for name, item in value.items()}


def _read_spark_conf(value: object) -> dict[str, str]:
    if not isinstance(value, dict):
        raise ValueError
    settings: dict[str, str] = {}
    for name, setting in _flat(value):
        own_key = {"spark.master": "master", "spark.driver.memory": "driver-memory"}.get(name)
        if own_key is not None:
            raise ValueError(f"{name} is set by the key {own_key}")
        if not name.startswith("spark."):
            raise ValueError(f"{name} is not a Spark setting")
        if name in settings:
            raise ValueError(f"{name} is given twice")
        settings[name] = _scalar_text(name, setting)
    return settings


def _flat(table: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, object]]:
    # TOML reads spark.sql.x = 1 as tables within tables; to Spark the dots are part of the name.
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


def _scalar_text(name: str, value: object) -> str:
    if not isinstance(value, str | int | float) or (isinstance(value, float) and not math.isfinite(value)):
        raise ValueError(f"{name} is neither a string, a number nor a boolean")
    return str(value).lower() if isinstance(value, bool) else str(value)


def _server_error(server: str) -> str | None:
    match = re.fullmatch(r"(?:[\w.-]+|\[[0-9a-fA-F:.]+\]):(\d{1,5})", server, re.ASCII)
    return None if match is not None and 1 <= int(match[1]) <= 65535 else "is not host:port"


def _package_error(package: str) -> str | None:
    return None if re.fullmatch(r"[^:\s]+:[^:\s]+:[^:\s]+", package) else "is not organisation:module:version"


SWITCH = Check("true or false", _read_switch, _switch_from)
DURATION = Check('seconds, or a text such as "10s", up to a day', _read_duration, _number_from)
PATTERN = Check("a name, in which * stands for any characters and ? for any one", _read_pattern)
REGEX = Check('a regular expression in RE2 syntax ("" for none)', _read_regex)
ANY_TEXT = text("a string", r".*")
TOPIC = text("a topic name (letters, digits, '.', '_' and '-')", r"[A-Za-z0-9._-]{1,249}")
SPARK_MASTER = text(
    "a Spark master such as local[*], yarn, spark://HOST:PORT or k8s://URL",
    r"local(\[(\*|[1-9]\d*)(,\s*\d+)?\])?|local-cluster\[\d+,\s*\d+,\s*\d+\]|yarn|(spark|k8s)://\S+",
)
SPARK_CONF = Check("a table of Spark settings, spark.NAME = VALUE", _read_spark_conf)
JVM_SIZE = text('a size for the JVM such as "4g"', r"[1-9]\d*[kmgtKMGT]")
TEXTS = Check("a table of strings", _read_texts)
FILE = Check("the path of a file", _read_path)
SECONDS = whole(1, 1_000_000_000, "seconds")
SECONDS_OR_0 = whole(0, 1_000_000_000, "seconds")
TIMEOUT = whole(1, 300, "seconds")

Switch = Annotated[bool, SWITCH]
Duration = Annotated[float, DURATION]
Servers = Annotated[tuple[str, ...], list_of('a list of "host:port" strings, at least one', _server_error)]
Packages = Annotated[tuple[str, ...], list_of('a list of "organisation:module:version"', _package_error)]
Globs = Annotated[tuple[str, ...], list_of("a list of globs as in telegraf", glob_error, may_be_empty=True)]
Address = Annotated[
    str, Check('an address to listen on such as ":8000", "127.0.0.1:8000" or "[::1]:8000"', _read_address)
]
OptionalText = Annotated[str | None, ANY_TEXT]
Password = Annotated[str | None, ANY_TEXT, Secret()]
InputFile = Annotated[Path | None, Check("the path of a file", _read_path, must_exist=True)]
Allowlist = Annotated[str | None, REGEX, Formerly("group-whitelist")]
Denylist = Annotated[str | None, REGEX, Formerly("group-blacklist")]
