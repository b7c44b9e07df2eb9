"""All series for Prometheus, made by whole columns: Burrow's own, those of other lag exporters, and Warren's health."""

import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from warren import __version__
from warren.config import Config
from warren.domain.status import Status
from warren.domain.text_columns import as_text, bytes_of, joined
from warren.domain.windows import UNKNOWN
from warren.incidents.store.operator_actions import count_silences
from warren.incidents.store.reader import count_incidents, read_leadership
from warren.kafka.records.rejects import REJECT_DESCRIPTIONS
from warren.web.http import Response, accepts
from warren.web.index import Index
from warren.web.readiness import not_ready
from warren.web.sinks import sinks_answer

PLAIN = "text/plain; version=0.0.4; charset=utf-8; escaping=underscores"
OPEN = "application/openmetrics-text; version=1.0.0; charset=utf-8; escaping=underscores"
ROWS_AT_ONCE = 32_768
"""Pieces of some megabytes: one is made while the one before it is sent."""

Ints = NDArray[np.int64]

_STATUS = pa.array([str(int(status)) for status in Status])


@dataclass(frozen=True, slots=True)
class Family:
    """A metric with all its samples, as text that is ready to be sent."""

    name: str
    help: str
    samples: Iterable[bytes | memoryview]
    """Each sample with a line's end before it."""
    type: str = "gauge"


def answer(index: Index, config: Config, headers: Mapping[str, str], now_ms: int) -> Response:
    """All series in the form, and packed, as the scraper wishes."""
    is_open = accepts(headers.get("accept", ""), "application/openmetrics-text")
    parts = _text(index, config, now_ms, is_open=is_open)
    is_packed = accepts(headers.get("accept-encoding", ""), "gzip")
    more = (("Content-Encoding", "gzip"),) if is_packed else ()
    vary = ("Vary", "Accept, Accept-Encoding")
    return Response(200, _packed(parts) if is_packed else parts, OPEN if is_open else PLAIN, (*more, vary))


def _text(index: Index, config: Config, now_ms: int, *, is_open: bool) -> Iterator[bytes | memoryview]:
    for family in _families(index, config, now_ms):
        # A counter's samples end in _total; to OpenMetrics its family does not.
        is_counter = family.type == "counter" and is_open
        name = family.name.removesuffix("_total") if is_counter else family.name
        yield f"# HELP {name} {family.help}\n# TYPE {name} {family.type}".encode()
        yield from family.samples
        yield b"\n"
    if is_open:
        yield b"# EOF\n"


def _packed(parts: Iterator[bytes | memoryview]) -> Iterator[bytes]:
    packer = zlib.compressobj(1, zlib.DEFLATED, 31)
    for part in parts:
        if packed := packer.compress(part):
            yield packed
    yield packer.flush()


def _families(index: Index, config: Config, now_ms: int) -> Iterator[Family]:
    yield from _of_partitions(index)
    yield from _of_groups(index)
    yield from _of_topics(index)
    yield from _of_clusters(index, config)
    yield from _of_warren(index, now_ms)
    yield from _of_incidents(config, now_ms)
    yield from _of_sinks(config)


def _of_partitions(index: Index) -> Iterator[Family]:
    lines = _Lines(index)
    columns = index.columns
    whole = np.flatnonzero(columns["complete"] == 1.0)
    name = "burrow_kafka_consumer_current_offset"
    text = "The offset that a group has committed last to a partition, once its window is full"
    yield Family(name, text, lines.of(*lines.burrow(name), columns["end_offset"], whole))
    name = "burrow_kafka_topic_partition_status"
    text = "The verdict on a partition whose window is full: 1 OK, 2 WARN, 4 STOP, 5 STALL, 6 REWIND"
    yield Family(name, text, lines.of(*lines.burrow(name), columns["status"], whole, _STATUS))
    name = "burrow_kafka_consumer_partition_lag"
    lag = np.maximum(columns["current_lag"], 0)
    samples = chain(lines.of(*lines.burrow(name), lag), lines.never_committed(*lines.burrow(name)))
    yield Family(name, "How many messages a group is behind on a partition", samples)
    name = "kafka_consumergroup_group_lag"
    is_known = np.flatnonzero(columns["current_lag"] != UNKNOWN)
    text = "How many messages a group is behind on a partition, where that is known"
    yield Family(name, text, lines.of(*lines.exporter(name), columns["current_lag"], is_known))


class _Lines:
    """A sample for each of many partitions; names are escaped once, however many partitions have them."""

    def __init__(self, index: Index) -> None:
        self._index = index
        runs = index.runs
        self._run_of_row = np.repeat(np.arange(runs.first.size), runs.size)
        clusters = _escaped(pa.array(index.clusters, pa.string()))
        self._cluster = clusters.take(pa.array(index.group_cluster[runs.groups]))
        self._group = _escaped(index.group_names).take(pa.array(runs.groups))
        self._topic = _escaped(index.names["topic"]).take(pa.array(index.topic[runs.first]))
        highest = max(int(index.columns["partition"].max(initial=0)), int(runs.padded.max(initial=0)))
        self._numbers = pa.array([str(number) for number in range(highest + 1)], pa.string())

    def burrow(self, name: str) -> tuple[pa.StringArray, pa.StringArray]:
        """What stands before and after the number of a partition in each run, by Burrow's names."""
        before = joined(f'\n{name}{{cluster="', self._cluster, '",consumer_group="', self._group, '",partition="')
        return before, joined('",topic="', self._topic, '"} ')

    def exporter(self, name: str) -> tuple[pa.StringArray, str]:
        """The same by the names that dashboards of other exporters ask for.

        Theirs have the member's host and client too, with which a series would end at every rebalance.
        """
        before = joined(
            f'\n{name}{{cluster_name="', self._cluster, '",group="', self._group, '",topic="', self._topic,
            '",partition="',
        )  # fmt: skip
        return before, '"} '

    def of(
        self,
        before: pa.StringArray,
        after: pa.StringArray | str,
        values: NDArray[np.generic],
        rows: Ints | None = None,
        texts: pa.StringArray | None = None,
    ) -> Iterator[bytes | memoryview]:
        """The samples of all rows, or of some, in pieces that stay within the processor's reach."""
        is_all = rows is None or rows.size == self._index.rows
        count = self._index.rows if rows is None else rows.size
        for at in range(0, count, ROWS_AT_ONCE):
            some = slice(at, at + ROWS_AT_ONCE) if is_all or rows is None else rows[at : at + ROWS_AT_ONCE]
            run, partition = self._run_of_row[some], self._index.columns["partition"][some]
            shown = as_text(values[some]) if texts is None else texts.take(pa.array(values[some]))
            yield self._piece(before, after, run, partition, shown)

    def never_committed(self, before: pa.StringArray, after: pa.StringArray) -> Iterator[bytes | memoryview]:
        """A zero for partitions that a group never committed to, of topics to which it does, as Burrow has it."""
        runs = self._index.runs
        run, number, row = runs.padded_rows(0, runs.first.size, self._index.columns["partition"])
        missing = np.flatnonzero(row < 0)
        for at in range(0, missing.size, ROWS_AT_ONCE):
            some = missing[at : at + ROWS_AT_ONCE]
            yield self._piece(before, after, run[some], number[some], "0")

    def _piece(
        self,
        before: pa.StringArray,
        after: pa.StringArray | str,
        run: Ints,
        partition: NDArray[np.generic],
        shown: pa.StringArray | str,
    ) -> memoryview:
        runs = pa.array(run)
        behind = after if isinstance(after, str) else after.take(runs)
        return bytes_of(joined(before.take(runs), self._numbers.take(pa.array(partition)), behind, shown))


def _of_groups(index: Index) -> Iterator[Family]:
    clusters = _escaped(pa.array(index.clusters, pa.string())).take(pa.array(index.group_cluster))
    names = _escaped(index.group_names)
    burrow = joined('{cluster="', clusters, '",consumer_group="', names, '"} ')
    other = joined('{cluster_name="', clusters, '",group="', names, '"} ')
    lag = np.maximum(index.columns["current_lag"], 0)
    most = np.maximum.reduceat(lag, index.first[:-1]) if len(names) else lag
    for name, text, labels, values in (
        ("burrow_kafka_consumer_lag_total", "How many messages a group is behind", burrow, index.of_groups["totallag"]),
        (
            "burrow_kafka_consumer_status",
            "The verdict on a group, that of its worst partition: 1 OK, 2 WARN, 3 ERR",
            burrow,
            index.of_groups["status"],
        ),
        ("kafka_consumergroup_group_max_lag", "The lag of a group's partition that lags most", other, most),
        (
            "kafka_consumergroup_group_sum_lag",
            "How many messages a group is behind",
            other,
            index.of_groups["totallag"],
        ),
    ):
        yield Family(name, text, _samples(name, labels, values))


def _of_topics(index: Index) -> Iterator[Family]:
    name = "burrow_kafka_topic_partition_offset"
    samples: list[bytes | memoryview] = []
    for cluster, topics in index.topics.items():
        names = _escaped(pa.array(topics.names, pa.string()))
        highest = int(topics.partitions.max(initial=0))
        numbers = pa.array([str(number) for number in range(highest)], pa.string())
        topic = np.repeat(np.arange(topics.partitions.size), topics.partitions)
        ends = np.cumsum(topics.partitions)
        number = np.arange(topic.size) - np.repeat(ends - topics.partitions, topics.partitions)
        before = joined('{cluster="', _escaped(pa.array([cluster])), '",partition="')[0].as_py()
        labels = joined(before, numbers.take(pa.array(number)), joined('",topic="', names, '"} ').take(pa.array(topic)))
        heads = index.heads[np.repeat(topics.first_row, topics.partitions) + number]
        samples += _samples(name, labels, heads, heads != UNKNOWN)
    yield Family(name, "The head of a topic's partition", samples)


def _of_clusters(index: Index, config: Config) -> Iterator[Family]:
    known = index.snapshot.manifest.clusters if index.snapshot else {}
    held = {name: state for name, state in known.items() if name in config.clusters}
    yield _gauge(
        "warren_cluster_up",
        "Whether a cluster answers and its groups are judged",
        [({"cluster": name}, int(state.is_judged)) for name, state in held.items()],
    )
    yield _gauge(
        "warren_cluster_lag",
        "How many messages all groups of a cluster are behind",
        [({"cluster": name}, state.totallag) for name, state in held.items()],
    )
    for what, name in (("groups", "warren_cluster_groups"), ("partitions", "warren_cluster_partitions")):
        yield _gauge(
            name,
            f"How many {what} of a cluster have each verdict",
            [
                ({"cluster": cluster, "status": status}, count)
                for cluster, state in held.items()
                for status, count in getattr(state, f"{what}_by_status").items()
            ],
        )
    positions = [
        ({"cluster": cluster, "topic": topic, "partition": str(partition)}, position)
        for cluster, state in held.items()
        for topic, source in state.sources.items()
        for partition, position in source.positions.items()
    ]
    yield _gauge(
        "warren_offsets_backlog",
        "How many records of a partition of the offsets topic are not read yet",
        [(labels, position.backlog) for labels, position in positions],
    )
    yield _gauge(
        "warren_offsets_held_by_transaction",
        "How many records of a partition of the offsets topic wait for an open transaction",
        [(labels, position.held_by_transactions) for labels, position in positions],
    )


def _of_warren(index: Index, now_ms: int) -> Iterator[Family]:
    yield _gauge("warren_build_info", "The version of Warren", [({"version": __version__}, 1)])
    is_ready = not_ready(index.snapshot, now_ms) is None
    yield _gauge("warren_ready", "Whether the verdicts are caught up and fresh", [({}, int(is_ready))])
    if index.snapshot is None:
        return
    manifest = index.snapshot.manifest
    age_s = max(now_ms - manifest.now_ms, 0) / 1000
    yield _gauge("warren_snapshot_age_seconds", "How old the verdicts are", [({}, age_s)])
    yield _gauge(
        "warren_cycle_stage_seconds",
        "How long each stage of the last cycle took",
        [({"stage": stage}, took / 1000) for stage, took in manifest.cycle_ms.items()],
    )
    yield _gauge("warren_trigger_seconds", "How often verdicts are due", [({}, manifest.trigger_ms / 1000)])
    # A reason that has not come up yet is there as well: from nothing to one is no increase to Prometheus.
    none = {words: 0 for reject, words in REJECT_DESCRIPTIONS.items() if reject}
    rejects = [
        ({"cluster": cluster, "reason": reason}, count)
        for cluster in manifest.clusters
        for reason, count in {**none, **manifest.rejects.get(cluster, {})}.items()
    ]
    family = _gauge("warren_rejected_records_total", "Records of offsets topics that could not be read", rejects)
    yield Family(family.name, family.help, family.samples, "counter")


def _of_sinks(config: Config) -> Iterator[Family]:
    sinks = sinks_answer(config)
    if not sinks:
        return
    for name, text, key in (
        ("warren_sink_intervals_waiting", "How many intervals of a sink are not delivered yet", "waiting"),
        ("warren_sink_bytes_waiting", "How much of a sink's spool is not delivered yet", "waiting_bytes"),
        ("warren_sink_points", "How many points a sink sends each interval", "points"),
        ("warren_sink_intervals_dropped", "Intervals that had to make room for newer ones, since it runs", "dropped"),
        ("warren_sink_requests_refused", "Requests that will never be taken, since it runs", "refused"),
    ):
        yield _gauge(name, text, [({"sink": one["name"], "class": one["class"]}, one[key]) for one in sinks])
    delivered = [
        ({"sink": one["name"], "class": one["class"]}, one["delivered"] / 1000)
        for one in sinks
        if one["delivered"] is not None
    ]
    yield _gauge("warren_sink_delivered_seconds", "The time of the last interval that was delivered", delivered)
    well = [({"sink": one["name"], "class": one["class"]}, int(one["state"] == "well")) for one in sinks]
    yield _gauge("warren_sink_up", "Whether a sink is well, and not behind or in trouble", well)


def _of_incidents(config: Config, now_ms: int) -> Iterator[Family]:
    data_dir = config.pipeline.data_dir
    found = count_incidents(data_dir)
    yield _gauge(
        "warren_incidents_open",
        "How many groups of a cluster are in trouble and known to be",
        [({"cluster": name}, found.open_incidents.get(name, 0)) for name in sorted(config.clusters)],
    )
    yield _gauge(
        "warren_notifier_messages",
        "How many messages of a notifier are sent, wait to be taken, or were given up",
        [
            ({"notifier": name, "state": state}, found.notifications.get((name, state), 0))
            for name in sorted(config.notifiers)
            for state in ("sent", "waiting", "given_up")
        ],
    )
    yield _gauge(
        "warren_notifier_active",
        "Whether this Warren notifies, and not another or nobody",
        [({}, int(read_leadership(data_dir, now_ms).is_active))],
    )
    silences = count_silences(data_dir, now_ms)
    yield _gauge("warren_silences_active", "How many silences are in force", [({}, silences)])


def _gauge(name: str, text: str, samples: Sequence[tuple[Mapping[str, str], float]]) -> Family:
    """A metric of few samples."""
    lines = []
    for labels, value in samples:
        inside = ",".join(f'{key}="{_escape(held)}"' for key, held in labels.items())
        lines.append(f"\n{name}{{{inside}}} {value}" if inside else f"\n{name} {value}")
    return Family(name, text, ["".join(lines).encode()])


def _samples(
    name: str, labels: pa.StringArray, values: NDArray[np.generic], where: NDArray[np.bool_] | None = None
) -> list[bytes | memoryview]:
    """A sample each, of all or of some."""
    if where is not None and not where.all():
        labels, values = labels.filter(pa.array(where)), values[where]
    return [bytes_of(joined(f"\n{name}", labels, as_text(values)))] if len(labels) else []


def _escaped(names: pa.StringArray) -> pa.StringArray:
    for plain, escaped in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n")):
        if pc.any(pc.match_substring(names, plain)).as_py():
            names = pc.replace_substring(names, plain, escaped)
    return names


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
