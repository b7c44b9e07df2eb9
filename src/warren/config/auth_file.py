"""The file of `[auth]`: who may ask, a line each, `ROLE token SECRET` or `ROLE basic USER:PASSWORD`.

Only digests of what it says are kept.
"""

import hashlib
import re
from dataclasses import dataclass, field
from enum import IntEnum

_DIGEST_PREFIX = "sha256:"


class Role(IntEnum):
    """What one may do: `admin` is also allowed all that `read` is."""

    READ = 1
    ADMIN = 2


@dataclass(frozen=True)
class Entry:
    """A line of the file: the role of whoever names himself so and knows the secret."""

    role: Role
    who: bytes = field(repr=False)
    secret: bytes = field(repr=False)


_ROLES = {role.name.lower(): role for role in Role}


def parse_entries(content: bytes) -> tuple[tuple[Entry, ...], list[str]]:
    """The entries of a file, and its mistakes with their lines, which show nothing of what is written there."""
    entries: dict[tuple[bytes, bytes], tuple[int, Entry]] = {}
    mistakes: list[str] = []
    for number, line in enumerate(content.removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
        words = line.strip()
        if not words or words.startswith(b"#"):
            continue
        try:
            entry = _parse_entry(words)
        except ValueError as error:
            # Of UnicodeDecodeError too only the fact is told, as its text has bytes of the line.
            what = "must be UTF-8 text" if isinstance(error, UnicodeDecodeError) else str(error)
            mistakes.append(f"line {number}: {what}")
            continue
        first, _ = entries.setdefault((entry.who, entry.secret), (number, entry))
        if first != number:
            mistakes.append(f"line {number}: is the same as line {first}")
    if not entries and not mistakes:
        mistakes.append("has no entry, so that nobody could ask")
    return tuple(entry for _, entry in entries.values()), mistakes


def digest_of(secret: bytes) -> bytes:
    """What is kept of a secret, and compared."""
    return hashlib.sha256(secret).digest()


def who_token() -> bytes:
    """Whoever comes with a token: they have no names."""
    return digest_of(b"token")


def who_basic(user: bytes) -> bytes:
    """Whoever comes as a user with a password."""
    return digest_of(b"basic " + user)


def _parse_entry(line: bytes) -> Entry:
    text = line.decode()
    if not text.replace("\t", " ").isprintable():
        raise ValueError("must be of printable characters")
    role, kind, secret = (*text.split(None, 2), "", "")[:3]
    if role.lower() not in _ROLES:
        raise ValueError("must begin with read or admin")
    if kind.lower() not in ("token", "basic"):
        raise ValueError("must have token or basic after the role")
    if kind.lower() == "basic":
        user, _, secret = secret.partition(":")
        if not user or not secret:
            raise ValueError("must have USER:PASSWORD after basic")
        return Entry(_ROLES[role.lower()], who_basic(user.encode()), _digest(secret))
    if not re.fullmatch(r"\S+", secret):
        raise ValueError("must have one word after token")
    return Entry(_ROLES[role.lower()], who_token(), _digest(secret))


def _digest(secret: str) -> bytes:
    if not secret.lower().startswith(_DIGEST_PREFIX):
        return digest_of(secret.encode())
    hexadecimal = secret[len(_DIGEST_PREFIX) :]
    if not re.fullmatch(r"[0-9a-fA-F]{64}", hexadecimal):
        raise ValueError("must have 64 hexadecimal digits after sha256:")
    return bytes.fromhex(hexadecimal)
