"""The metrics of partitions, groups and topics, built column by column: Burrow's names and those of other exporters."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from warren.domain.arrays import Ints
from warren.domain.status import Status
from warren.domain.text_columns import as_text, bytes_of, interleaved, joined, replace_matching
from warren.domain.time_lag import TimeLagMethod
from warren.domain.windows import UNKNOWN
from warren.snapshot.time_lag import TimeLagColumns, known_values
from warren.web.index import Index

Labels = tuple[pa.StringArray, pa.StringArray | None]
"""What precedes and what follows the partition number in the samples of each run; None if nothing follows it."""

ROWS_PER_PART = 16_384
"""Parts of a few megabytes: one is built while the one before is sent."""

LABEL_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})
"""Characters of label values that the text format escapes."""
_STATUS = pa.array([str(int(status)) for status in Status])


@dataclass(frozen=True, slots=True)
class Family:
    """A metric with all its samples as text; a line break precedes each sample."""

    name: str
    help: str
    samples: Iterable[bytes | memoryview]
    type: str = "gauge"


def partition_families(index: Index) -> Iterator[Family]:
    """The metrics of the partitions of groups."""
    samples = _PartitionSamples(index)
    columns = index.columns
    lag, full_windows = columns["current_lag"], np.flatnonzero(columns["complete"] == 1.0)
    name = "burrow_kafka_consumer_current_offset"
    help_text = "Last offset that a group committed for a partition, once its window is full"
    yield Family(name, help_text, samples.of(samples.burrow(name), columns["end_offset"], full_windows))
    name = "burrow_kafka_topic_partition_status"
    help_text = "Status of a partition whose window is full: 1 OK, 2 WARN, 4 STOP, 5 STALL, 6 REWIND"
    yield Family(name, help_text, samples.of(samples.burrow(name), columns["status"], full_windows, _STATUS))
    name = "burrow_kafka_consumer_partition_lag"
    labels = samples.burrow(name)
    lag_samples = chain(samples.of(labels, np.maximum(lag, 0)), samples.never_committed(labels))
    yield Family(name, "Lag of a group on a partition, in messages", lag_samples)
    name = "kafka_consumergroup_group_lag"
    help_text = "Lag of a group on a partition, in messages, if it is known"
    yield Family(name, help_text, samples.of(samples.exporter(name), lag, np.flatnonzero(lag != UNKNOWN)))
    name = "kafka_consumergroup_group_lag_seconds"
    help_text = "How long the first unread message of a partition has been waiting, if it is known"
    seconds = known_values(columns["seconds_behind"])
    yield Family(name, help_text, samples.of(samples.exporter(name), seconds, np.flatnonzero(~np.isnan(seconds))))


class _PartitionSamples:
    """Builds one sample per partition; labels are built once per run of a group and topic."""

    def __init__(self, index: Index) -> None:
        self._index = index
        runs = index.runs
        self._run_of_row = np.repeat(np.arange(runs.first.size), runs.size)
        clusters = _escape_labels(pa.array(index.clusters, pa.string()))
        self._cluster = clusters.take(pa.array(index.group_cluster[runs.group]))
        self._group = _escape_labels(index.group_names).take(pa.array(runs.group))
        self._topic = _escape_labels(index.names["topic"]).take(pa.array(index.codes["topic"][runs.first]))
        highest = max(int(index.columns["partition"].max(initial=0)), int(runs.listed.max(initial=0)))
        self._numbers = as_text(np.arange(highest + 1))
        self._last_numbers = joined(self._numbers, '"} ')

    def burrow(self, name: str) -> Labels:
        """Burrow's labels."""
        before = joined(f'\n{name}{{cluster="', self._cluster, '",consumer_group="', self._group, '",partition="')
        return before, joined('",topic="', self._topic, '"} ')

    def exporter(self, name: str) -> Labels:
        """The labels that the dashboards of other exporters use.

        Those exporters also have the member's host and client id; with them every rebalance would end a series.
        """
        names = '",group="', self._group, '",topic="', self._topic
        return joined(f'\n{name}{{cluster_name="', self._cluster, *names, '",partition="'), None

    def of(
        self, labels: Labels, values: NDArray[np.generic], rows: Ints | None = None, texts: pa.StringArray | None = None
    ) -> Iterator[memoryview]:
        """The samples of all rows, or of some; `texts` are the values as text, by value."""
        if rows is not None and rows.size == self._index.rows:
            rows = None
        for start in range(0, self._index.rows if rows is None else rows.size, ROWS_PER_PART):
            part = slice(start, start + ROWS_PER_PART)
            selected = part if rows is None else rows[part]
            value = as_text(values[selected]) if texts is None else texts.take(pa.array(values[selected]))
            yield self._part(labels, self._run_of_row[selected], self._index.columns["partition"][selected], value)

    def never_committed(self, labels: Labels) -> Iterator[memoryview]:
        """A zero for each partition that a group never committed to, of the topics it consumes, as in Burrow."""
        runs = self._index.runs
        run, partition, row = runs.listed_rows(np.arange(runs.first.size), self._index.columns["partition"])
        missing = np.flatnonzero(row < 0)
        for start in range(0, missing.size, ROWS_PER_PART):
            part = missing[start : start + ROWS_PER_PART]
            zeros = pa.repeat("0", part.size)
            yield self._part(labels, run[part], partition[part], zeros)

    def _part(self, labels: Labels, run: Ints, partition: NDArray[np.generic], value: pa.StringArray) -> memoryview:
        first, count = int(run[0]), int(run[-1] - run[0]) + 1
        before, after = (texts if texts is None else texts.slice(first, count) for texts in labels)
        if after is None:
            return bytes_of(interleaved((before, run - first), (self._last_numbers, partition), (value, None)))
        numbers = self._numbers, partition
        return bytes_of(interleaved((before, run - first), numbers, (after, run - first), (value, None)))


def group_families(index: Index) -> Iterator[Family]:
    """The metrics of groups."""
    clusters = _escape_labels(pa.array(index.clusters, pa.string())).take(pa.array(index.group_cluster))
    groups = _escape_labels(index.group_names)
    burrow = joined('{cluster="', clusters, '",consumer_group="', groups, '"} ')
    exporter = joined('{cluster_name="', clusters, '",group="', groups, '"} ')
    lag = np.maximum(index.columns["current_lag"], 0)
    max_lag = np.maximum.reduceat(lag, index.first_row[:-1]) if len(groups) else lag
    total, status = index.group_columns["totallag"], index.group_columns["status"]
    status_help = "Status of a group, that of its most severe partition: 1 OK, 2 WARN, 3 ERR"
    for name, help_text, labels, values in (
        ("burrow_kafka_consumer_lag_total", "Lag of a group, in messages", burrow, total),
        ("burrow_kafka_consumer_status", status_help, burrow, status),
        ("kafka_consumergroup_group_max_lag", "Largest lag of a group's partitions, in messages", exporter, max_lag),
        ("kafka_consumergroup_group_sum_lag", "Lag of a group, in messages", exporter, total),
    ):
        yield Family(name, help_text, _samples(name, labels, values))
    yield from time_lag_families(index.time_lag, burrow, exporter)


def time_lag_families(lag: TimeLagColumns, burrow: pa.StringArray, exporter: pa.StringArray) -> Iterator[Family]:
    """Lag in time of groups; a group of which something is unknown has no sample of it."""
    catch_up = np.where(lag.is_falling_behind, np.inf, lag.catch_up_seconds)
    has_lost = (lag.method != TimeLagMethod.UNKNOWN) | (lag.lost_messages > 0)
    lost = np.where(has_lost, lag.lost_messages, np.nan)
    for name, help_text, labels, values in (
        (
            "kafka_consumergroup_group_max_lag_seconds",
            "How long the first unread message of a group has been waiting, on the partition furthest behind",
            exporter,
            lag.seconds_behind,
        ),
        (
            "warren_group_oldest_unread_age_seconds",
            "How old the oldest first unread message of a group's partitions is by its own timestamp, if that is known",
            burrow,
            lag.oldest_unread_age_seconds,
        ),
        (
            "warren_group_catch_up_seconds",
            "How long until a group has read everything, at least, at present rates; +Inf if it falls behind",
            burrow,
            catch_up,
        ),
        (
            "warren_group_retention_left_seconds",
            "How long until unread messages of a group are deleted, at present rates, if they are",
            burrow,
            lag.retention_left_seconds,
        ),
        ("warren_group_lost_messages", "Messages that were deleted before a group read them", burrow, lost),
        (
            "warren_group_produced_per_second",
            "Messages per second produced to the partitions of a group, averaged over about a minute",
            burrow,
            lag.rates["produced_1m"],
        ),
        (
            "warren_group_consumed_per_second",
            "Messages per second that a group consumes, averaged over about a minute",
            burrow,
            lag.rates["consumed_1m"],
        ),
    ):
        is_known = ~np.isnan(values)
        yield Family(name, help_text, _samples(name, labels.filter(pa.array(is_known)), values[is_known]))


def topic_families(index: Index) -> Iterator[Family]:
    """The heads of topics."""
    name = "burrow_kafka_topic_partition_offset"
    samples: list[Iterator[memoryview]] = []
    for cluster, topics in index.topics.items():
        topic = np.repeat(np.arange(topics.partitions.size), topics.partitions)
        first = np.cumsum(topics.partitions) - topics.partitions
        partition = np.arange(topic.size) - first[topic]
        cluster_label = _escape_labels(pa.array([cluster]))[0].as_py()
        topic_labels = joined('",topic="', _escape_labels(pa.array(topics.names, pa.string())), '"} ')
        labels = joined(
            f'{{cluster="{cluster_label}",partition="', as_text(partition), topic_labels.take(pa.array(topic))
        )
        heads = index.heads[topics.first_row[topic] + partition]
        is_known = heads != UNKNOWN
        samples.append(_samples(name, labels.filter(pa.array(is_known)), heads[is_known]))
    yield Family(name, "Head of a topic's partition: its log end offset", chain.from_iterable(samples))


def _samples(name: str, labels: pa.StringArray, values: NDArray[np.generic]) -> Iterator[memoryview]:
    for start in range(0, len(labels), ROWS_PER_PART):
        part = values[start : start + ROWS_PER_PART]
        texts = as_text(part)
        if values.dtype.kind == "f":
            texts = pc.if_else(pa.array(np.isinf(part)), "+Inf", texts)
        yield bytes_of(joined(f"\n{name}", labels.slice(start, ROWS_PER_PART), texts))


def _escape_labels(values: pa.StringArray) -> pa.StringArray:
    return replace_matching(values, values, r'[\\"\n]', lambda value: value.translate(LABEL_ESCAPES))
