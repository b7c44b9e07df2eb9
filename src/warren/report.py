"""`warren groups` and `warren group`: the newest snapshot as tables for people, or as JSON; and `warren reload`."""

import csv
import json
import os
import sys
import time
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import to_builtins
from rich.console import Console
from rich.table import Table
from rich.text import Text

from warren.domain.printable import printable
from warren.domain.reasons import format_duration
from warren.domain.rules import Reason
from warren.domain.status import Status
from warren.domain.windows import UNKNOWN
from warren.errors import NoSnapshot, WarrenError
from warren.snapshot.reader import Snapshot, newest_snapshot
from warren.snapshot.reloads import request_reload
from warren.snapshot.schemas import RATES, Row
from warren.snapshot.time_lag import describe_catch_up, describe_seconds_behind, describe_time_lag, to_time_lag

COLORS = {"OK": "green", "WARN": "yellow", "ERR": "red", "STOP": "red", "STALL": "red", "REWIND": "red"}
PIPE_WIDTH = 240
RELOAD_WAIT_S = 60.0
MAX_ROWS = 500
"""How many groups the table shows; JSON has all of them."""
_TIME_LAG = ("time lag", "catches up")
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
_HIDDEN = frozenset({
    "bucket", "first_row", "worst_row", "maxlag_row", "behind_row", "behind_method", "seconds_behind", "rates_since_ms",
    "unread_offset", "unread_record_ms", "oldest_unread_age_s", "catch_up_low_s", "catch_up_high_s",
    "retention_left_s", "lost", *RATES,
})  # fmt: skip
"""Columns that JSON does not have: positions in files, and those that `time_lag` stands for."""


def open_snapshot(data_dir: Path) -> Snapshot:
    """The newest snapshot with verdicts; NoSnapshot, with what to do, before the first one."""
    snapshot = newest_snapshot(data_dir)
    if not snapshot.is_judged:
        raise NoSnapshot(f"no snapshot in {data_dir} yet: wait for the first cycle of `warren run`")
    return snapshot


def worst_first(groups: pa.Table, cluster: str | None = None, status: str | None = None) -> pa.Table:
    """Groups sorted by severity, then by time lag and lag; optionally only those of a cluster or status."""
    if cluster is not None:
        groups = groups.filter(pc.equal(groups["cluster"], cluster))
    if status is not None:
        if status not in Status.__members__:
            raise WarrenError(
                f"--status {status}: must be OK, WARN or ERR, or for the most severe partition STOP, STALL or REWIND"
            )
        code = Status[status]
        column = "worst_status" if code > Status.ERR else "status"
        groups = groups.filter(pc.equal(groups[column], int(code)))
    return _sorted(groups, ("status", "worst_status", "seconds_behind", "totallag"), ("cluster", "group"))


def _sorted(rows: pa.Table, largest_first: Sequence[str], then_by: Sequence[str]) -> pa.Table:
    return rows.sort_by([*((name, "descending") for name in largest_first), *((name, "ascending") for name in then_by)])


def reload(data_dir: Path) -> tuple[bool, list[str]]:
    """Ask the pipeline of a data directory to reload its configuration; whether it did, and what to say about it."""
    # A data directory without a snapshot has no pipeline that would answer.
    newest_snapshot(data_dir)
    outcome = request_reload(data_dir, time.time_ns() // 1_000_000, RELOAD_WAIT_S)
    if outcome is None:
        return False, [f"not reloaded within {RELOAD_WAIT_S:.0f} s: `warren run` is in a long cycle, or does not run"]
    findings = {"warning": outcome.warnings, "mistake": outcome.mistakes, "note": outcome.needs_restart}
    lines = [f"{kind}: {line}" for kind, own in findings.items() for line in own]
    if not outcome.is_successful:
        return False, [*lines, "not reloaded: nothing has changed"]
    return True, [*lines, f"reloaded: {', '.join(outcome.changed) or 'no section has changed'}"]


def print_groups(data_dir: Path, cluster: str | None, status: str | None, *, as_json: bool) -> None:
    """Print the groups of the newest snapshot, most severe first."""
    snapshot = open_snapshot(data_dir)
    groups = worst_first(snapshot.groups(), cluster, status)
    if as_json:
        sys.stdout.write(json.dumps([group_json(row) for row in groups.to_pylist()]) + "\n")
    else:
        _console().print(groups_table(snapshot, groups))


def _console() -> Console:
    """The terminal; output to a pipe or a file is not wrapped at its width."""
    is_bounded = sys.stdout.isatty() or "COLUMNS" in os.environ
    return Console(width=None if is_bounded else PIPE_WIDTH)


def _table(names: Iterable[str], numbers: Collection[str], title: str | None = None) -> Table:
    table = Table(title=title)
    for name in names:
        table.add_column(name, justify="right" if name in numbers else "left", overflow="fold")
    return table


def groups_table(snapshot: Snapshot, groups: pa.Table) -> Table:
    """The most severe groups as a table, each with the reason of its most severe partition."""
    rows = groups.slice(0, MAX_ROWS).to_pylist()
    limit = f" (the first {MAX_ROWS})" if groups.num_rows > MAX_ROWS else ""
    title = f"{groups.num_rows:,} groups, snapshot {snapshot.manifest.sequence}{limit}"
    names = ("cluster", "group", "status", "since", "lag", *_TIME_LAG, "partitions", "why")
    table = _table(names, {"lag", *_TIME_LAG, "partitions", "since"}, title)
    for row, worst in zip(rows, snapshot.worst(rows), strict=True):
        table.add_row(
            Text(printable(row["cluster"])),
            Text(printable(row["group"])),
            _status(row, snapshot),
            format_duration(snapshot.manifest.now_ms - row["since_ms"]),
            f"{row['totallag']:,}",
            *_time_lag(row),
            str(row["partitions"]),
            Text(printable(f"{worst['topic']}/{worst['partition']}: {snapshot.reason(worst)}")),
        )
    return table


def _time_lag(row: Row) -> tuple[str, str]:
    """How far a group or partition is behind, and when it is caught up."""
    lag = to_time_lag(row)
    return describe_seconds_behind(lag), describe_catch_up(lag).removeprefix(
        "catches up "
    ) if lag.seconds_behind else ""


def _status(row: Row, snapshot: Snapshot) -> Text:
    name = Status(row["status"]).name
    if row["unknown_since_ms"] != UNKNOWN:
        age = format_duration(snapshot.manifest.now_ms - row["unknown_since_ms"])
        return Text(f"unknown for {age} (was {name})", style="magenta")
    return Text(name, style=COLORS.get(name, ""))


def print_group(data_dir: Path, cluster: str, group: str, *, as_json: bool) -> None:
    """Print one group with its partitions, worst first, and reasons; WarrenError if there is no such group."""
    snapshot = open_snapshot(data_dir)
    group_and_partitions = snapshot.group(cluster, group)
    if group_and_partitions is None:
        raise WarrenError(f"no group {group!r} in cluster {cluster!r}: `warren groups` lists them all")
    row, partitions = group_and_partitions
    if as_json:
        listed = [partition_json(snapshot, partition) for partition in partitions.to_pylist()]
        sys.stdout.write(json.dumps({**group_json(row), "partitions": listed}) + "\n")
        return
    numbers = ("lag", *_TIME_LAG, "oldest unread", "committed", "head")
    table = _table(
        ("topic", "partition", "status", *numbers, "last commit", "owner", "client", "why"), {"partition", *numbers}
    )
    worst_to_best = _sorted(partitions, ("status", "seconds_behind", "current_lag"), ("topic", "partition"))
    for partition in worst_to_best.to_pylist():
        name, age_ms = Status(partition["status"]).name, snapshot.manifest.now_ms - partition["end_ms"]
        lag, *offsets = (_count(partition[column]) for column in ("current_lag", "committed_offset", "head"))
        table.add_row(
            Text(printable(partition["topic"])),
            str(partition["partition"]),
            Text(name, style=COLORS.get(name, "")),
            lag,
            *_time_lag(partition),
            _age(partition["oldest_unread_age_s"]),
            *offsets,
            "never" if partition["end_ms"] == UNKNOWN else f"{format_duration(age_ms)} ago",
            Text(printable(partition["owner"] or "")),
            Text(printable(partition["client_id"] or "")),
            Text(printable(snapshot.reason(partition))),
        )
    heading = Text(printable(f"{cluster} / {group}: ")).append(_status(row, snapshot))
    if words := describe_time_lag(to_time_lag(row)):
        heading.append(f", {words}")
    _console().print(heading, table, sep="\n")


def _age(seconds: float) -> str:
    """The age of an unread message by its own timestamp; empty if none is unread or it is unknown."""
    return "" if seconds == UNKNOWN else f"{format_duration(round(seconds * 1000))} old"


def _count(number: int) -> str:
    return "?" if number == UNKNOWN else f"{number:,}"


def group_json(row: Row) -> dict[str, object]:
    """A group as JSON: statuses by name, and null for what is unknown."""
    return {
        **{key: None if value == UNKNOWN else value for key, value in row.items() if key not in _HIDDEN},
        "time_lag": to_builtins(to_time_lag(row)),
        "status": Status(row["status"]).name,
        "worst_status": Status(row["worst_status"]).name,
    }


def partition_json(snapshot: Snapshot, row: Row) -> dict[str, object]:
    """A partition as JSON, with its reason in words and null for what is unknown."""
    plain = {
        key: None if value == UNKNOWN and key != "partition" else value
        for key, value in row.items()
        if key not in _HIDDEN
    }
    for key in ("lags", "lags_low", "lags_high"):
        plain[key] = [None if lag == UNKNOWN else lag for lag in row[key]]
    words = {"status": Status(row["status"]).name, "rule": Reason(row["reason"]).name, "reason": snapshot.reason(row)}
    return {**plain, "time_lag": to_builtins(to_time_lag(row)), **words}


def print_rows(rows: pa.Table, output_format: str) -> None:
    """Print any rows as a table, as JSON lines or as CSV."""
    names = rows.schema.names
    lines = list(zip(*(column.to_pylist() for column in rows.columns), strict=True))
    if output_format == "json":
        if duplicates := sorted({name for name in names if names.count(name) > 1}):
            raise WarrenError(f"several columns are named {', '.join(duplicates)}: rename them with AS")
        for row in rows.to_pylist():
            text = json.dumps(row, default=str, ensure_ascii=False)
            sys.stdout.write((text if text.isprintable() else json.dumps(row, default=str)) + "\n")
        return
    if output_format == "csv":
        writer = csv.writer(sys.stdout)
        writer.writerow(names)
        writer.writerows(map(_csv_cell, line) for line in lines)
        return
    table = Table()
    for column in rows.schema:
        is_number = pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
        table.add_column(Text(printable(column.name)), justify="right" if is_number else "left")
    for line in lines:
        table.add_row(*(Text(printable(_cell(value))) for value in line))
    _console().print(table)


def _csv_cell(value: object) -> object:
    """A value for CSV; a spreadsheet takes no text of it for a formula."""
    if not isinstance(value, str):
        return value
    return f"'{printable(value)}" if value.startswith(_FORMULA_STARTS) else printable(value)


def _cell(value: object) -> str:
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
