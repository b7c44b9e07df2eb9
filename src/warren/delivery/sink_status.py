"""How sinks fare, as each of them says in a file of its own in the data directory."""

from dataclasses import asdict, dataclass, replace
from pathlib import Path

import orjson

from warren.durable import replace_file

FOLDER = "sinks"
FILE = "status.json"


@dataclass(frozen=True, slots=True)
class SinkStatus:
    """What a sink has delivered, what waits, and why."""

    name: str
    class_name: str
    noted_ms: int = 0
    sampled_ms: int | None = None
    """The last interval that was taken up."""
    delivered_ms: int | None = None
    """The last one that was delivered, at least in part."""
    points: int = 0
    """How many points an interval has."""
    waiting: int = 0
    """Intervals that are not delivered yet."""
    waiting_bytes: int = 0
    oldest_ms: int | None = None
    dropped: int = 0
    """Intervals that had to make room for newer ones, since it runs."""
    refused: int = 0
    """Requests that the server will never take, since it runs."""
    trouble: str = ""

    def changed(self, **changes: int | str | None) -> "SinkStatus":
        """The same, with some things as they are now."""
        return replace(self, **changes)  # type: ignore[arg-type]


def sink_folder(data_dir: Path, name: str) -> Path:
    """Where a sink keeps what it has to send; its name may be of any characters."""
    return data_dir / FOLDER / name.replace("%", "%25").replace("/", "%2F")


def write_status(folder: Path, status: SinkStatus) -> None:
    """Say how a sink fares; a reader sees the old words or the new ones."""
    replace_file(folder / FILE, orjson.dumps(asdict(status)), is_durable=False)


def read_status(data_dir: Path, name: str) -> SinkStatus | None:
    """How a sink fares; None when it has not said anything yet."""
    try:
        return SinkStatus(**orjson.loads((sink_folder(data_dir, name) / FILE).read_bytes()))
    except (OSError, ValueError, TypeError):
        return None
