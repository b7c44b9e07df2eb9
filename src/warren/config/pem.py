"""PEM files in the one form that every client takes: certificates alone, and keys in PKCS#8 without a password."""

import re
from functools import lru_cache

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)

_CERTIFICATE = re.compile(rb"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)
_KEY = re.compile(rb"-----BEGIN ([A-Z0-9 ]*PRIVATE KEY)-----.+?-----END \1-----", re.DOTALL)


@lru_cache(256)
def certificates_in(content: bytes) -> str:
    """The certificates of a file, without the text around them; ValueError if it has none."""
    blocks = _CERTIFICATE.findall(content)
    if not blocks:
        raise ValueError("has no certificate in PEM format")
    try:
        for block in blocks:
            x509.load_pem_x509_certificate(block)
    except ValueError:
        raise ValueError("has a certificate that cannot be read") from None
    return b"\n".join(blocks).replace(b"\r", b"").decode() + "\n"


@lru_cache(256)
def private_key_in(content: bytes, password: str = "") -> str:
    """The private key of a file, of any format, as PKCS#8 without a password; ValueError if it cannot be read."""
    found = _KEY.search(content)
    if found is None:
        raise ValueError("has no private key in PEM format")
    is_encrypted = b"ENCRYPTED" in found[0]
    if is_encrypted and not password:
        raise ValueError("has a key with a password: set keypassword")
    try:
        key = load_pem_private_key(found[0], password.encode() if is_encrypted else None)
        return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    except (ValueError, TypeError, UnsupportedAlgorithm):
        # The messages of the library say no more than this.
        why = "keypassword is wrong, or " if is_encrypted else ""
        raise ValueError(f"has a private key that cannot be read: {why}its format is unknown") from None


@lru_cache(256)
def is_key_of(private_key: str, certificates: str) -> bool:
    """Whether a private key belongs to the first of some certificates."""
    first = x509.load_pem_x509_certificate(certificates.encode())
    own = load_pem_private_key(private_key.encode(), None).public_key()
    form = (Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return own.public_bytes(*form) == first.public_key().public_bytes(*form)
