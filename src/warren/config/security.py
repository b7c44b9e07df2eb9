"""`[tls.NAME]`, `[sasl.NAME]`, `[iam.NAME]`: certificates and credentials; `[auth]`: who may call the HTTP API."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from warren.config.auth_file import Entry, parse_entries
from warren.config.section import RawSection, Sections
from warren.config.values import InputFile, OptionalText, Password, Switch, path_of


@dataclass(frozen=True)
class Tls:
    """`[tls.NAME]`: certificates."""

    certfile: InputFile = None
    keyfile: InputFile = None
    cafile: InputFile = None
    noverify: Switch = False
    name: str = ""


@dataclass(frozen=True)
class Sasl:
    """`[sasl.NAME]`: credentials for brokers."""

    username: OptionalText = None
    password: Password = None
    handshake_first: Switch = False
    mechanism: OptionalText = None
    name: str = ""


@dataclass(frozen=True)
class Iam:
    """`[iam.NAME]`: credentials for brokers of AWS."""

    region: OptionalText = None
    role_arn: OptionalText = None
    profile: OptionalText = None
    name: str = ""


@dataclass(frozen=True)
class Auth:
    """`[auth]`, Warren's own: the file that names who may read and who may change something."""

    file: Annotated[Path, path_of(must_exist=True)]
    entries: tuple[Entry, ...] = field(default=(), repr=False)

    @staticmethod
    def check(section: RawSection, sections: Sections) -> None:
        """Every line of the file is an entry."""
        file = section.values.get("file")
        if file is not None and file.is_file():
            section.values["entries"], mistakes = parse_entries(file.read_bytes())
            for mistake in mistakes:
                section.refuse("file", mistake)
