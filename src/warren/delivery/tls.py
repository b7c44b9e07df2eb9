"""TLS for whatever Warren delivers to."""

import ssl
from pathlib import Path


def tls_context(
    *,
    ca: Path | None = None,
    extra_ca: Path | None = None,
    certificate: Path | None = None,
    key: Path | None = None,
    is_verified: bool = True,
) -> ssl.SSLContext:
    """A client's TLS settings. `ca` replaces the system's certificate authorities, `extra_ca` adds to them."""
    context = ssl.create_default_context(cafile=ca)
    if extra_ca is not None:
        context.load_verify_locations(extra_ca)
    if certificate is not None:
        context.load_cert_chain(certificate, key)
    if not is_verified:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context
