"""What a snapshot changes: verdicts of groups, and whether their clusters can be judged; by whole columns.

While a cluster cannot be judged its groups are as they were told. A group that was not told of before was "", and one
that is gone is NOTFOUND; the same goes for clusters.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from warren.config.sinks import Sink
from warren.domain.matching import matches_globs
from warren.domain.rules import Reason
from warren.domain.status import Status
from warren.domain.text_columns import as_text, joined, json_strings
from warren.domain.windows import UNKNOWN
from warren.snapshot.manifest import Manifest
from warren.snapshot.reader import Snapshot

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

JUDGED, NOT_JUDGED = "JUDGED", "UNKNOWN"
"""What is told of a cluster."""
TOLD = pa.schema([("cluster", pa.string()), ("group", pa.string()), ("status", pa.string())])
"""What was told last, of every group; without a group, of a cluster."""
_STATUS = pa.array([status.name for status in Status])
_REASON = pa.array([reason.name.lower() for reason in Reason])
_OF_WORST = ["topic", "partition", "status", "reason", "current_lag"]


@dataclass(frozen=True, slots=True)
class Changes:
    """What is to be told, and what will have been told then."""

    found: pa.Table
    """TOLD, with the status `before`, and the row of the group in the snapshot (none of one that is gone)."""
    told: pa.Table


def changes_in(snapshot: Snapshot, told: pa.Table, sink: Sink) -> Changes:
    """What a snapshot changes in what a sink has told."""
    now = _verdicts(snapshot, sink)
    # Of whom a sink does not want to hear any more nothing is said.
    told = told.filter(pa.array(_is_wanted(told, sink)))
    keys, told_keys = _keys(now), _keys(told)
    before = _plain(told, "status").take(pc.index_in(keys, value_set=told_keys)).fill_null("")
    changed = now.append_column("before", before).filter(pc.not_equal(before, now["status"]))

    is_missing = pc.invert(pc.is_in(told_keys, value_set=keys))
    is_held = pc.and_(pc.is_valid(told["group"]), pc.is_in(told["cluster"], value_set=_away(snapshot.manifest)))
    gone = told.filter(pc.and_not(is_missing, is_held))
    nobody = pa.nulls(gone.num_rows, pa.int64())
    gone = pa.table([gone["cluster"], gone["group"], _same("NOTFOUND", gone), nobody, gone["status"]], changed.schema)
    held = told.filter(pc.and_(is_missing, is_held))
    return Changes(pa.concat_tables([changed, gone]), pa.concat_tables([now.select(TOLD.names), held]))


def _verdicts(snapshot: Snapshot, sink: Sink) -> pa.Table:
    """The clusters that a sink wants to hear of, and the groups of those that can be judged, each with its row."""
    manifest = snapshot.manifest
    schema = TOLD.append(pa.field("row", pa.int64()))
    names = pa.array(manifest.clusters, pa.string())
    states = [JUDGED if one.is_judged else NOT_JUDGED for one in manifest.clusters.values()]
    nobody = [None] * len(names)
    clusters = pa.table([names, pa.array(nobody, pa.string()), states, pa.array(nobody, pa.int64())], schema)
    held = snapshot.groups()
    status = _STATUS.take(_plain(held, "status"))
    groups = pa.table([held["cluster"], held["group"], status, np.arange(held.num_rows)], schema)
    groups = groups.filter(pc.invert(pc.is_in(groups["cluster"], value_set=_away(manifest))))
    found = pa.concat_tables([clusters, groups])
    return found.filter(pa.array(_is_wanted(found, sink))).combine_chunks()


def _away(manifest: Manifest) -> pa.Array:
    return pa.array(manifest.unknown_clusters(), pa.string())


def _is_wanted(table: pa.Table, sink: Sink) -> Mask:
    is_cluster = np.asarray(pc.is_null(_plain(table, "group")))
    return matches_globs(_plain(table, "cluster"), sink.clusters_include, sink.clusters_exclude) & (
        is_cluster | matches_globs(_plain(table, "group").fill_null(""), sink.groups_include, sink.groups_exclude)
    )


def _keys(table: pa.Table) -> pa.Array:
    """A name that a group, or a cluster, has alone."""
    return pc.binary_join_element_wise(
        _plain(table, "cluster"), _plain(table, "group"), "\0", null_handling="skip"
    )  # fmt: skip


def to_records(found: pa.Table, snapshot: Snapshot, tags: Mapping[str, str]) -> pa.StringArray:
    """A line a change: the key of its record and its value, with a tab between."""
    manifest = snapshot.manifest
    tail = f',"sequence":{manifest.sequence},"time":{manifest.now_ms},"tags":{orjson.dumps(dict(tags)).decode()}}}\n'
    is_cluster = pc.is_null(found["group"])
    clusters, groups = found.filter(is_cluster), found.filter(pc.invert(is_cluster))
    here, gone = groups.filter(pc.is_valid(groups["row"])), groups.filter(pc.is_null(groups["row"]))
    lines = [
        joined(*_beginning(clusters), *_since_of_clusters(clusters, manifest), tail),
        joined(*_beginning(gone), f',"since":{manifest.now_ms}', tail),
        joined(*_beginning(here), *_details(snapshot, np.asarray(here["row"])), tail),
    ]
    return pa.concat_arrays([one for part, one in zip((clusters, gone, here), lines, strict=True) if part.num_rows])


def _beginning(found: pa.Table) -> list[str | pa.StringArray]:
    cluster, group = json_strings(_plain(found, "cluster")), json_strings(_plain(found, "group").fill_null(""))
    is_cluster = pc.is_null(_plain(found, "group"))
    key = pc.if_else(is_cluster, joined("[", cluster, "]"), joined("[", cluster, ",", group, "]"))
    named = pc.if_else(is_cluster, "", joined(',"group":', group))
    return [
        key, '\t{"cluster":', cluster, named, ',"from":"', _plain(found, "before"), '","to":"', _plain(found, "status"),
        '"',
    ]  # fmt: skip


def _since_of_clusters(clusters: pa.Table, manifest: Manifest) -> list[str | pa.StringArray]:
    states = [manifest.clusters.get(name) for name in clusters["cluster"].to_pylist()]
    since = [manifest.now_ms if one is None else one.unknown_since_ms or manifest.now_ms for one in states]
    errors = pa.array([(one and one.error) or "" for one in states], pa.string())
    return [
        ',"since":',
        as_text(np.array(since, np.int64)),
        _unless_empty(errors, joined(',"error":', json_strings(errors))),
    ]


def _details(snapshot: Snapshot, rows: Ints) -> list[str | pa.StringArray]:
    """The numbers of groups, and the partition of each that is worst."""
    groups = snapshot.groups().take(pa.array(rows)).combine_chunks()
    # Rows are counted within the file of a bucket.
    before = np.cumsum([0, *(bucket.partition_rows for bucket in snapshot.manifest.buckets)])[:-1]
    worst = before[np.asarray(groups["bucket"])] + np.asarray(groups["worst_row"])
    held = snapshot.partitions(_OF_WORST, as_codes=True).take(pa.array(worst)).combine_chunks()
    lag = np.asarray(held["current_lag"])
    numbers = {"since": "since_ms", "total_lag": "totallag", "max_lag": "maxlag", "partition_count": "partitions"}
    return [
        *(part for name, column in numbers.items() for part in (f',"{name}":', as_text(np.asarray(groups[column])))),
        ',"worst":{"topic":', json_strings(_plain(held, "topic").cast(pa.string())),
        ',"partition":', as_text(np.asarray(held["partition"])),
        ',"status":"', _STATUS.take(_plain(held, "status")), '","reason":"', _REASON.take(_plain(held, "reason")), '"',
        pc.if_else(pa.array(lag == UNKNOWN), "", joined(',"lag":', as_text(lag))), "}",
    ]  # fmt: skip


def _unless_empty(column: pa.StringArray, text: pa.StringArray) -> pa.StringArray:
    return pc.if_else(pc.equal(column, ""), "", text)


def _same(word: str, table: pa.Table) -> pa.StringArray:
    return pa.repeat(pa.scalar(word), table.num_rows)


def _plain(table: pa.Table, name: str) -> pa.Array:
    column = table[name]
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
