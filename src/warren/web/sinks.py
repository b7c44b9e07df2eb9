"""The status of the sinks."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from warren.config import Config
from warren.config.sinks import LakeSink, Sink
from warren.delivery.sink_status import SinkStatus, read_status
from warren.web.api import Api
from warren.web.http import Request, Response, success, to_answer

LATE_INTERVALS = 3
"""How many intervals may wait before a sink is behind: one is always under way."""


SinkStateName = Literal["starting", "well", "behind", "trouble"]


class SinkSummary(Struct, rename={"class_name": "class", "delivered_ms": "delivered", "oldest_ms": "oldest"}):
    """A sink and its deliveries; one interval is one sample of all lags."""

    name: str
    class_name: str
    state: SinkStateName
    interval: Annotated[float, Meta(description="Seconds between samples")]
    points: Annotated[int, Meta(description="Points per interval")]
    delivered_ms: Annotated[int | None, Meta(description="Time of the last delivered interval")]
    waiting: Annotated[int, Meta(description="Intervals that are not delivered yet")]
    waiting_bytes: int
    oldest_ms: Annotated[int | None, Meta(description="Time of the oldest interval that is not delivered yet")]
    dropped: Annotated[int, Meta(description="Intervals dropped to make room, since the process started")]
    refused: Annotated[int, Meta(description="Requests that the server refused, since the process started")]
    trouble: Annotated[str, Meta(description="The last error; empty if there is none")]


def sinks(api: Api, request: Request) -> Response:
    """Get the status of every sink: what is delivered, what waits, and the last error."""
    return success(request, "sinks returned", sinks=sink_answers(api.config))


def sink_answers(config: Config) -> list[SinkSummary]:
    """The status of every configured sink."""
    answers = []
    for name, sink in sorted(config.sinks.items()):
        status = read_status(config.pipeline.data_dir, name) or SinkStatus(name, sink.class_name)
        given = {"name": name, "class_name": sink.class_name, "interval": sink.interval}
        answers.append(to_answer(SinkSummary, status, state=state_of(status, sink), **given))
    return answers


def state_of(status: SinkStatus, sink: Sink) -> SinkStateName:
    """The state of a sink in one word: starting, well, behind or trouble."""
    if status.noted_ms == 0:
        return "starting"
    if status.trouble:
        return "trouble"
    # A lake collects several intervals on purpose.
    collected = round(sink.write_interval / sink.interval) if isinstance(sink, LakeSink) else 0
    return "behind" if status.waiting > LATE_INTERVALS + collected else "well"
