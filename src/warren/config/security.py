"""`[tls.NAME]`, `[sasl.NAME]`, `[iam.NAME]`: certificates and credentials; `[auth]`: who may call the HTTP API."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from warren.config import values as v
from warren.config.auth_file import Entry, parse_entries
from warren.config.section import RawSection, Sections


@dataclass(frozen=True)
class Tls:
    """`[tls.NAME]`: certificates."""

    certfile: v.InputFile = None
    keyfile: v.InputFile = None
    cafile: v.InputFile = None
    noverify: v.Switch = False
    name: str = ""


@dataclass(frozen=True)
class Sasl:
    """`[sasl.NAME]`: credentials for brokers."""

    username: v.OptionalText = None
    password: v.Password = None
    handshake_first: v.Switch = False
    mechanism: v.OptionalText = None
    name: str = ""


@dataclass(frozen=True)
class Iam:
    """`[iam.NAME]`: credentials for brokers of AWS."""

    region: v.OptionalText = None
    role_arn: v.OptionalText = None
    profile: v.OptionalText = None
    name: str = ""


@dataclass(frozen=True)
class Auth:
    """`[auth]`, Warren's own: the file that names who may read and who may change something."""

    file: Annotated[Path, v.path_of(must_exist=True)]
    entries: tuple[Entry, ...] = field(default=(), repr=False)

    @staticmethod
    def check(section: RawSection, sections: Sections) -> None:
        """Every line of the file is an entry."""
        file = section.values.get("file")
        if file is not None and file.is_file():
            section.values["entries"], mistakes = parse_entries(file.read_bytes())
            for mistake in mistakes:
                section.refuse("file", mistake)
