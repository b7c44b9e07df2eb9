"""A client that asks as fast as it can: some connections, each with one request under way, in a process of its own.

One more connection asks for the health of the server a hundred times per second.
"""

import asyncio
import json
import random
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import uvloop


@dataclass(frozen=True)
class Load:
    """What a run of requests came to; times in ms."""

    answers: int
    rate: int
    p50: float
    p99: float
    slowest: float
    failed: int
    bytes_each: int
    health_p99: float
    health_slowest: float


HEALTH_EVERY_S = 0.01


class _Asker(asyncio.Protocol):
    def __init__(
        self, paths: Sequence[bytes], until: float, done: "asyncio.Future[None]", pause_s: float = 0.0
    ) -> None:
        self._pause_s = pause_s
        self._requests = [b"GET " + path + b" HTTP/1.1\r\nHost: load\r\n\r\n" for path in paths]
        self._until = until
        self._done = done
        self._missing = 0
        self.times: list[float] = []
        self.failed = 0
        self.size = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport = transport
        self._ask()

    def _ask(self) -> None:
        self._missing = -1
        self._began = time.perf_counter()
        self._transport.write(random.choice(self._requests))

    def data_received(self, data: bytes) -> None:
        if self._missing < 0:
            # The head of an answer fits in one piece; a load that were answered otherwise would fail here.
            end = data.index(b"\r\n\r\n") + 4
            at = data.index(b"ength: ") + 7
            self.size = int(data[at : data.index(b"\r", at)])
            self.failed += data[9:12] != b"200"
            self._missing = self.size - len(data) + end
        else:
            self._missing -= len(data)
        if self._missing == 0:
            now = time.perf_counter()
            self.times.append(now - self._began)
            if now < self._until and self._pause_s:
                asyncio.get_running_loop().call_later(self._pause_s, self._ask)
            elif now < self._until:
                self._ask()
            else:
                self._transport.close()
                self._done.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._done.done():
            self.failed += 1
            self._done.set_result(None)


async def run(port: int, paths: Sequence[bytes], seconds: float, connections: int) -> Load:
    """Ask for random ones of the paths."""
    loop = asyncio.get_running_loop()
    until = time.perf_counter() + seconds
    askers = []
    dones = []
    for number in range(connections + 1):
        done = loop.create_future()
        is_load = number < connections
        asker = _Asker(paths if is_load else [b"/burrow/admin"], until, done, 0.0 if is_load else HEALTH_EVERY_S)
        await loop.create_connection(lambda asker=asker: asker, "127.0.0.1", port)  # type: ignore[misc]
        askers.append(asker)
        dones.append(done)
    await asyncio.gather(*dones)
    times = sorted(took for asker in askers[:-1] for took in asker.times)
    health = sorted(askers[-1].times)
    return Load(
        len(times),
        round(len(times) / seconds),
        round(times[len(times) // 2] * 1000, 2),
        round(times[int(len(times) * 0.99)] * 1000, 2),
        round(times[-1] * 1000, 1),
        sum(asker.failed for asker in askers),
        askers[0].size,
        round(health[int(len(health) * 0.99)] * 1000, 2),
        round(health[-1] * 1000, 1),
    )


def main() -> None:
    """python -m benchmarks.http_load PORT SECONDS CONNECTIONS, with a JSON list of paths on standard input."""
    port, seconds, connections = int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
    paths = [path.encode() for path in json.load(sys.stdin)]
    print(json.dumps(asdict(uvloop.run(run(port, paths, seconds, connections)))))


if __name__ == "__main__":
    main()
