"""The certificates that brokers present, for Java's clients where `noverify` is set.

Java verifies every certificate, but accepts one that is itself trusted, whoever issued it and even if it has expired.
"""

import contextlib
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor

from warren.errors import ClusterError
from warren.kafka.tls_probe import handshake, unverified

_MAX_AGE_S = 60.0
_MAX_THREADS = 16

_lock = threading.Lock()
_read_at: dict[tuple[str, ...], float] = {}
_known: dict[tuple[str, ...], list[str]] = {}
_by_server: dict[str, str] = {}


def trusted_certificates(servers: tuple[str, ...], find_brokers: Callable[[], Iterable[str]]) -> str:
    """The certificates of some servers, and of all brokers that they name, at most a minute old."""
    with _lock:
        if time.monotonic() - _read_at.get(servers, float("-inf")) > _MAX_AGE_S:
            brokers = sorted({*servers, *find_brokers()})
            with ThreadPoolExecutor(_MAX_THREADS) as pool:
                # A broker that is down keeps the certificate that it had.
                _by_server.update(
                    (at, pem) for at, pem in zip(brokers, pool.map(_presented, brokers), strict=True) if pem
                )
            _known[servers] = brokers
            _read_at[servers] = time.monotonic()
        certificates = sorted({_by_server[at] for at in _known[servers] if at in _by_server})
        if not certificates:
            del _read_at[servers]
            raise ClusterError("no broker presents a certificate: they do not answer, or do not speak TLS")
    return "".join(certificates)


def _presented(server: str) -> str:
    """The certificate of a server, "" if it presents none."""
    with contextlib.suppress(OSError):
        return handshake(server, unverified())
    return ""
