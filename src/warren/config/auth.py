"""`[auth]`: who may call the HTTP API.

Its file has one entry per line, `ROLE token SECRET` or `ROLE basic USER:PASSWORD`. A secret may be written as its
digest, `sha256:HEX`, and a password as a salted hash, `scrypt:SALT:HASH`. Only digests and hashes are kept in memory.
"""

import hashlib
import re
import secrets
import stat
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from getpass import getpass

from warren.config import values as v
from warren.config.section import RawSection, Sections
from warren.errors import WarrenError

_DIGEST, _HASH = "sha256:", "scrypt:"
SALT_BYTES = 16
_MAX_HASH_MEMORY = 64 << 20


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
    salt: bytes = field(default=b"", repr=False)
    """With a salt, the secret is a hash by `salted_hash`."""


@dataclass(frozen=True)
class Auth:
    """`[auth]`, Warren's own: the file that names who may read and who may change something, or that everyone may."""

    file: v.InputFile = None
    entries: tuple[Entry, ...] = field(default=(), repr=False)
    open_: v.Switch = False

    @staticmethod
    def check(section: RawSection, sections: Sections) -> None:
        """Every line of the file is an entry, and the file is written with care."""
        if section.get("open_") and "file" in section.written:
            section.mistake("= true: everyone may do everything, so remove it or the key file", "open_")
        if not section.get("open_") and "file" not in section.written:
            section.mistake("file is missing: must be the path of a file, or open = true lets everyone in")
        file = section.values.get("file")
        if file is None or not file.is_file():
            return
        content = file.read_bytes()
        section.values["entries"], mistakes = parse_entries(content)
        for mistake in mistakes:
            section.refuse("file", mistake)
        if stat.S_IMODE(file.stat().st_mode) & (stat.S_IROTH | stat.S_IWOTH):
            section.warning(f"{file} can be read by every user of this machine: chmod 600", "file")
        for weakness in weaknesses_of(content):
            section.warning(weakness, "file")


def parse_entries(content: bytes) -> tuple[tuple[Entry, ...], list[str]]:
    """The entries of a file, and its mistakes with their lines; mistakes never quote the file."""
    entries: dict[tuple[bytes, bytes], tuple[int, Entry]] = {}
    mistakes: list[str] = []
    for line_number, line in _lines(content):
        try:
            entry = _parse_entry(line)
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


def weaknesses_of(content: bytes) -> Iterator[str]:
    """The lines of a file whose secrets are known, or soon guessed, by whoever sees the file."""
    for line_number, line in _lines(content):
        _, kind, secret = (*line.split(None, 2), b"", b"")[:3]
        is_token = kind.lower() == b"token"
        scheme = (secret if is_token else secret.partition(b":")[2]).lower()
        if is_token and not scheme.startswith(_DIGEST.encode()):
            yield f"line {line_number}: the token is written as it is; write sha256: and its SHA-256 digest instead"
        elif not is_token and not scheme.startswith(_HASH.encode()):
            what = "a digest without salt" if scheme.startswith(_DIGEST.encode()) else "written as it is"
            yield f"line {line_number}: the password is {what}; `warren hash-password` makes a salted hash of it"


def _lines(content: bytes) -> Iterator[tuple[int, bytes]]:
    """The lines that are entries, with their numbers."""
    for line_number, line in enumerate(content.removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
        text = line.strip()
        if text and not text.startswith(b"#"):
            yield line_number, text


def digest_of(secret: bytes) -> bytes:
    """The digest of a secret, which is kept and compared."""
    return hashlib.sha256(secret).digest()


def salted_hash(secret: bytes, salt: bytes) -> bytes:
    """A hash that takes a third of a second and 32 MiB, so that a password is not guessed from it."""
    return hashlib.scrypt(secret, salt=salt, n=1 << 15, r=8, p=3, maxmem=_MAX_HASH_MEMORY, dklen=32)


def typed_password() -> str:
    """A password from the terminal, which does not show it, or a line of standard input."""
    password = getpass() if sys.stdin.isatty() else sys.stdin.readline().rstrip("\n")
    if not password:
        raise WarrenError("the password is empty")
    return password


def hashed_password(password: str) -> str:
    """A password as the file may have it: its hash with a new salt."""
    salt = secrets.token_bytes(SALT_BYTES)
    return f"{_HASH}{salt.hex()}:{salted_hash(password.encode(), salt).hex()}"


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
        return Entry(Role[role.upper()], identity(user.encode()), *_stored(secret))
    if not re.fullmatch(r"\S+", secret):
        raise ValueError("must have one word after token")
    if secret.lower().startswith(_HASH):
        # It has no user whose hash could be chosen, so all of them would be computed for every request.
        raise ValueError("must have a random token after token, or its sha256: digest; scrypt: is for passwords")
    return Entry(Role[role.upper()], identity(), *_stored(secret))


def _stored(secret: str) -> tuple[bytes, bytes]:
    """The digest of a secret and no salt, or its hash and salt."""
    scheme, _, written = secret.partition(":")
    if f"{scheme.lower()}:" == _HASH:
        match = re.fullmatch(rf"([0-9a-fA-F]{{{2 * SALT_BYTES}}}):([0-9a-fA-F]{{64}})", written)
        if match is None:
            raise ValueError("must have a salt and a hash after scrypt:, as `warren hash-password` prints them")
        return bytes.fromhex(match[2]), bytes.fromhex(match[1])
    if f"{scheme.lower()}:" != _DIGEST:
        return digest_of(secret.encode()), b""
    if not re.fullmatch(r"[0-9a-fA-F]{64}", written):
        raise ValueError("must have 64 hexadecimal digits after sha256:")
    return bytes.fromhex(written), b""
