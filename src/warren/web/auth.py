"""The role of a client, by the Authorization header of its request."""

import binascii
import hashlib
import hmac
import secrets
from base64 import b64decode
from collections.abc import Iterable

from warren.config.auth import SALT_BYTES, Entry, Role, digest_of, identity, salted_hash

__all__ = ["Guard", "Role", "user_of"]

MAX_KNOWN = 1_000
"""How many credentials are remembered: a salted hash is too slow for every request."""


class Guard:
    """Checks credentials against the entries of the auth file; without such a file everyone has the admin role."""

    def __init__(self, entries: Iterable[Entry] | None) -> None:
        entries_of = tuple(entries or ())
        self._digests = [entry for entry in entries_of if not entry.salt]
        self._hashes = [entry for entry in entries_of if entry.salt]
        self._nobody = Entry(Role.READ, b"", b"", secrets.token_bytes(SALT_BYTES))
        self._key = secrets.token_bytes(32)
        self._known: dict[bytes, Role] = {}
        self.is_open = entries is None

    @property
    def is_slow(self) -> bool:
        """Whether `role_of` takes so long that it must not keep other clients waiting."""
        return bool(self._hashes)

    def known_role(self, authorization: bytes) -> Role | None:
        """The role of credentials that were right before; None if they must be checked."""
        return self._known.get(self._name(authorization))

    def role_of(self, authorization: bytes | None) -> Role | None:
        """The role of the client that sent this header; None if it has none."""
        if self.is_open:
            return Role.ADMIN
        offered = _parse(authorization or b"")
        if offered is None:
            return None
        role = max(self._by_digest(*offered), self._by_hash(*offered))
        if not role:
            return None
        if len(self._known) >= MAX_KNOWN:
            self._known.clear()
        self._known[self._name(authorization or b"")] = Role(role)
        return Role(role)

    def _name(self, authorization: bytes) -> bytes:
        """What credentials are remembered by: neither memory nor the time taken reveals them."""
        return hashlib.blake2b(authorization, key=self._key, digest_size=32).digest()

    def _by_digest(self, user: bytes | None, secret: bytes) -> int:
        who, digest, role = identity(user), digest_of(secret), 0
        # Every entry is compared, and both parts of it, so that the time taken reveals nothing about any of them.
        for entry in self._digests:
            is_same_user = hmac.compare_digest(entry.who, who)
            is_same_secret = hmac.compare_digest(entry.secret, digest)
            role = max(role, entry.role * (is_same_user & is_same_secret))
        return role

    def _by_hash(self, user: bytes | None, secret: bytes) -> int:
        if user is None or not self._hashes:
            return 0
        who, role = identity(user), 0
        own = [entry for entry in self._hashes if hmac.compare_digest(entry.who, who)]
        # A user that does not exist takes as long as one with a wrong password.
        for entry in own or [self._nobody]:
            role = max(role, entry.role * hmac.compare_digest(entry.secret, salted_hash(secret, entry.salt)))
        return role


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
