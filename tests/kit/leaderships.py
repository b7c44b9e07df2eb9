"""A process that does what `warren run` does about incidents, on snapshots that somebody else publishes."""

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
from warren.notify.leadership import notifying
from warren.notify.senders.http import HttpSender
from warren.snapshot.store import KINDS, Store

LOOK_S = 0.05


def main(config_dir: Path) -> None:
    """Take up every new snapshot of the data directory until the end."""
    config = load(config_dir)
    store = Store(config.pipeline.data_dir)
    last = 0
    with notifying(config, store) as leadership:
        while True:
            with contextlib.suppress(SnapshotError, OSError):
                newest = store.newest()
                if newest.sequence != last:
                    leadership.take(newest)
                    last = newest.sequence
            time.sleep(LOOK_S)


def wrap_notifications() -> None:
    """Wrap the writes of incidents and the sending of notifications, in a process that dies alone."""
    os.environ[DRIVER] = str(os.getpid())
    send, store = HttpSender.send, IncidentStore.update_notification
    unstored: set[int] = set()

    def send_and_remember(self: HttpSender, notification: Any) -> None:
        send(self, notification)
        unstored.add(threading.get_ident())

    def store_notification(self: IncidentStore, *arguments: Any) -> None:
        store(self, *arguments)
        if threading.get_ident() in unstored:
            unstored.discard(threading.get_ident())
            reach("after-sent")

    wrap(IncidentStore, store, store_notification)
    wrap_both(IncidentStore, IncidentStore.write, "update")
    wrap_both(Changelog, Changelog.write, "changelog")
    wrap(HttpSender, send, send_and_remember)
    wrap_both(HttpSender, HttpSender.send, "send")


class DeskRun:
    """Such a process, with an incident file of its own; can be killed and started again."""

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
        """What it has said."""
        return (self.home / "log").read_text(errors="replace")

    @property
    def is_running(self) -> bool:
        """Whether it has neither been killed nor ended."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> Self:
        """Start it; gives no time to come up."""
        assert not self.is_running
        # What it said before it was killed is not what it says.
        with contextlib.closing(open_database(self.data)) as book:
            book.execute("DELETE FROM duty")
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
        """End it with SIGKILL, in the middle of whatever it does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def stop(self) -> None:
        """Hang it, as a machine that swaps does."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """Let it go on after that."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)


if __name__ == "__main__":
    import logging

    logging.basicConfig(level=logging.INFO)
    wrap_notifications()
    main(Path(sys.argv[1]))
