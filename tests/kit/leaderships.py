"""A process that runs the leadership of `warren run`, on snapshots that the test publishes."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, Self

from tests.kit.faults import DRIVER, FOLDER, reach, wrap, wrap_both
from warren.config import load
from warren.errors import SnapshotError
from warren.incidents.store.changelog import Changelog
from warren.incidents.store.database import open_database
from warren.incidents.store.store import IncidentStore
from warren.notify.leadership import Leadership
from warren.notify.senders.http import HttpSender
from warren.snapshot.store import KINDS, Store

POLL_S = 0.05


def main(config_dir: Path) -> None:
    """Process every new snapshot of the data directory until it is killed."""
    config = load(config_dir)
    store = Store(config.pipeline.data_dir)
    last = 0
    with contextlib.closing(Leadership(config, store)) as leadership:
        while True:
            with contextlib.suppress(SnapshotError, OSError):
                newest = store.newest()
                if newest.sequence != last:
                    leadership.process(newest)
                    last = newest.sequence
            time.sleep(POLL_S)


def wrap_notifications() -> None:
    """Wrap the writes of incidents and the sending of notifications, in a process that dies alone."""
    os.environ[DRIVER] = str(os.getpid())
    send, store = HttpSender.send, IncidentStore.update_notification
    unstored: set[int] = set()

    def send_and_remember(self: HttpSender, notification: Any) -> None:
        send(self, notification)
        unstored.add(threading.get_ident())

    def store_notification(self: IncidentStore, *arguments: Any, **changes: Any) -> None:
        store(self, *arguments, **changes)
        if threading.get_ident() in unstored:
            unstored.discard(threading.get_ident())
            reach("after-sent")

    wrap(IncidentStore, store, store_notification)
    wrap_both(IncidentStore, IncidentStore.write, "update")
    wrap_both(Changelog, Changelog.write, "changelog")
    wrap(HttpSender, send, send_and_remember)
    wrap_both(HttpSender, HttpSender.send, "send")


class LeadershipProcess:
    """The process, with an incident store of its own; it can be killed and started again."""

    def __init__(self, home: Path, snapshots: Path, burrow_toml: str, faults: Path) -> None:
        self.home = home
        self.data = home / "warren-data"
        self.data.mkdir(parents=True)
        for kind in (*KINDS, "manifests"):
            (self.data / kind).symlink_to(snapshots / kind)
        (home / "burrow.toml").write_text(burrow_toml)
        self._faults = faults
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> str:
        """Its log."""
        return (self.home / "log").read_text(errors="replace")

    @property
    def is_running(self) -> bool:
        """Whether the process lives."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> Self:
        """Start it, without waiting until it is ready."""
        assert not self.is_running
        # The state that it reported before it was killed is out of date.
        with contextlib.closing(open_database(self.data)) as database:
            database.execute("DELETE FROM duty")
        with (self.home / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.kit.leaderships", str(self.home)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, FOLDER: str(self._faults)},
            )
        return self

    def kill(self) -> None:
        """Kill it with SIGKILL."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def suspend(self) -> None:
        """Suspend it, like a machine that swaps."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Resume it."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)


if __name__ == "__main__":
    import logging

    logging.basicConfig(level=logging.INFO)
    wrap_notifications()
    main(Path(sys.argv[1]))
