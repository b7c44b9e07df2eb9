"""`[httpserver.NAME]` and `[metrics]`: where the HTTP API answers, and which metrics it has."""

import ipaddress
from dataclasses import dataclass
from typing import Annotated

from warren.config import values as v
from warren.config.section import RawSection, Sections

LEVELS = ("cluster", "group", "partition")
"""What metrics are about; those of a level include those of the levels before it."""


@dataclass(frozen=True)
class Metrics:
    """`[metrics]`, Warren's own: which metrics `/metrics` has unless a request names others."""

    level: Annotated[str, v.one_of(*LEVELS)] = "partition"
    names: v.Globs = ()


@dataclass(frozen=True)
class HttpServer:
    """`[httpserver.NAME]`: an address to listen on."""

    address: v.Address = ""
    timeout: Annotated[int, v.SECONDS] = 300
    tls: Annotated[str | None, v.name_of("tls")] = None
    max_connections: Annotated[int, v.whole(10, 100_000, "connections")] = 500
    name: str = ""

    @property
    def host(self) -> str:
        """The host of the address, "" for all interfaces."""
        return v.host_and_port(self.address)[0]

    @property
    def port(self) -> int:
        """The port of the address, 0 for any free one."""
        return v.host_and_port(self.address)[1]

    @property
    def is_loopback(self) -> bool:
        """Whether only clients on this machine can reach it."""
        return is_loopback(self.host)

    @staticmethod
    def check(section: RawSection, sections: Sections) -> None:
        """No other server has the address, and for TLS there are a certificate and its key."""
        host, port = v.host_and_port(section.get("address"))
        for other in sections["httpserver"].values():
            if other is section:
                break
            other_host, other_port = v.host_and_port(other.get("address"))
            # No host means all interfaces, and port 0 any free port.
            if port and port == other_port and (host == other_host or not host or not other_host):
                section.refuse("address", f"is taken by {other.title}")
                break
        tls = sections["tls"].get(section.get("tls"))
        missing = [name for name in ("certfile", "keyfile") if tls and name not in tls.written]
        if missing:
            section.refuse("tls", f"an HTTP server also needs its {' and '.join(missing)}")


def address_of(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The IP address that a text is; None for a name."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return None
    # A socket for both versions of IP shows 127.0.0.1 as ::ffff:127.0.0.1.
    return getattr(address, "ipv4_mapped", None) or address


def is_loopback(host: str) -> bool:
    """Whether a name or address leads from a machine to itself."""
    address = address_of(host)
    return host.lower() == "localhost" if address is None else address.is_loopback
