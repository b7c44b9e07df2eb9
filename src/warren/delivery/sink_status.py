"""The status of a sink, which it writes to a file in its folder of the data directory."""

from dataclasses import asdict, dataclass
from pathlib import Path

import orjson

from warren.durable import replace_file

FOLDER = "sinks"
FILE = "status.json"


@dataclass(frozen=True, slots=True)
class SinkStatus:
    """What a sink has delivered, what waits, and its last error."""

    name: str
    class_name: str
    noted_ms: int = 0
    sampled_ms: int | None = None
    """The newest interval that was sampled."""
    delivered_ms: int | None = None
    """The newest interval that was delivered, at least in part."""
    points: int = 0
    """Points of the newest interval."""
    waiting: int = 0
    """Intervals in the spool."""
    waiting_bytes: int = 0
    oldest_ms: int | None = None
    dropped: int = 0
    """Intervals dropped from a full spool, since the sink started."""
    refused: int = 0
    """Requests that the server refused, since the sink started."""
    trouble: str = ""
    """The last error, empty when the last attempt succeeded."""


def sink_folder(data_dir: Path, name: str) -> Path:
    """The folder of a sink; its name may have any characters."""
    return data_dir / FOLDER / name.replace("%", "%25").replace("/", "%2F")


def write_status(folder: Path, status: SinkStatus) -> None:
    """Replace the status of a sink."""
    replace_file(folder / FILE, orjson.dumps(asdict(status)), is_durable=False)


def read_status(data_dir: Path, name: str) -> SinkStatus | None:
    """The status of a sink; None when it has not written any yet."""
    try:
        return SinkStatus(**orjson.loads((sink_folder(data_dir, name) / FILE).read_bytes()))
    except (OSError, ValueError, TypeError):
        return None
