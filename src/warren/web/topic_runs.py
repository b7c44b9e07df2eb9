"""Runs of rows: the partitions of one group on one topic, which follow each other in the index."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from warren.domain.arrays import Codes, Ints, ranges


@dataclass(frozen=True, slots=True)
class Topics:
    """The topics of one cluster, sorted by name; `first_row` is a topic's first row among the heads."""

    names: list[str]
    partitions: Ints
    first_row: Ints


@dataclass(frozen=True, slots=True)
class TopicRuns:
    """All runs, in the order of their rows."""

    group: Ints
    """The group row of each run."""
    first: Ints
    """The first partition row of each run."""
    size: Ints
    """How many partitions the group has committed to."""
    listed: Ints
    """How many partitions are listed: all of the topic's, also those without a commit."""
    first_of_group: Ints
    """The first run of each group, and the number of all runs."""
    by_topic: Ints
    """The runs in the order of `topic_keys`."""
    topic_keys: Ints
    """One number per cluster and topic, sorted."""

    def of_topic(self, topic_key: int) -> Ints:
        """The runs of a topic, by its key."""
        begin, end = np.searchsorted(self.topic_keys, [topic_key, topic_key + 1])
        return self.by_topic[begin:end]

    def listed_rows(self, runs: Ints, partition: NDArray[np.generic]) -> tuple[Ints, Ints, Ints]:
        """Every listed partition of some runs: its run, its number and its row.

        The row is -1 if the group never committed to the partition.
        """
        size, listed, start = self.size[runs], self.listed[runs], self.first[runs]
        run, committed = np.repeat(runs, listed), ranges(start, size)
        if run.size == committed.size:
            return run, partition[committed].astype(np.int64), committed
        first = np.cumsum(listed) - listed
        number = np.arange(run.size) - np.repeat(first, listed)
        within = committed - np.repeat(start, size)
        # A run that lists only its commits may have any partition numbers: the topic's size is not known.
        position = np.where(np.repeat(size == listed, size), within, partition[committed])
        row = np.full(run.size, -1, dtype=np.int64)
        row[np.repeat(first, size) + position] = committed
        return run, np.where(row < 0, number, partition[row]), row


def find_runs(
    codes: Codes,
    partition: NDArray[np.generic],
    first_row: Ints,
    group_cluster: Codes,
    topic_names: pa.StringArray,
    clusters: Sequence[str],
    topics: Mapping[str, Topics],
) -> TopicRuns:
    """Find the runs in the topic codes of all partition rows; `first_row` is where each group begins."""
    rows = codes.size
    is_start = np.zeros(rows, dtype=np.bool_)
    is_start[first_row[:-1]] = True
    is_start[1:] |= codes[1:] != codes[:-1]
    first = np.flatnonzero(is_start)
    size = np.diff(np.append(first, rows))
    group = np.searchsorted(first_row, first, side="right") - 1
    key = group_cluster[group].astype(np.int64) * len(topic_names) + codes[first]
    listed = size
    if rows:
        distinct, position = np.unique(key, return_inverse=True)
        in_topic = _partitions(distinct, topic_names, clusters, topics)[position]
        highest = np.maximum.reduceat(partition, first).astype(np.int64) + 1
        # The size of a deleted topic is not known: only its commits are listed.
        listed = np.where(in_topic >= highest, in_topic, size)
    by_topic = np.argsort(key, kind="stable")
    return TopicRuns(group, first, size, listed, np.searchsorted(first, first_row), by_topic, key[by_topic])


def _partitions(keys: Ints, topic_names: pa.StringArray, clusters: Sequence[str], topics: Mapping[str, Topics]) -> Ints:
    """How many partitions each topic has, by its key; 0 if the topic does not exist."""
    counts = np.zeros(keys.size, dtype=np.int64)
    for code, cluster in enumerate(clusters):
        if cluster in topics:
            own = np.flatnonzero(keys // len(topic_names) == code)
            names = topic_names.take(pa.array(keys[own] % len(topic_names)))
            position = pc.index_in(names, pa.array(topics[cluster].names, pa.string()))
            counts[own[np.asarray(position.is_valid())]] = topics[cluster].partitions[position.drop_null().to_numpy()]
    return counts
