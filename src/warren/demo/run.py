"""The demo: a real Kafka, groups of every kind, Warren watching them, and a live table in the terminal."""

import contextlib
import math
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import webbrowser
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from types import FrameType

from rich.console import Console
from rich.live import Live

from warren.demo.broker import Kafka
from warren.demo.workload import Stalled, stop_all
from warren.demo.workload.cast import Cast, demo_cast, prepare_topics
from warren.errors import DemoError, NoSnapshot, SnapshotError
from warren.report import groups_table, open_snapshot, worst_first
from warren.snapshot.reader import Snapshot, status_name

USUAL_PORT = 8000
_FIRST_VERDICTS_S = 300.0
_STOP_S = 30.0
_LOOK_S = 0.5
_LOG_LINES = 15
_DATA_DIR = "warren-data"
_WATCHDOG = """read -r _; kill "$0"
for _ in 1 2 3 4 5 6 7 8 9 10; do sleep 1; kill -0 "$0" || exit; done
kill -9 "-$0"
"""


def run_demo(
    *,
    minutes: float | None = None,
    keep: Path | None = None,
    port: int | None = None,
    browser: bool = True,
    console: Console | None = None,
) -> int:
    """Run the demo until Ctrl-C, or for so many minutes; raises DemoError when a part does not come up.

    Everything lives in a temporary directory, or in `keep`, which stays. Without a `port` the dashboard takes its usual
    one, or any other if that is taken; with a `browser` it is opened, if there is one and somebody watches.
    """
    console = console or Console()
    with contextlib.ExitStack() as parts, _interrupts():
        try:
            _run(parts, console, minutes, keep, _free_port(port), browser=browser)
        except KeyboardInterrupt:
            console.print("Stopping: Warren, the groups, the producers, Kafka.")
        finally:
            _ignore_interrupts()
            parts.close()
    if keep is not None:
        _say(console, f"All it wrote is in {keep}.")
    return 0


def _run(
    parts: contextlib.ExitStack,
    console: Console,
    minutes: float | None,
    keep: Path | None,
    port: int,
    *,
    browser: bool,
) -> None:
    home = _home(parts, keep)
    with _step(console, "Kafka (the first time its jars are fetched)"):
        kafka = parts.enter_context(Kafka(1, home / "kafka"))
    with _step(console, "topics"):
        prepare_topics(kafka.bootstrap)
    cast = demo_cast(kafka.bootstrap)
    with _step(console, f"{len(cast.producers)} producers and {len(cast.groups)} consumer groups"):
        _start_cast(parts, cast)
    (home / "burrow.toml").write_text(demo_config(kafka.bootstrap, port), encoding="utf-8")
    log_path = home / "warren.log"
    with _step(console, "Spark and the first verdicts"):
        warren = parts.enter_context(_warren(home, log_path))
        _await_verdicts(home, warren, log_path, cast)
    data = home / _DATA_DIR
    url = f"http://127.0.0.1:{port}"
    _say(console, f"warren demo ready: {url}, {len(cast.groups)} groups on {kafka.bootstrap}, all files in {home}")
    _say(console, "Try in another terminal:")
    stalled = next(group.group for group in cast.groups if isinstance(group, Stalled))
    for command in to_try(url, data, stalled):
        _say(console, f"  {command}")
    if browser and console.is_terminal:
        webbrowser.open(url)
    until = math.inf if minutes is None else time.monotonic() + minutes * 60
    with Live(console=console, auto_refresh=False) if console.is_terminal else nullcontext() as live:
        told: dict[str, str] = {}
        while time.monotonic() < until:
            _check_alive(warren, log_path, cast)
            # A snapshot that is gone before it was read has a newer one, which the next look finds.
            with contextlib.suppress(SnapshotError):
                told = _show(console, live, open_snapshot(data), told)
            time.sleep(_LOOK_S)


def _show(console: Console, live: Live | None, snapshot: Snapshot, told: dict[str, str]) -> dict[str, str]:
    """Show the groups, worst first: as a live table in a terminal, else a line for each that has changed."""
    groups = worst_first(snapshot.groups())
    if live is not None:
        live.update(groups_table(snapshot, groups), refresh=True)
        return told
    rows = groups.to_pylist()
    statuses = {row["group"]: status_name(row["worst_status"]) for row in rows}
    for row, worst in zip(rows, snapshot.worst(rows), strict=True):
        name = row["group"]
        if told.get(name) != statuses[name]:
            _say(console, f"{statuses[name]:6} {name}, lag {row['totallag']:,}: {snapshot.reason(worst)}")
    return statuses


def to_try(url: str, data: Path, group: str) -> list[str]:
    """Commands that show what Warren tells."""
    return [
        f"{url}/ in a browser                                  # the dashboard",
        f"warren groups --data-dir {data}",
        f"curl {url}/v3/kafka/demo/consumer/{group}/lag        # as Burrow answers it",
        f"curl {url}/v3/kafka/demo/consumer/{group}/explain    # and why",
        f"curl '{url}/v3/kafka/demo/lag?status=WARN,ERR'       # all groups in trouble",
        f"curl {url}/metrics                                   # for Prometheus",
        f"{url}/docs in a browser                              # to try the rest",
    ]


def _free_port(wanted: int | None) -> int:
    """The port that is wanted; a DemoError if it is taken."""
    for port in (USUAL_PORT, 0) if wanted is None else (wanted,):
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)) as held:
            return int(held.getsockname()[1])
    raise DemoError(f"--port {wanted}: it is taken; name another, or none for any that is free")


def demo_config(bootstrap: str, port: int) -> str:
    """The burrow.toml of the demo: one cluster, looked at every two seconds."""
    return f"""[cluster.demo]
class-name = "kafka"
servers = ["{bootstrap}"]
topic-refresh = 10
offset-refresh = 2

[consumer.demo]
class-name = "kafka"
cluster = "demo"
servers = ["{bootstrap}"]

[httpserver.demo]
address = "127.0.0.1:{port}"

[pipeline]
trigger = 2.0
master = "local[2]"
data-dir = "{_DATA_DIR}"
buckets = 2
driver-memory = "1g"
history-step = 2
"""


def _home(parts: contextlib.ExitStack, keep: Path | None) -> Path:
    if keep is None:
        return Path(parts.enter_context(tempfile.TemporaryDirectory(prefix="warren-demo-")))
    keep.mkdir(parents=True, exist_ok=True)
    if any(keep.iterdir()):
        raise DemoError(f"--keep {keep}: the directory is not empty; name a new one")
    return keep.resolve()


def _start_cast(parts: contextlib.ExitStack, cast: Cast) -> None:
    parts.callback(stop_all, cast.producers)
    for producer in cast.producers:
        producer.start()
    parts.callback(stop_all, cast.groups)
    for group in cast.groups:
        group.start()


@contextlib.contextmanager
def _warren(home: Path, log_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """`warren run` in a session of its own, so that Ctrl-C reaches it only when its turn to end has come."""
    command = [sys.executable, "-m", "warren.cli", "run", "--config-dir", str(home)]
    with log_path.open("wb") as log:
        process = subprocess.Popen(
            command, cwd=home, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
        )
    # Its input ends when we end, so that Warren does not outlive a demo that is killed.
    watchdog = subprocess.Popen(
        ["/bin/sh", "-c", _WATCHDOG, str(process.pid)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        watchdog.kill()
        watchdog.communicate()


def _check_alive(warren: subprocess.Popen[bytes], log_path: Path, cast: Cast) -> None:
    for worker in (*cast.producers, *cast.groups):
        worker.check()
    if warren.poll() is not None:
        lines = log_path.read_text(encoding="utf-8", errors="replace").splitlines()
        last = "\n".join(lines[-_LOG_LINES:])
        raise DemoError(f"warren run ended with exit code {warren.returncode}; its last words:\n{last}")


def _await_verdicts(home: Path, warren: subprocess.Popen[bytes], log_path: Path, cast: Cast) -> None:
    deadline = time.monotonic() + _FIRST_VERDICTS_S
    while time.monotonic() < deadline:
        _check_alive(warren, log_path, cast)
        with contextlib.suppress(NoSnapshot):
            if open_snapshot(home / _DATA_DIR).groups().num_rows:
                return
        time.sleep(_LOOK_S)
    raise DemoError(f"no verdicts within {_FIRST_VERDICTS_S:g} s; see {log_path}")


def _say(console: Console, text: str) -> None:
    # Names and paths are text: no markup, no colours, no line breaks of the terminal's own.
    console.print(text, soft_wrap=True, highlight=False, markup=False)


@contextlib.contextmanager
def _step(console: Console, what: str) -> Iterator[None]:
    began = time.monotonic()
    with console.status(f"Starting {what} ..."):
        yield
    console.print(f"[green]✓[/green] {what} ({time.monotonic() - began:.1f} s)", highlight=False)


@contextlib.contextmanager
def _interrupts() -> Iterator[None]:
    """SIGTERM ends the demo as Ctrl-C does; what the signals did before comes back afterwards."""

    def interrupt(_signal: int, _frame: FrameType | None) -> None:
        # Once is enough: from here on the parts end in their order, however often Ctrl-C is pressed.
        _ignore_interrupts()
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _ignore_interrupts() -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
