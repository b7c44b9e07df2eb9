"""`[general]` and `[logging]`: the running process and its log."""

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from warren.config import values as v

LEVELS = {
    "trace": logging.DEBUG,
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warn": logging.WARNING,
    "warning": logging.WARNING,
    "error": logging.ERROR,
    "panic": logging.CRITICAL,
    "fatal": logging.CRITICAL,
}
"""Burrow's levels, and those of Python that they are."""


@dataclass(frozen=True)
class General:
    """`[general]`: files of the running process, and which web pages may call its API."""

    pidfile: Annotated[Path, v.path_of()] = Path("burrow.pid")
    stdout_logfile: v.OutputFile = None
    access_control_allow_origin: v.OptionalText = None
    env_var_prefix: Annotated[str, v.text("a prefix of environment variables", r"\w+")] = "BURROW"
    external_url: Annotated[str | None, v.text("the URL at which people reach Warren", r"https?://\S+")] = None


@dataclass(frozen=True)
class Logging:
    """`[logging]`: to a file that is rotated by size, or to standard output."""

    filename: v.OutputFile = None
    level: Annotated[str, v.one_of(*LEVELS)] = "info"
    maxsize: Annotated[int, v.whole(0, 1_000_000, "megabytes")] = 100
    maxbackups: Annotated[int, v.whole(0, 1_000_000)] = 10
    maxage: Annotated[int, v.whole(0, 1_000_000, "days")] = 30
    use_localtime: v.Switch = False
    use_compression: v.Switch = False
