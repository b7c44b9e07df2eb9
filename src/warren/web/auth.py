"""Who asks, by the Authorization header of a request."""

import binascii
import hmac
from base64 import b64decode
from collections.abc import Iterable

from warren.config import Config
from warren.config.auth_file import Entry, Role, digest_of, who_basic, who_token

__all__ = ["Guard", "Role", "user_of"]


class Guard:
    """Knows the role of whoever asks."""

    def __init__(self, entries: Iterable[Entry], *, is_open: bool = False) -> None:
        self._entries = tuple(entries)
        self.is_open = is_open

    @classmethod
    def open(cls) -> "Guard":
        """The guard where no authentication is wanted: everyone may do everything."""
        return cls((), is_open=True)

    @classmethod
    def of(cls, config: Config) -> "Guard":
        """The guard that a configuration asks for."""
        return cls.open() if config.auth is None else cls(config.auth.entries)

    def role_of(self, authorization: bytes | None) -> Role | None:
        """The role of whoever sent this header, None for a stranger."""
        if self.is_open:
            return Role.ADMIN
        offered = _offered(authorization or b"")
        if offered is None:
            return None
        found = 0
        # Every entry is compared, and both parts of it, so that the time taken tells nothing about any of them.
        for entry in self._entries:
            is_named = hmac.compare_digest(entry.who, offered[0])
            is_known = hmac.compare_digest(entry.secret, offered[1])
            found = max(found, entry.role * (is_named & is_known))
        return Role(found) if found else None


def user_of(authorization: bytes) -> str | None:
    """The name with which somebody came, if it was one and a password."""
    basic = _basic(authorization)
    try:
        return basic[0].decode() if basic else None
    except UnicodeDecodeError:
        return None


def _offered(authorization: bytes) -> tuple[bytes, bytes] | None:
    scheme, words = _split(authorization)
    if scheme == b"bearer" and words:
        return who_token(), digest_of(words)
    basic = _basic(authorization)
    return (who_basic(basic[0]), digest_of(basic[1])) if basic else None


def _basic(authorization: bytes) -> tuple[bytes, bytes] | None:
    scheme, words = _split(authorization)
    if scheme != b"basic":
        return None
    try:
        user, colon, password = b64decode(words, validate=True).partition(b":")
    except binascii.Error:
        return None
    return (user, password) if colon else None


def _split(authorization: bytes) -> tuple[bytes, bytes]:
    scheme, _, words = authorization.strip().partition(b" ")
    return scheme.lower(), words.strip()
