"""The role of a client, by the Authorization header of its request."""

import binascii
import hmac
from base64 import b64decode
from collections.abc import Iterable

from warren.config.security import Entry, Role, digest_of, identity

__all__ = ["Guard", "Role", "user_of"]


class Guard:
    """Checks credentials against the entries of the auth file; without such a file everyone has the admin role."""

    def __init__(self, entries: Iterable[Entry] | None) -> None:
        self._entries = tuple(entries or ())
        self.is_open = entries is None

    def role_of(self, authorization: bytes | None) -> Role | None:
        """The role of the client that sent this header; None if it has none."""
        if self.is_open:
            return Role.ADMIN
        offered = _parse(authorization or b"")
        if offered is None:
            return None
        user, secret = offered
        credentials = identity(user), digest_of(secret)
        role = 0
        # Every entry is compared, and both parts of it, so that the time taken reveals nothing about any of them.
        for entry in self._entries:
            is_same_user = hmac.compare_digest(entry.who, credentials[0])
            is_same_secret = hmac.compare_digest(entry.secret, credentials[1])
            role = max(role, entry.role * (is_same_user & is_same_secret))
        return Role(role) if role else None


def user_of(authorization: bytes) -> str | None:
    """The user name of basic authentication; None for any other."""
    user, _ = _parse(authorization) or (None, b"")
    try:
        return user.decode() if user is not None else None
    except UnicodeDecodeError:
        return None


def _parse(authorization: bytes) -> tuple[bytes | None, bytes] | None:
    """The user and password that a header offers, or None and a bearer token; None if it offers neither."""
    scheme, _, value = authorization.strip().partition(b" ")
    value = value.strip()
    if scheme.lower() == b"bearer" and value:
        return None, value
    if scheme.lower() != b"basic":
        return None
    try:
        user, colon, password = b64decode(value, validate=True).partition(b":")
    except binascii.Error:
        return None
    return (user, password) if colon else None
