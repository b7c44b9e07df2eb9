"""The demo: a real Kafka, groups of every kind, `warren run`, and a live table in the terminal."""

import contextlib
import math
import signal
import socket
import sys
import tempfile
import time
import webbrowser
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from types import FrameType

from rich.console import Console
from rich.live import Live

from warren.demo.broker import Kafka
from warren.demo.child_process import ChildProcess, last_lines
from warren.demo.workload.committing_groups import AssignOnly, CatchingUp, Rewinding, Slow, Stalled
from warren.demo.workload.consumer_group import ConsumerGroup
from warren.demo.workload.consuming_groups import Bursty, Healthy, Kip848, Pair, Stopped, Transactional
from warren.demo.workload.producer import Producer
from warren.demo.workload.thread import WorkloadThread, stop_all
from warren.demo.workload.topics import create_topics, fill_topic
from warren.domain.status import Status
from warren.errors import DemoError, NoSnapshot, SnapshotError
from warren.report import groups_table, open_snapshot, worst_first
from warren.snapshot.reader import Snapshot

DEFAULT_PORT = 8000
_FIRST_VERDICTS_TIMEOUT_S = 300.0
_STOP_TIMEOUT_S = 30.0
_REFRESH_S = 0.5
_DATA_DIR = "warren-data"
PARTITIONS = {"orders": 3, "payments": 3, "payments-settled": 3, "clicks": 6}
_ORDERS_RATE = 300.0
ORDERS_BACKLOG = 20_000


def run_demo(
    *, minutes: float | None = None, keep: Path | None = None, port: int | None = None, browser: bool = True
) -> None:
    """Run the demo until Ctrl-C, or for so many minutes; raises DemoError when a part does not start.

    All files are in a temporary directory, or in `keep`, which is not removed. Without a `port` the dashboard is at the
    default port, or at any free port if that is in use. With `browser` it is opened, if this is a terminal.
    """
    console = Console()
    free_port = _free_port(port)
    _on_interrupt(_interrupt)
    with contextlib.ExitStack() as parts:
        try:
            _run(parts, console, minutes, keep, free_port, browser=browser)
        except KeyboardInterrupt:
            console.print("Stopping Warren, the consumer groups, the producers and Kafka.")
        finally:
            _on_interrupt(signal.SIG_IGN)
            parts.close()
    if keep is not None:
        _print(console, f"All files are in {keep}.")


def _run(
    parts: contextlib.ExitStack, console: Console, minutes: float | None, keep: Path | None, port: int, *, browser: bool
) -> None:
    home = _home(parts, keep)
    with _step(console, "Kafka (its jars are downloaded the first time)"):
        kafka = parts.enter_context(Kafka(home / "kafka"))
    with _step(console, "topics"):
        create_topics(kafka.bootstrap, PARTITIONS)
        # Enough messages for groups to start behind.
        fill_topic(kafka.bootstrap, "orders", ORDERS_BACKLOG)
    producers, groups = demo_workload(kafka.bootstrap)
    threads: list[WorkloadThread] = [*producers, *groups]
    with _step(console, f"{len(producers)} producers and {len(groups)} consumer groups"):
        for alike in (producers, groups):
            parts.callback(stop_all, alike)
            for thread in alike:
                thread.start()
    (home / "burrow.toml").write_text(demo_config(kafka.bootstrap, port), encoding="utf-8")
    log_path = home / "warren.log"
    with _step(console, "Spark and the first verdicts"):
        command = [sys.executable, "-m", "warren.cli", "run", "--config-dir", str(home)]
        warren = ChildProcess(command, log_path, cwd=home, grace_s=10)
        parts.callback(warren.terminate, _STOP_TIMEOUT_S)
        _await_verdicts(home, warren, log_path, threads)
    data = home / _DATA_DIR
    url = f"http://127.0.0.1:{port}"
    _print(console, f"warren demo ready: {url}, {len(groups)} groups on {kafka.bootstrap}, all files in {home}")
    _print(console, "Try this in another terminal:")
    stalled = next(group.group for group in groups if isinstance(group, Stalled))
    for example in example_commands(url, data, stalled):
        _print(console, f"  {example}")
    if browser and console.is_terminal:
        webbrowser.open(url)
    until = math.inf if minutes is None else time.monotonic() + minutes * 60
    with Live(console=console, auto_refresh=False) if console.is_terminal else nullcontext() as live:
        statuses: dict[str, str] = {}
        while time.monotonic() < until:
            _check_alive(warren, log_path, threads)
            # A snapshot can be removed while it is read; the next attempt reads a newer one.
            with contextlib.suppress(SnapshotError):
                statuses = _show(console, live, open_snapshot(data), statuses)
            time.sleep(_REFRESH_S)


def _show(console: Console, live: Live | None, snapshot: Snapshot, last: dict[str, str]) -> dict[str, str]:
    """Show the groups, worst first: a live table in a terminal, otherwise one line per group that has changed."""
    groups = worst_first(snapshot.groups())
    if live is not None:
        live.update(groups_table(snapshot, groups), refresh=True)
        return last
    rows = groups.to_pylist()
    statuses = {row["group"]: Status(row["worst_status"]).name for row in rows}
    for row, worst in zip(rows, snapshot.worst(rows), strict=True):
        name = row["group"]
        if last.get(name) != statuses[name]:
            _print(console, f"{statuses[name]:6} {name}, lag {row['totallag']:,}: {snapshot.reason(worst)}")
    return statuses


def demo_workload(bootstrap: str) -> tuple[list[Producer], list[ConsumerGroup]]:
    """The producers, and one group of every kind, with a name that tells how it behaves; not yet started."""
    orders = bootstrap, "orders"
    producers = [
        Producer(*orders, _ORDERS_RATE),
        Producer(bootstrap, "payments", 60.0),
        Producer(bootstrap, "clicks", 120.0, burst_every_s=2.0),
    ]
    groups: list[ConsumerGroup] = [
        Healthy(*orders, "billing-healthy"),
        Healthy(*orders, "search-healthy-fast-commits", commit_every_s=0.2),
        Healthy(bootstrap, "clicks", "reports-healthy-rare-commits", commit_every_s=15.0),
        Slow(*orders, "recommendations-slow", produced_rate=_ORDERS_RATE, fraction=0.8, behind=1_000),
        Slow(*orders, "ledger-1-percent-slow", produced_rate=_ORDERS_RATE, fraction=0.99, behind=1_000),
        Stalled(*orders, "email-stalled", behind=500),
        Stopped(*orders, "export-stopped", healthy_s=15.0),
        Rewinding(*orders, "fraud-rewinding"),
        CatchingUp(*orders, "backup-catching-up", produced_rate=_ORDERS_RATE, behind=15_000),
        Bursty(bootstrap, "clicks", "metrics-bursty-commits"),
        Transactional(bootstrap, "payments", "settlement-transactional", output="payments-settled"),
        Kip848(*orders, "pricing-new-protocol"),
        AssignOnly(bootstrap, "payments", "mirror-assign-only"),
        Pair(*orders, "inventory-pair"),
    ]
    return producers, groups


def example_commands(url: str, data: Path, group: str) -> list[str]:
    """Commands that show what Warren offers."""
    commands = {
        f"{url}/ in a browser": "the dashboard",
        f"warren groups --data-dir {data}": "all groups",
        f"curl {url}/v3/kafka/demo/consumer/{group}/lag": "the same answer as Burrow",
        f"curl {url}/v3/kafka/demo/consumer/{group}/explain": "the reasons",
        f"curl '{url}/v3/kafka/demo/lag?status=WARN,ERR'": "all groups with a problem",
        f"curl {url}/metrics": "for Prometheus",
        f"{url}/docs in a browser": "the whole API",
    }
    width = max(map(len, commands))
    return [f"{command:{width}}  # {comment}" for command, comment in commands.items()]


def _free_port(requested: int | None) -> int:
    """The requested port, or else the default port or any free one; raises DemoError if it is in use."""
    for port in (DEFAULT_PORT, 0) if requested is None else (requested,):
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)) as server:
            return int(server.getsockname()[1])
    raise DemoError(f"--port {requested}: the port is in use; choose another port, or leave out --port")


def demo_config(bootstrap: str, port: int) -> str:
    """The burrow.toml of the demo: one cluster, with a cycle every two seconds."""
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
        raise DemoError(f"--keep {keep}: the directory is not empty; choose a new one")
    return keep.resolve()


def _check_alive(warren: ChildProcess, log_path: Path, threads: Iterable[WorkloadThread]) -> None:
    for thread in threads:
        thread.check()
    if warren.exit_code is not None:
        raise DemoError(
            f"warren run ended with exit code {warren.exit_code}; the end of its log:\n{last_lines(log_path)}"
        )


def _await_verdicts(home: Path, warren: ChildProcess, log_path: Path, threads: Sequence[WorkloadThread]) -> None:
    deadline = time.monotonic() + _FIRST_VERDICTS_TIMEOUT_S
    while time.monotonic() < deadline:
        _check_alive(warren, log_path, threads)
        with contextlib.suppress(NoSnapshot):
            if open_snapshot(home / _DATA_DIR).groups().num_rows:
                return
        time.sleep(_REFRESH_S)
    raise DemoError(f"no verdicts within {_FIRST_VERDICTS_TIMEOUT_S:g} s; see {log_path}")


def _print(console: Console, text: str) -> None:
    # Names and paths are plain text: no markup, no colours, no wrapping.
    console.print(text, soft_wrap=True, highlight=False, markup=False)


@contextlib.contextmanager
def _step(console: Console, title: str) -> Iterator[None]:
    began = time.monotonic()
    with console.status(f"Starting {title} ..."):
        yield
    console.print(f"[green]✓[/green] {title} ({time.monotonic() - began:.1f} s)", highlight=False)


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    # From here on the parts stop in their order, no matter how often Ctrl-C is pressed.
    _on_interrupt(signal.SIG_IGN)
    raise KeyboardInterrupt


def _on_interrupt(handler: Callable[[int, FrameType | None], None] | signal.Handlers) -> None:
    """Handle Ctrl-C, and SIGTERM as well."""
    for signum in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signum, handler)
