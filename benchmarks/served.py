"""A server on recorded snapshots, in a process of its own, of this source code or of another version's.

    python -m benchmarks.served DIRECTORY IS_CACHED

It prints its URL, and then when each snapshot was indexed.
"""

import contextlib
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.conditions import cpu_s, peak_mib

ROOT = Path(__file__).parents[1]
START_S = 120.0
INDEX_S = 60.0


class Served:
    """A server that runs only while it is measured, so that it takes nothing from another one."""

    def __init__(self, source: Path, folder: Path, *, is_cached: bool) -> None:
        self.source = source
        self.indexed_s: dict[int, float] = {}
        """When each snapshot replaced the one before, by its number."""
        self._command = [sys.executable, "-m", "benchmarks.served", str(folder), str(int(is_cached))]

    def __enter__(self) -> "Served":
        path = os.pathsep.join([str(self.source), str(ROOT)])
        self._process = subprocess.Popen(
            self._command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": path}
        )
        self.pid = self._process.pid
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline().rsplit(":", 1)[1])
        threading.Thread(target=self._follow, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._process.send_signal(signal.SIGCONT)
        self._process.terminate()
        self._process.wait(START_S)

    def _follow(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            number, at_s = line.split()
            self.indexed_s[int(number)] = float(at_s)

    @contextlib.contextmanager
    def running(self, newest: int) -> Iterator[None]:
        """Let it run, from when it has indexed the newest snapshot."""
        self._process.send_signal(signal.SIGCONT)
        deadline = time.monotonic() + INDEX_S
        while max(self.indexed_s, default=0) < newest and time.monotonic() < deadline:
            time.sleep(0.05)
        try:
            yield
        finally:
            self._process.send_signal(signal.SIGSTOP)

    @property
    def cpu_s(self) -> float:
        """Processor time that it has used."""
        return cpu_s(self.pid)

    @property
    def peak_mib(self) -> int:
        """The most memory it has held."""
        return peak_mib(self.pid)

    @property
    def resident_mib(self) -> int:
        """The memory it holds."""
        return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") >> 20


class _Switches(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        if "indexed" in record.msg and isinstance(record.args, tuple):
            print(record.args[0], record.created, flush=True)


def main() -> None:
    """Serve until SIGTERM."""
    from warren.config import Cluster, Config, Consumer, HttpServer, Pipeline
    from warren.web import asgi, server

    folder, is_cached = Path(sys.argv[1]), sys.argv[2] == "1"
    config = Config(
        {"local": Cluster("local", ("127.0.0.1:9092",))},
        {"local": Consumer("local", "local", ("127.0.0.1:9092",))},
        http_servers={"default": HttpServer("127.0.0.1:0", name="default")},
        pipeline=Pipeline(data_dir=folder),
    )
    if not is_cached:
        asgi.MAX_CACHE_BYTES = 0
    log = logging.getLogger("warren.web.api")
    log.setLevel(logging.DEBUG)
    log.addHandler(_Switches())
    server.serve_alone(config, lambda urls: print(urls[0], flush=True))


if __name__ == "__main__":
    main()
