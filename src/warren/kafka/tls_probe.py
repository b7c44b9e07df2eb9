"""A TLS handshake with a broker, to learn what librdkafka does not tell: why it cannot connect."""

import socket
import ssl
import time
from collections.abc import Mapping
from typing import Any

from warren.kafka.client_errors import CLOSED, EXPIRED, NO_TLS, TLS_WANTED, UNTRUSTED, WRONG_HOST

TIMEOUT_S = 3.0
PAUSE_S = 0.5
# OpenSSL's numbers of what is wrong with a certificate.
_EXPIRED = 10
_HOST_MISMATCHES = (62, 63, 64)


def find_tls_error(options: Mapping[str, Any], server: str) -> str | None:
    """What is wrong between these options of librdkafka and a broker; None if TLS is not the reason."""
    found = _probe(options, server)
    if found in (NO_TLS, CLOSED):
        # A broker that is being stopped closes connections as well; a moment later it takes none.
        time.sleep(PAUSE_S)
        return found if _probe(options, server) == found else None
    return found


def _probe(options: Mapping[str, Any], server: str) -> str | None:
    wants_tls = "SSL" in options.get("security.protocol", "")
    try:
        handshake(server, tls_context(options) if wants_tls else unverified())
    except ssl.SSLCertVerificationError as error:
        is_of_host = error.verify_code in _HOST_MISMATCHES
        return EXPIRED if error.verify_code == _EXPIRED else WRONG_HOST if is_of_host else UNTRUSTED
    except (ssl.SSLError, ConnectionResetError, BrokenPipeError):
        return NO_TLS if wants_tls else CLOSED
    except OSError:
        return None
    return CLOSED if wants_tls else TLS_WANTED


def handshake(server: str, context: ssl.SSLContext) -> str:
    """Connect to a server; gives its certificate as PEM."""
    host, _, port = server.rpartition(":")
    host = host.strip("[]")
    with (
        socket.create_connection((host, int(port)), TIMEOUT_S) as connection,
        context.wrap_socket(connection, server_hostname=host) as secured,
    ):
        return ssl.DER_cert_to_PEM_cert(secured.getpeercert(binary_form=True) or b"")


def unverified() -> ssl.SSLContext:
    """What connects to every server."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def tls_context(options: Mapping[str, Any]) -> ssl.SSLContext:
    """What verifies brokers as librdkafka does with these options."""
    if options.get("enable.ssl.certificate.verification") == "false":
        return unverified()
    context = ssl.create_default_context(cadata=options.get("ssl.ca.pem"))
    context.check_hostname = options.get("ssl.endpoint.identification.algorithm") != "none"
    return context
