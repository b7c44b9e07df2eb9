"""`[tls.NAME]`, `[sasl.NAME]`, `[iam.NAME]`: certificates and credentials; `[auth]`: who may call the HTTP API.

The file of `[auth]` has one entry per line, `ROLE token SECRET` or `ROLE basic USER:PASSWORD`. Only digests of the
secrets are kept in memory.
"""

import hashlib
import re
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from typing import Annotated

from warren.config import values as v
from warren.config.section import RawSection, Sections

_DIGEST_PREFIX = "sha256:"


class Role(IntEnum):
    """What a caller may do; `admin` includes `read`."""

    READ = 1
    ADMIN = 2


@dataclass(frozen=True)
class Entry:
    """A line of the file: the role of callers with this identity and secret, both as digests."""

    role: Role
    who: bytes = field(repr=False)
    secret: bytes = field(repr=False)


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


def parse_entries(content: bytes) -> tuple[tuple[Entry, ...], list[str]]:
    """The entries of a file, and its mistakes with their lines; mistakes never quote the file."""
    entries: dict[tuple[bytes, bytes], tuple[int, Entry]] = {}
    mistakes: list[str] = []
    for line_number, line in enumerate(content.removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
        text = line.strip()
        if not text or text.startswith(b"#"):
            continue
        try:
            entry = _parse_entry(text)
        except ValueError as error:
            # The text of a UnicodeDecodeError quotes bytes of the line.
            mistake = "must be UTF-8 text" if isinstance(error, UnicodeDecodeError) else str(error)
            mistakes.append(f"line {line_number}: {mistake}")
            continue
        first, _ = entries.setdefault((entry.who, entry.secret), (line_number, entry))
        if first != line_number:
            mistakes.append(f"line {line_number}: is the same as line {first}")
    if not entries and not mistakes:
        mistakes.append("has no entry, so nobody could call the API")
    return tuple(entry for _, entry in entries.values()), mistakes


def digest_of(secret: bytes) -> bytes:
    """The digest of a secret, which is kept and compared."""
    return hashlib.sha256(secret).digest()


def identity(user: bytes | None = None) -> bytes:
    """The identity of a user with a password, or of every caller with a token."""
    return digest_of(b"token" if user is None else b"basic " + user)


def _parse_entry(line: bytes) -> Entry:
    text = line.decode()
    if not text.replace("\t", " ").isprintable():
        raise ValueError("must have only printable characters")
    role, kind, secret = (*text.split(None, 2), "", "")[:3]
    if role.lower() not in ("read", "admin"):
        raise ValueError("must begin with read or admin")
    if kind.lower() not in ("token", "basic"):
        raise ValueError("must have token or basic after the role")
    if kind.lower() == "basic":
        user, _, secret = secret.partition(":")
        if not user or not secret:
            raise ValueError("must have USER:PASSWORD after basic")
        return Entry(Role[role.upper()], identity(user.encode()), _digest(secret))
    if not re.fullmatch(r"\S+", secret):
        raise ValueError("must have one word after token")
    return Entry(Role[role.upper()], identity(), _digest(secret))


def _digest(secret: str) -> bytes:
    if not secret.lower().startswith(_DIGEST_PREFIX):
        return digest_of(secret.encode())
    hexadecimal = secret[len(_DIGEST_PREFIX) :]
    if not re.fullmatch(r"[0-9a-fA-F]{64}", hexadecimal):
        raise ValueError("must have 64 hexadecimal digits after sha256:")
    return bytes.fromhex(hexadecimal)
