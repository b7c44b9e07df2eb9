"""How sinks fare, as it is answered."""

from typing import Any

from warren.config import Config
from warren.config.sinks import LakeSink, Sink
from warren.delivery.sink_status import SinkStatus, read_status

LATE_INTERVALS = 3
"""So many intervals may wait before a sink is behind: one is always under way."""


def sinks_answer(config: Config) -> list[dict[str, Any]]:
    """Every sink of the configuration."""
    found = []
    for name, sink in sorted(config.sinks.items()):
        status = read_status(config.pipeline.data_dir, name) or SinkStatus(name, sink.class_name)
        found.append(
            {
                "name": name,
                "class": sink.class_name,
                "state": state_of(status, sink),
                "interval": sink.interval,
                "points": status.points,
                "delivered": status.delivered_ms,
                "waiting": status.waiting,
                "waiting_bytes": status.waiting_bytes,
                "oldest": status.oldest_ms,
                "dropped": status.dropped,
                "refused": status.refused,
                "trouble": status.trouble,
            }
        )
    return found


def state_of(status: SinkStatus, sink: Sink) -> str:
    """In a word: starting, well, behind, or in trouble."""
    if status.noted_ms == 0:
        return "starting"
    if status.trouble:
        return "trouble"
    # A lake lets them wait on purpose.
    gathered = round(sink.write_interval / sink.interval) if isinstance(sink, LakeSink) else 0
    return "behind" if status.waiting > LATE_INTERVALS + gathered else "well"
