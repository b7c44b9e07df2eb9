"""How the last reload of the configuration ended: a file in the data directory, for the API and for commands."""

import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from warren.durable import replace_file
from warren.snapshot.requests import RequestKind, RequestQueue

FILE = "reload.json"
POLL_S = 0.1


class ReloadOutcome(msgspec.Struct, frozen=True):
    """The last attempt to read the configuration, at the start or later; without mistakes it was applied."""

    at_ms: int
    applied_ms: int
    """When the configuration in use was read."""
    mistakes: Sequence[str] = ()
    warnings: Sequence[str] = ()
    changed: Sequence[str] = ()
    """The sections that differ from those in use before, and how."""
    needs_restart: Sequence[str] = ()
    """What is in the file but not in use until a restart."""

    @property
    def is_successful(self) -> bool:
        """Whether the configuration was applied."""
        return not self.mistakes


def write_outcome(data_dir: Path, outcome: ReloadOutcome) -> None:
    """Replace the outcome."""
    replace_file(data_dir / FILE, msgspec.json.encode(outcome), is_durable=False)


def read_outcome(data_dir: Path) -> ReloadOutcome | None:
    """The outcome; None if there is none yet."""
    try:
        return msgspec.json.decode((data_dir / FILE).read_bytes(), type=ReloadOutcome)
    except (OSError, ValueError):
        return None


def request_reload(data_dir: Path, asked_at_ms: int, wait_s: float) -> ReloadOutcome | None:
    """Ask the pipeline to reload, and wait; None if it has not done so in time, but it will."""
    requests = RequestQueue(data_dir)
    request = requests.ask(RequestKind.RELOAD, asked_at_ms)
    give_up_at = time.monotonic() + wait_s
    while requests.is_pending(request.id):
        if time.monotonic() > give_up_at:
            return None
        time.sleep(POLL_S)
    return read_outcome(data_dir)
