"""The role of a client, by the Authorization header of its request."""

import binascii
import hmac
from base64 import b64decode
from collections.abc import Iterable

from warren.config import Config
from warren.config.auth_file import Entry, Role, digest_of, identity

__all__ = ["Guard", "Role", "user_of"]


class Guard:
    """Checks credentials against the entries of the auth file; an open guard gives everyone the admin role."""

    def __init__(self, entries: Iterable[Entry], *, is_open: bool = False) -> None:
        self._entries = tuple(entries)
        self.is_open = is_open

    @classmethod
    def of(cls, config: Config) -> "Guard":
        """The guard of a configuration: open if it has no authentication."""
        return cls((), is_open=True) if config.auth is None else cls(config.auth.entries)

    def role_of(self, authorization: bytes | None) -> Role | None:
        """The role of the client that sent this header; None if it has none."""
        if self.is_open:
            return Role.ADMIN
        credentials = _credentials(authorization or b"")
        if credentials is None:
            return None
        role = 0
        # Every entry is compared, and both parts of it, so that the time taken reveals nothing about any of them.
        for entry in self._entries:
            is_same_user = hmac.compare_digest(entry.who, credentials[0])
            is_same_secret = hmac.compare_digest(entry.secret, credentials[1])
            role = max(role, entry.role * (is_same_user & is_same_secret))
        return Role(role) if role else None


def user_of(authorization: bytes) -> str | None:
    """The user name of basic authentication; None for any other."""
    basic = _basic(authorization)
    try:
        return basic[0].decode() if basic else None
    except UnicodeDecodeError:
        return None


def _credentials(authorization: bytes) -> tuple[bytes, bytes] | None:
    """Digests of the user and the secret that a header offers."""
    scheme, value = _split(authorization)
    if scheme == b"bearer" and value:
        return identity(), digest_of(value)
    basic = _basic(authorization)
    return (identity(basic[0]), digest_of(basic[1])) if basic else None


def _basic(authorization: bytes) -> tuple[bytes, bytes] | None:
    scheme, value = _split(authorization)
    if scheme != b"basic":
        return None
    try:
        user, colon, password = b64decode(value, validate=True).partition(b":")
    except binascii.Error:
        return None
    return (user, password) if colon else None


def _split(authorization: bytes) -> tuple[bytes, bytes]:
    scheme, _, value = authorization.strip().partition(b" ")
    return scheme.lower(), value.strip()
