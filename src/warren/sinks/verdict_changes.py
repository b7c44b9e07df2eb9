"""What a snapshot changes: the verdicts of groups, and whether their clusters are judged; by whole columns.

While a group is not judged, it keeps the verdict that was sent last. A group or cluster that is new changes from "",
and one that is gone changes to NOTFOUND.
"""

from collections.abc import Mapping

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from warren.config.sinks import Sink
from warren.domain.arrays import Bools, Ints
from warren.domain.text_columns import as_text, joined, json_strings
from warren.domain.windows import UNKNOWN
from warren.sinks.encode import as_decimals
from warren.sinks.filters import matches_filters
from warren.sinks.points import REASON_NAMES, STATUS_NAMES
from warren.sinks.time_lag_fields import forecasts
from warren.snapshot.manifest import Manifest
from warren.snapshot.reader import Snapshot, is_judged

JUDGED, NOT_JUDGED = "JUDGED", "UNKNOWN"
"""The statuses of a cluster."""
VERDICTS = pa.schema([("cluster", pa.string()), ("group", pa.string()), ("status", pa.string())])
"""The status of each group; where the group is null, of a cluster."""
_PARTITION_COLUMNS = ["topic", "partition", "status", "reason", "current_lag"]


def changes_in(snapshot: Snapshot, sent: pa.Table, sink: Sink) -> tuple[pa.Table, pa.Table]:
    """What a snapshot changes in the verdicts that a sink has sent, and the verdicts after these changes.

    Changes are VERDICTS with the row of the group in the snapshot, null of one that is gone, and the status `before`.
    """
    groups = snapshot.groups()
    verdicts = _verdicts(snapshot.manifest, groups, sink)
    # The filters of the sink may have changed.
    sent = sent.filter(pa.array(_is_wanted(sent, sink)))
    keys, sent_keys = _keys(verdicts), _keys(sent)
    before = sent["status"].combine_chunks().take(pc.index_in(keys, value_set=sent_keys)).fill_null("")
    changed = verdicts.append_column("before", before).filter(pc.not_equal(before, verdicts["status"]))

    is_missing = pc.invert(pc.is_in(sent_keys, value_set=keys))
    is_unknown = pc.is_in(sent_keys, value_set=_keys(groups.filter(pa.array(~is_judged(groups)))))
    # A group that is missing while its cluster is unknown may be there when it is judged again.
    unknown_clusters = pa.array(snapshot.manifest.unknown_clusters(), pa.string())
    is_unknown = pc.or_(
        is_unknown, pc.and_(pc.is_valid(sent["group"]), pc.is_in(sent["cluster"], value_set=unknown_clusters))
    )
    gone = sent.filter(pc.and_not(is_missing, is_unknown))
    not_found, no_row = pa.repeat("NOTFOUND", gone.num_rows), pa.nulls(gone.num_rows, pa.int64())
    gone = pa.table([gone["cluster"], gone["group"], not_found, no_row, gone["status"]], changed.schema)
    kept = sent.filter(pc.and_(is_missing, is_unknown))
    return pa.concat_tables([changed, gone]), pa.concat_tables([verdicts.select(VERDICTS.names), kept])


def _verdicts(manifest: Manifest, rows: pa.Table, sink: Sink) -> pa.Table:
    """The clusters that a sink wants, and the groups that are judged, each with its row."""
    schema = VERDICTS.append(pa.field("row", pa.int64()))
    names = pa.array(manifest.clusters, pa.string())
    states = [JUDGED if state.is_judged else NOT_JUDGED for state in manifest.clusters.values()]
    no_group, no_row = pa.nulls(len(names), pa.string()), pa.nulls(len(names), pa.int64())
    clusters = pa.table([names, no_group, states, no_row], schema)
    status = STATUS_NAMES.take(rows["status"].combine_chunks())
    groups = pa.table([rows["cluster"], rows["group"], status, np.arange(rows.num_rows)], schema)
    verdicts = pa.concat_tables([clusters, groups.filter(pa.array(is_judged(rows)))])
    return verdicts.filter(pa.array(_is_wanted(verdicts, sink))).combine_chunks()


def _is_wanted(table: pa.Table, sink: Sink) -> Bools:
    is_cluster, clusters = np.asarray(pc.is_null(table["group"])), table.select(["cluster"])
    return np.where(is_cluster, matches_filters(clusters, sink.filters), matches_filters(table, sink.filters))


def _keys(table: pa.Table) -> pa.Array:
    """A unique name for each group or cluster."""
    return pc.binary_join_element_wise(
        table["cluster"].combine_chunks(), table["group"].combine_chunks(), "\0", null_handling="skip"
    )  # fmt: skip


def to_records(changes: pa.Table, snapshot: Snapshot, tags: Mapping[str, str]) -> pa.StringArray:
    """One line per change: the key of its record and its value, separated by a tab."""
    manifest = snapshot.manifest
    tail = f',"sequence":{manifest.sequence},"time":{manifest.now_ms},"tags":{orjson.dumps(dict(tags)).decode()}}}\n'
    is_cluster = pc.is_null(changes["group"])
    clusters, groups = changes.filter(is_cluster), changes.filter(pc.invert(is_cluster))
    known, gone = groups.filter(pc.is_valid(groups["row"])), groups.filter(pc.is_null(groups["row"]))
    lines = [
        joined(*_beginning(clusters), *_since_of_clusters(clusters, manifest), tail),
        joined(*_beginning(gone), f',"since":{manifest.now_ms}', tail),
        joined(*_beginning(known), *_details(snapshot, np.asarray(known["row"])), tail),
    ]
    parts = zip((clusters, gone, known), lines, strict=True)
    return pa.concat_arrays([line for table, line in parts if table.num_rows])


def _beginning(changes: pa.Table) -> list[str | pa.StringArray]:
    groups = changes["group"].combine_chunks()
    is_cluster = pc.is_null(groups)
    cluster, group = json_strings(changes["cluster"].combine_chunks()), json_strings(groups.fill_null(""))
    key = pc.if_else(is_cluster, joined("[", cluster, "]"), joined("[", cluster, ",", group, "]"))
    group_field = pc.if_else(is_cluster, "", joined(',"group":', group))
    return [
        key, '\t{"cluster":', cluster, group_field, ',"from":"', changes["before"].combine_chunks(),
        '","to":"', changes["status"].combine_chunks(), '"',
    ]  # fmt: skip


def _since_of_clusters(clusters: pa.Table, manifest: Manifest) -> list[str | pa.StringArray]:
    states = [manifest.clusters.get(name) for name in clusters["cluster"].to_pylist()]
    since = [(state and state.unknown_since_ms) or manifest.now_ms for state in states]
    errors = pa.array([(state and state.error) or "" for state in states], pa.string())
    return [
        ',"since":',
        as_text(np.array(since, np.int64)),
        pc.if_else(pc.equal(errors, ""), "", joined(',"error":', json_strings(errors))),
    ]


def _details(snapshot: Snapshot, rows: Ints) -> list[str | pa.StringArray]:
    """The numbers of groups, and the worst partition of each."""
    groups = snapshot.groups().take(pa.array(rows)).combine_chunks()
    worst_rows = snapshot.partition_rows(groups, "worst_row")
    worst = snapshot.partitions(_PARTITION_COLUMNS).take(pa.array(worst_rows)).combine_chunks()
    lag = np.asarray(worst["current_lag"])
    numbers = {"since": "since_ms", "total_lag": "totallag", "max_lag": "maxlag", "partition_count": "partitions"}
    lost = np.asarray(groups["lost"])
    return [
        *(part for name, column in numbers.items() for part in (f',"{name}":', as_text(np.asarray(groups[column])))),
        *(pc.coalesce(joined(f',"{name}":', as_decimals(column)), "") for name, column in forecasts(groups).items()),
        pc.if_else(pa.array(lost == UNKNOWN), "", joined(',"lost_messages":', as_text(lost))),
        ',"worst":{"topic":', json_strings(worst["topic"].combine_chunks().cast(pa.string())),
        ',"partition":', as_text(np.asarray(worst["partition"])),
        ',"status":"', STATUS_NAMES.take(worst["status"].combine_chunks()),
        '","reason":"', REASON_NAMES.take(worst["reason"].combine_chunks()), '"',
        pc.if_else(pa.array(lag == UNKNOWN), "", joined(',"lag":', as_text(lag))), "}",
    ]  # fmt: skip
