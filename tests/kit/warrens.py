"""A Warren on some clusters: `warren run` as a process of its own, its burrow.toml, and what it publishes."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from warren.domain.rules import Reason
from warren.domain.status import Status
from warren.errors import SnapshotError
from warren.snapshot.manifest import Manifest
from warren.snapshot.reader import Snapshot
from warren.snapshot.store import Store

T = TypeVar("T")
Sections = dict[str, dict[str, Any]]

LOOK_S = 0.1
STOP_S = 60.0
DEADLINE_S = 300.0
"""How long a condition may take: far longer than it does, as test machines are noisy."""


def wait_for(holds: Callable[[], T | None], what: str, within_s: float = DEADLINE_S) -> T:
    """Wait until something is there (or true) and give it."""
    deadline = time.monotonic() + within_s
    while not (found := holds()):
        assert time.monotonic() < deadline, f"not within {within_s:g} s: {what}"
        time.sleep(LOOK_S)
    return found


def sections_for(clusters: Mapping[str, str], *, trigger: float = 1.0, offset_refresh: int = 3) -> Sections:
    """The sections of a burrow.toml that watches these clusters (name and address), to be changed at will."""
    sections: Sections = {}
    for name, bootstrap in clusters.items():
        servers = bootstrap.split(",")
        sections[f"cluster.{name}"] = {
            "class-name": "kafka",
            "servers": servers,
            "topic-refresh": 2,
            "offset-refresh": offset_refresh,
        }
        sections[f"consumer.{name}"] = {"class-name": "kafka", "cluster": name, "servers": servers}
    sections["storage.memory"] = {"class-name": "inmemory", "intervals": 10}
    sections["httpserver.default"] = {"address": "127.0.0.1:0"}
    sections["pipeline"] = {"trigger": trigger, "master": "local[2]", "buckets": 2, "driver-memory": "1g"}
    return sections


def to_toml(sections: Sections) -> str:
    """Sections as the text of a burrow.toml."""
    return "\n".join(
        f"[{name}]\n" + "".join(f"{key} = {_value(value)}\n" for key, value in keys.items())
        for name, keys in sections.items()
    )


def _value(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return f"[{', '.join(_value(each) for each in value)}]"
    return str(value) if isinstance(value, int | float) else f"'{value}'"


def _outer_environment() -> dict[str, str]:
    """This process's environment, less what a Warren or a session that ran in this process has left in it."""
    return {
        name: value for name, value in os.environ.items() if not name.startswith(("WARREN_", "SPARK_LOCAL", "PYSPARK_"))
    }


class WarrenRun:
    """`warren run` in a directory of its own; can be killed, stopped and started again on the same data."""

    def __init__(self, home: Path, sections: Sections | str, environment: Mapping[str, str] | None = None) -> None:
        home.mkdir(parents=True, exist_ok=True)
        self.home = home
        self.data = home / "warren-data"
        self.store = Store(self.data)
        self._mark = f"WARREN_TEST_RUN={uuid.uuid4().hex}"
        self._environment = dict(environment or {})
        self._process: subprocess.Popen[bytes] | None = None
        self.configure(sections)

    def configure(self, sections: Sections | str) -> None:
        """Write the burrow.toml that the next start or reload reads, from its sections or as its text."""
        text = sections if isinstance(sections, str) else to_toml(sections)
        (self.home / "burrow.toml").write_text(text, encoding="utf-8")

    @property
    def log(self) -> str:
        """All that its runs have logged so far."""
        path = self.home / f"{self._mark[-8:]}.log"
        return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""

    def url(self) -> str:
        """Where its API answers, as soon as it does."""
        urls: list[str] = wait_for(lambda: re.findall(r"answering at (\S+)", self.log), "the API is there")
        return urls[-1]

    @property
    def is_running(self) -> bool:
        """Whether it was started and has not ended."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> Self:
        """Start a run; gives no time to come up: wait for what it should publish."""
        assert self._process is None
        name, _, value = self._mark.partition("=")
        with (self.home / f"{value[-8:]}.log").open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "warren.cli", "run", "--config-dir", str(self.home)],
                cwd=self.home,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env={**_outer_environment(), name: value, **self._environment},
            )
        return self

    def kill(self) -> None:
        """End the driver with SIGKILL, in the middle of whatever it does, and see that nothing of it is left."""
        assert self._process is not None
        self._process.kill()
        self.wait_killed()

    def wait_killed(self) -> None:
        """Wait until the driver has been killed, and for everything it had started to go with it."""
        assert self.wait_exit() == -signal.SIGKILL, self._last_words()
        wait_for(lambda: not self.left_behind(), f"nothing is left of a killed Warren: {self.left_behind()}", 60.0)

    def hang_up(self) -> None:
        """Ask for a reload as an operator does, with SIGHUP."""
        assert self._process is not None
        self._process.send_signal(signal.SIGHUP)

    def stop(self) -> int:
        """End the run as an operator does, and give its exit code."""
        assert self._process is not None
        self._process.terminate()
        return self.wait_exit(STOP_S)

    def wait_exit(self, within_s: float = DEADLINE_S) -> int:
        """Wait until the run has ended by itself and give its exit code."""
        assert self._process is not None
        try:
            code = self._process.wait(within_s)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"warren run goes on after {within_s:g} s:\n{self._last_words()}") from None
        self._process = None
        return code

    def processes(self) -> list[int]:
        """The processes that a run has started, itself among them: drivers, JVMs, workers, watchers."""
        found = []
        for folder in Path("/proc").iterdir():
            # Processes come and go while we look.
            with contextlib.suppress(OSError):
                if folder.name.isdigit() and self._mark.encode() in (folder / "environ").read_bytes().split(b"\0"):
                    found.append(int(folder.name))
        return found

    def left_behind(self) -> list[str]:
        """The command lines of the processes that a run has started and that are still there."""
        found = []
        for pid in self.processes():
            with contextlib.suppress(OSError):
                line = Path(f"/proc/{pid}/cmdline").read_bytes()
                found.append(line.replace(b"\0", b" ").decode(errors="replace")[:200])
        return found

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is None:
            return
        code = self.stop() if error is None else self._end()
        assert error is not None or code == 0, f"warren run ended with {code}:\n{self._last_words()}"

    def _end(self) -> int:
        assert self._process is not None
        self._process.kill()
        return self.wait_exit()

    def _last_words(self) -> str:
        return "\n".join(self.log.splitlines()[-30:])

    def snapshot(self) -> Snapshot | None:
        """The newest judged snapshot, None before there is one."""
        with contextlib.suppress(SnapshotError):
            snapshot = Snapshot(self.store, self.store.newest())
            return snapshot if snapshot.is_judged else None
        return None

    def wait_for(self, holds: Callable[[Snapshot], T | None], what: str, within_s: float = DEADLINE_S) -> T:
        """Wait until something holds in the newest snapshot and give it."""

        def look() -> T | None:
            assert self._process is not None
            assert self._process.poll() is None, f"warren run ended:\n{self._last_words()}"
            snapshot = self.snapshot()
            # A snapshot whose files are gone has a newer one, which the next look finds.
            with contextlib.suppress(FileNotFoundError):
                return holds(snapshot) if snapshot else None
            return None

        try:
            return wait_for(look, what, within_s)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self._last_words()}") from None

    def wait_for_cycles(self, count: int) -> Snapshot:
        """Wait for a snapshot that was begun after `count` more have been published."""
        before = self.store.newest().sequence
        return self.wait_for(lambda s: s if s.manifest.sequence > before + count else None, f"{count} more cycles")


@dataclass(frozen=True)
class Seen:
    """One snapshot as it was read while it was new."""

    manifest: Manifest
    published_s: float
    partitions: dict[tuple[str, str, str, int], dict[str, Any]]
    """By cluster, group, topic and partition."""
    groups: dict[tuple[str, str], dict[str, Any]]
    """By cluster and group."""

    def verdicts(self, cluster: str, group: str) -> set[str]:
        """The statuses of a group's partitions; empty when the group is not known."""
        return {
            Status(row["status"]).name for (c, g, _, _), row in self.partitions.items() if (c, g) == (cluster, group)
        }

    def why(self, cluster: str, group: str) -> list[str]:
        """Each partition of a group with what decided its verdict, for the words of a failed assertion."""
        return [
            f"#{self.manifest.sequence} {topic}/{partition} {Status(row['status']).name} "
            f"{Reason(row['reason']).name} now {self.manifest.now_ms} head {row['head']} lag {row['current_lag']} "
            f"offsets {row['offsets']} times {row['times_ms']} "
            f"lags {list(zip(row['lags_low'], row['lags'], row['lags_high'], strict=True))}"
            for (c, g, topic, partition), row in self.partitions.items()
            if (c, g) == (cluster, group)
        ]


def see(snapshot: Snapshot) -> Seen:
    """A snapshot in memory, for tests with few partitions."""
    path = snapshot.store.root / "manifests" / f"{snapshot.manifest.sequence:020d}.json"
    partitions = snapshot.partitions().to_pylist()
    return Seen(
        snapshot.manifest,
        path.stat().st_mtime,
        {(row["cluster"], row["group"], row["topic"], row["partition"]): row for row in partitions},
        {(row["cluster"], row["group"]): row for row in snapshot.groups().to_pylist()},
    )


class Recorder:
    """Reads every snapshot of a data directory as it appears; none is left out, none is half."""

    def __init__(self, data: Path) -> None:
        self._store = Store(data)
        self._seen: dict[int, Seen] = {}
        self._stopping = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="recorder", daemon=True)

    @property
    def seen(self) -> list[Seen]:
        """The judged snapshots so far, oldest first."""
        return [self._seen[sequence] for sequence in sorted(self._seen)]

    def since(self, moment_s: float) -> list[Seen]:
        """The snapshots that were judged after a moment of the wall clock."""
        return [seen for seen in self.seen if seen.manifest.now_ms >= moment_s * 1000]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join(30.0)
        if self._error is not None:
            raise AssertionError(f"a published snapshot could not be read: {self._error!r}") from self._error
        self._look()

    def _run(self) -> None:
        while not self._stopping.wait(LOOK_S):
            try:
                self._look()
            except Exception as error:  # noqa: BLE001 - it reaches the test at the end
                self._error = error
                return

    def _look(self) -> None:
        for sequence in reversed(self._store.sequences()):
            if sequence not in self._seen:
                snapshot = Snapshot(self._store, self._store.manifest(sequence))
                if snapshot.is_judged and snapshot.manifest.cycle_ms:
                    self._seen[sequence] = see(snapshot)


@contextlib.contextmanager
def recorded(run: WarrenRun) -> Iterator[Recorder]:
    """A Warren that runs, and a record of all it publishes."""
    with Recorder(run.data) as recorder, run:
        yield recorder
