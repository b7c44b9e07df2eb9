"""What a key of burrow.toml may hold: how to say it, and how to read and check a value."""

import ipaddress
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import UnionType
from typing import Annotated, Any

from warren.config.secrets import Secret
from warren.domain.matching import MAX_PATTERN_CHARS, MAX_STARS, glob_error, regex_error


@dataclass(frozen=True)
class Check:
    """What a key may hold, in words, and the reading of its value."""

    allowed: str
    types: type | UnionType
    is_valid: Callable[[Any], object] = lambda _: True
    convert: Callable[[Any], object] = lambda value: value
    """Makes the value that the section has; may raise ValueError with what is wrong."""
    from_text: Callable[[str], object] = str
    """Converts an environment variable; text that makes no sense stays text, and `read` refuses it."""
    refers_to: str | None = None
    """The kind of section that the value names: `cluster` for the NAME of a `[cluster.NAME]`."""
    must_exist: bool = False
    """Whether the value is a file that Warren reads."""
    formerly: str | None = None
    """An older name of the key that is accepted too."""
    is_secret: bool = False
    """Whether the value is never shown; it may be written as `file:PATH` or with `${NAME}` (`config/secrets.py`)."""
    may_be_file: bool = True
    """Whether `file:PATH` stands for the content of a file, and is not a URI."""
    no_effect: str | None = None
    """For a key of Burrow's that is accepted and changes nothing: why."""

    def read(self, value: object) -> object:
        """The value that the section has; ValueError for what is not allowed."""
        # To Python, but not to a reader of the file, a boolean is a whole number.
        has_type = isinstance(value, self.types) and isinstance(value, bool) == (self.types is bool)
        if not has_type or not self.is_valid(value):
            raise ValueError
        return self.convert(value)


def whole(minimum: int, maximum: int, unit: str = "") -> Check:
    """A whole number within bounds."""
    allowed = f"a whole number{unit and ' of ' + unit} from {minimum} to {maximum}"
    return Check(allowed, int, lambda value: minimum <= value <= maximum, from_text=_number_from)


def number(minimum: float, maximum: float, unit: str = "") -> Check:
    """A number within bounds, with or without a fraction."""
    allowed = f"a number{unit and ' of ' + unit} from {minimum:g} to {maximum:g}"
    return Check(allowed, int | float, lambda value: minimum <= value <= maximum, float, _number_from)


def one_of(*words: str) -> Check:
    """One of some words, in upper or lower case."""
    return Check(f"one of {', '.join(words)}", str, lambda value: value.lower() in words, str.lower)


def text(allowed: str = "a string that is not empty", pattern: str = r".+") -> Check:
    """A string of printable characters that matches a pattern as a whole."""
    return Check(allowed, str, lambda value: value.isprintable() and re.fullmatch(pattern, value))


def list_of(
    allowed: str,
    item_error: Callable[[str], str | None] = lambda item: None if item else "is empty",
    *,
    may_be_empty: bool = False,
    refers_to: str | None = None,
) -> Check:
    """A list of strings; `item_error` says what is wrong with one of them."""

    def convert(items: list[object]) -> tuple[object, ...]:
        for item in items:
            error = item_error(item) if isinstance(item, str) else "is not a string"
            if error is not None:
                raise ValueError(f"{item!r} {error}")
        return tuple(items)

    words_of = re.compile(r"[^\s,]+").findall
    return Check(allowed, list, lambda items: items or may_be_empty, convert, words_of, refers_to)


def name_of(kind: str) -> Check:
    """The name of another section."""
    # Burrow turns on TLS or SASL when the key is there at all, so "" must not be taken for unset.
    return Check(f"the name of a [{kind}.NAME] section", str, refers_to=kind)


def names_of(kind: str) -> Check:
    """A list of names of other sections."""
    return list_of(f"a list of names of [{kind}.NAME] sections", refers_to=kind)


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


def _is_address(address: str) -> bool:
    try:
        return bool(host_and_port(address))
    except ValueError:
        return False


def _number_from(given: str) -> object:
    for convert in (int, float):
        try:
            return convert(given)
        except ValueError:
            continue
    return given


def _regex(pattern: str) -> str | None:
    error = regex_error(pattern)
    if error is not None:
        raise ValueError(error)
    return pattern or None


def _to_seconds(value: float | str) -> float:
    if isinstance(value, str):
        match = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|m|h)", value)
        value = float(match[1]) * {"ms": 0.001, "s": 1, "m": 60, "h": 3600}[match[2]] if match else math.nan
    if not 0 < value <= 86_400:
        raise ValueError
    return float(value)


def _to_spark_conf(table: dict[str, object]) -> dict[str, str]:
    settings: dict[str, str] = {}
    for name, setting in _flat(table):
        own_key = {"spark.master": "master", "spark.driver.memory": "driver-memory"}.get(name)
        if own_key is not None:
            raise ValueError(f"{name} is set by the key {own_key}")
        if not name.startswith("spark."):
            raise ValueError(f"{name} is not a Spark setting")
        if name in settings:
            raise ValueError(f"{name} is given twice")
        settings[name] = _scalar_text(name, setting)
    return settings


def _to_options(table: dict[str, object]) -> dict[str, Secret]:
    options: dict[str, Secret] = {}
    for name, option in _flat(table):
        if name in options:
            raise ValueError(f"{name} is given twice")
        options[name] = Secret(_scalar_text(name, option))
    return options


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


def path_of(allowed: str = "the path of a file", *, must_exist: bool = False) -> Check:
    """The path of a file or directory, which may have to exist."""
    return Check(allowed, str, lambda path: path and path.isprintable(), Path, must_exist=must_exist)


NOT_VERIFIED = "= true: certificates are not verified, so anyone on the way can pose as the server"
ANY_TEXT = text("a string", r".*")
TOPIC = text("a topic name (letters, digits, '.', '_' and '-')", r"[A-Za-z0-9._-]{1,249}")
ZNODE_PATH = text('a path that begins with /, or "" for the root', r"(/(?!\.\.?(/|$))[^/]+)*/?")
SPARK_MASTER = text(
    "a Spark master such as local[*], yarn, spark://HOST:PORT or k8s://URL",
    r"local(\[(\*|[1-9]\d*)(,\s*\d+)?\])?|local-cluster\[\d+,\s*\d+,\s*\d+\]|yarn|(spark|k8s)://\S+",
)
SPARK_CONF = Check("a table of Spark settings, spark.NAME = VALUE", dict, convert=_to_spark_conf)
# To Spark, file: begins a URI.
SECRET_SPARK_CONF = replace(SPARK_CONF, is_secret=True, may_be_file=False)
JVM_SIZE = text('a size for the JVM such as "4g"', r"[1-9]\d*[kmgtKMGT]")
_SWITCHES = {"true": True, "t": True, "1": True, "false": False, "f": False, "0": False}
SWITCH = Check("true or false", bool, from_text=lambda given: _SWITCHES.get(given.lower(), given))
TEXTS = Check("a table of strings", dict, convert=lambda table: {key: _scalar_text(key, table[key]) for key in table})
SECONDS = whole(1, 1_000_000_000, "seconds")
SECONDS_OR_0 = whole(0, 1_000_000_000, "seconds")
TIMEOUT = whole(1, 300, "seconds")
DURATION = Check(
    'seconds, or a text such as "10s", up to a day', int | float | str, convert=_to_seconds, from_text=_number_from
)
PATTERN = Check(
    f"a name, in which * stands for any characters and ? for any one, with at most {MAX_STARS} *",
    str,
    lambda pattern: 0 < len(pattern) <= MAX_PATTERN_CHARS and pattern.count("*") <= MAX_STARS,
)
_REGEX = Check('a regular expression in RE2 syntax ("" for none)', str, convert=_regex)
_ADDRESS = Check('an address to listen on such as ":8000", "127.0.0.1:8000" or "[::1]:8000"', str, _is_address)

Switch = Annotated[bool, SWITCH]
Duration = Annotated[float, DURATION]
Servers = Annotated[tuple[str, ...], list_of('a list of "host:port" strings, at least one', _server_error)]
# A URL may have a user and a password.
Urls = Annotated[tuple[str, ...], replace(list_of("a list of URLs, at least one"), is_secret=True)]
Packages = Annotated[tuple[str, ...], list_of('a list of "organisation:module:version"', _package_error)]
Globs = Annotated[tuple[str, ...], list_of("a list of globs as in telegraf", glob_error, may_be_empty=True)]
Address = Annotated[str, _ADDRESS]
OptionalText = Annotated[str | None, ANY_TEXT]
Password = Annotated[Secret | None, replace(ANY_TEXT, is_secret=True, convert=Secret)]
SecretTexts = Annotated[Mapping[str, str], replace(TEXTS, is_secret=True)]
ClientOptions = Annotated[Mapping[str, Secret], Check("a table of options", dict, convert=_to_options, is_secret=True)]
OutputFile = Annotated[Path | None, path_of()]
InputFile = Annotated[Path | None, path_of(must_exist=True)]
Allowlist = Annotated[str | None, replace(_REGEX, formerly="group-whitelist")]
Denylist = Annotated[str | None, replace(_REGEX, formerly="group-blacklist")]
