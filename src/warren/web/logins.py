"""Failed logins: limited per client address, counted, and logged in few lines."""

import ipaddress
import logging
import time
from collections.abc import Callable

from warren.config.http import address_of

log = logging.getLogger(__name__)

FAILURES_AT_ONCE = 10
SECONDS_PER_FAILURE = 6.0
"""How long it takes until a client that has failed too often may fail once more."""
MAX_ADDRESSES = 10_000
LOG_EVERY_S = 10.0


class Logins:
    """The logins that have failed; clients whose credentials are known already do not come here."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._paid_at: dict[str, float] = {}
        """When the failures of an address are forgotten: each adds some seconds."""
        self._logged_at = -LOG_EVERY_S
        self._unlogged = 0
        self.failed = 0
        self.refused = 0

    def begin(self, address: str) -> float:
        """Let a client try: 0, or the seconds that it must wait before it may.

        The attempt counts as a failure until `succeeded`, so that many at the same time are not more.
        """
        now, key = self._clock(), _network_of(address)
        paid_at = max(self._paid_at.get(key, now), now)
        wait_s = paid_at - now - (FAILURES_AT_ONCE - 1) * SECONDS_PER_FAILURE
        if wait_s > 0:
            self.refused += 1
            self._log(address)
            return wait_s
        if key not in self._paid_at and len(self._paid_at) >= MAX_ADDRESSES:
            self._forget(now)
        self._paid_at[key] = paid_at + SECONDS_PER_FAILURE
        return 0.0

    def succeeded(self, address: str) -> None:
        """Take back the attempt of a client that had the right credentials."""
        key = _network_of(address)
        if key in self._paid_at:
            self._paid_at[key] -= SECONDS_PER_FAILURE

    def count_failure(self, address: str) -> None:
        """Count a client that had wrong credentials."""
        self.failed += 1
        self._log(address)

    def _forget(self, now: float) -> None:
        """Forget addresses without failures left, else the one that has failed first."""
        self._paid_at = {key: paid_at for key, paid_at in self._paid_at.items() if paid_at > now}
        if len(self._paid_at) >= MAX_ADDRESSES:
            del self._paid_at[next(iter(self._paid_at))]

    def _log(self, address: str) -> None:
        """Log the first failure at once, and then all that came since the last line."""
        self._unlogged += 1
        now = self._clock()
        if now - self._logged_at >= LOG_EVERY_S:
            log.warning("%d failed logins, the last one from %s", self._unlogged, address)
            self._logged_at, self._unlogged = now, 0


def _network_of(address: str) -> str:
    """What counts as one client: an address of IPv4, or a /64 of IPv6, as one host has many there."""
    parsed = address_of(address)
    if isinstance(parsed, ipaddress.IPv6Address):
        return str(ipaddress.ip_network((int(parsed) >> 64 << 64, 64)))
    return str(parsed or address)
