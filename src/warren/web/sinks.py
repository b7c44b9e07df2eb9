"""The status of the sinks."""

from warren.config import Config
from warren.config.sinks import LakeSink, Sink
from warren.delivery.sink_status import SinkStatus, read_status
from warren.web.answers.clusters import SinkStateName, SinkSummary
from warren.web.api import Api
from warren.web.http import Request, Response, success, to_answer

LATE_INTERVALS = 3
"""How many intervals may wait before a sink is behind: one is always under way."""


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
