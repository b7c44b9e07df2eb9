"""A snapshot in memory: flat columns of groups and partitions, and where to find each group and topic in them."""

from bisect import bisect_left
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from warren.domain.arrays import Codes, Ints, sums
from warren.domain.windows import UNKNOWN
from warren.errors import RequestError
from warren.history.recent import Recent, nothing_recent
from warren.snapshot.reader import Snapshot, group_keys
from warren.snapshot.time_lag import TimeLagColumns, to_time_lags
from warren.web.details import Details
from warren.web.partition_columns import NAME_COLUMNS, read_columns
from warren.web.status_json import StatusJson
from warren.web.topic_runs import TopicRuns, Topics, find_runs

_PARTITION_COLUMNS = (
    "partition", "status", "complete", "current_lag",
    "start_offset", "start_ms", "start_lag", "end_offset", "end_ms", "end_lag",
    "seconds_behind", "oldest_unread_age_s", "catch_up_low_s", "retention_left_s",
)  # fmt: skip
_GROUP_COLUMNS = (
    "status", "totallag", "maxlag", "since_ms", "maxlag_row", "worst_row", "first_row", "partitions", "bucket",
    "newest_commit_ms", "unknown_since_ms",
)  # fmt: skip
_STRINGS_AT_ONCE = 2_000
"""How many names are converted to Python strings while holding the interpreter lock."""


@dataclass(frozen=True, eq=False)
class Index:
    """All that answers need except the details of partitions, which are read when they are requested.

    Groups are sorted by cluster and name: a *group row* is a group's position. Partitions are in the order of their
    groups, sorted by topic: a *row* is a partition's position.
    """

    snapshot: Snapshot
    clusters: list[str]
    groups: dict[str, dict[str, int]]
    """The group row of each group, by cluster and name."""
    group_names: pa.StringArray
    group_cluster: Codes
    """Position in `clusters`, by group row."""
    group_columns: dict[str, Ints]
    time_lag: TimeLagColumns
    """By group row."""
    first_row: Ints
    """The first row of each group, and the number of all rows."""
    partition_count: Ints
    """How many partitions are listed of each group, also those without a commit."""
    complete: NDArray[np.float32]
    codes: dict[str, Codes]
    """Position in `names` of each row's topic, owner and client id."""
    names: dict[str, pa.StringArray]
    columns: dict[str, NDArray[np.generic]]
    runs: TopicRuns
    topics: dict[str, Topics]
    heads: Ints
    log_starts: Ints
    recent: Recent

    @property
    def rows(self) -> int:
        """How many partitions of groups there are."""
        return int(self.first_row[-1])

    def group_row(self, cluster: str, group: str) -> int | None:
        """The group row of a group; None if there is no such group."""
        return self.groups.get(cluster, {}).get(group)

    def known_group_row(self, cluster: str, group: str) -> int:
        """The group row of a group that must exist."""
        group_row = self.group_row(cluster, group)
        if group_row is None:
            raise RequestError("cluster or consumer not found", 404)
        return group_row

    def unknown_groups(self, cluster: str) -> int:
        """How many groups of a cluster cannot be judged."""
        is_own = self.group_cluster == (self.clusters.index(cluster) if cluster in self.clusters else -1)
        return int(np.count_nonzero(is_own & (self.group_columns["unknown_since_ms"] != UNKNOWN)))

    def group_key(self, group_row: int) -> tuple[str, str]:
        """The cluster and name of a group."""
        return self.clusters[self.group_cluster[group_row]], self.group_names[group_row].as_py()

    def partition(self, row: int) -> dict[str, Any]:
        """All that the index has of a partition, as in a row of the snapshot's table."""
        names = {name: self.names[name][self.codes[name][row]].as_py() for name in NAME_COLUMNS}
        return names | {name: column[row].item() for name, column in self.columns.items()}

    def topic_sizes(self, group_row: int) -> dict[str, int]:
        """The topics of a group, and how many partitions are listed of each."""
        runs = slice(*self.runs.first_of_group[group_row : group_row + 2].tolist())
        topics = self.names["topic"].take(pa.array(self.codes["topic"][self.runs.first[runs]])).to_pylist()
        return dict(zip(topics, self.runs.listed[runs].tolist(), strict=True))

    def topic_code(self, topic: str) -> int | None:
        """The position of a topic in `names`; None if no group has committed to it."""
        return self._topic_codes.get(topic)

    def runs_of(self, cluster: str, topic: str) -> Ints:
        """The runs of a topic: one per group that has committed to it."""
        code = self.topic_code(topic)
        if code is None or cluster not in self.clusters:
            return np.zeros(0, dtype=np.int64)
        return self.runs.of_topic(self.clusters.index(cluster) * len(self._topic_codes) + code)

    def consumers_of(self, cluster: str, topic: str) -> list[str]:
        """The groups that have committed to a topic, sorted by name."""
        return sorted(self.group_names.take(pa.array(self.runs.group[self.runs_of(cluster, topic)])).to_pylist())

    def group_rows_of(self, topic: str) -> Ints:
        """The groups of all clusters that have committed to a topic of this name."""
        runs = [self.runs_of(cluster, topic) for cluster in self.clusters]
        return np.sort(self.runs.group[np.concatenate([np.zeros(0, dtype=np.int64), *runs])])

    def head_rows(self, cluster: str, topic: str) -> slice | None:
        """The rows of a topic in `heads` and `log_starts`; None if there is no such topic."""
        topics = self.topics.get(cluster)
        position = bisect_left(topics.names, topic) if topics else 0
        if topics is None or topics.names[position : position + 1] != [topic]:
            return None
        first = int(topics.first_row[position])
        return slice(first, first + int(topics.partitions[position]))

    @cached_property
    def _topic_codes(self) -> dict[str, int]:
        return {name: code for code, name in enumerate(_strings(self.names["topic"]))}

    @cached_property
    def status_json(self) -> StatusJson:
        """The status of groups and partitions as JSON."""
        return StatusJson(self)

    @cached_property
    def details(self) -> Details:
        """The windows of groups, and the numbers behind their verdicts."""
        return Details(self)


def build_index(
    snapshot: Snapshot,
    hidden: Collection[tuple[str, str]] = (),
    recent_of: Callable[[pa.StringArray, int], Recent] | None = None,
) -> Index:
    """Load a snapshot without the `hidden` groups."""
    groups, heads = _sorted_groups(snapshot.groups(), hidden), snapshot.heads()
    group_columns = {name: groups[name].to_numpy().astype(np.int64) for name in _GROUP_COLUMNS}
    first_row = np.concatenate([[0], np.cumsum(group_columns["partitions"])])
    bucket, first_in_file, size = (group_columns[name] for name in ("bucket", "first_row", "partitions"))
    partitions = read_columns(snapshot, bucket, first_in_file, size, _PARTITION_COLUMNS)
    columns, codes, names = partitions.numbers, partitions.codes, partitions.names
    clusters = sorted(set(pc.unique(groups["cluster"]).to_pylist()))
    group_cluster = pc.index_in(groups["cluster"], pa.array(clusters, pa.string())).to_numpy().astype(np.int32)
    topics = _topics(snapshot.topics())
    runs = find_runs(codes["topic"], columns["partition"], first_row, group_cluster, names["topic"], clusters, topics)
    partition_count = sums(runs.listed, runs.first_of_group)
    complete_count = sums(columns["complete"] == 1.0, first_row)
    group_names = groups["group"].combine_chunks()
    keys = group_keys(groups["cluster"], groups["group"]).combine_chunks()
    return Index(
        snapshot=snapshot,
        clusters=clusters,
        groups=_group_rows(clusters, group_cluster, group_names),
        group_names=group_names,
        group_cluster=group_cluster,
        group_columns=group_columns,
        time_lag=to_time_lags(groups),
        first_row=first_row,
        partition_count=partition_count,
        complete=(complete_count / np.maximum(partition_count, 1)).astype(np.float32),
        codes=codes,
        names=names,
        columns=columns,
        runs=runs,
        topics=topics,
        heads=heads["head"].to_numpy(),
        log_starts=heads["log_start"].to_numpy(),
        recent=recent_of(keys, snapshot.manifest.now_ms) if recent_of else nothing_recent(keys),
    )


def _sorted_groups(groups: pa.Table, hidden: Collection[tuple[str, str]]) -> pa.Table:
    """The shown groups, sorted by cluster and name."""
    order = pc.sort_indices(groups, [("cluster", "ascending"), ("group", "ascending")]).to_numpy().astype(np.int64)
    if hidden:
        names = zip(groups["cluster"].to_pylist(), groups["group"].to_pylist(), strict=True)
        is_hidden = np.fromiter((name in hidden for name in names), np.bool_, groups.num_rows)
        order = order[~is_hidden[order]]
    return groups.take(pa.array(order))


def _strings(names: pa.StringArray) -> list[str]:
    strings: list[str] = []
    for start in range(0, len(names), _STRINGS_AT_ONCE):
        strings += names.slice(start, _STRINGS_AT_ONCE).to_pylist()
    return strings


def _group_rows(clusters: Sequence[str], group_cluster: Codes, names: pa.StringArray) -> dict[str, dict[str, int]]:
    """Each cluster's groups and their group rows; the groups are sorted by cluster already."""
    edges = np.searchsorted(group_cluster, np.arange(len(clusters) + 1)).tolist()
    return {
        cluster: dict(zip(_strings(names.slice(begin, end - begin)), range(begin, end), strict=True))
        for cluster, begin, end in zip(clusters, edges[:-1], edges[1:], strict=True)
    }


def _topics(layout: pa.Table) -> dict[str, Topics]:
    topics = {}
    for cluster in pc.unique(layout["cluster"]).to_pylist():
        own = layout.filter(pc.equal(layout["cluster"], cluster)).sort_by("topic")
        partitions = own["partitions"].to_numpy().astype(np.int64)
        topics[cluster] = Topics(_strings(own["topic"].combine_chunks()), partitions, own["first_row"].to_numpy())
    return topics
