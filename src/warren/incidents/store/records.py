"""The records of the changelog: which row each one stands for, and which ones no Warren has written.

Any client that may write to the topic can write any record. Whether a record is rejected depends on nothing but the
record itself, so all Warrens reject the same ones. A rejected record deletes the row of its key, as Kafka's compaction
deletes the record before it: a Warren that has read that one ends up with the same rows as one that comes later.
"""

from enum import StrEnum
from typing import Any

import msgspec
import orjson
from msgspec.structs import replace

from warren.domain.status import Status
from warren.incidents.model import NO_RESULT, Notification, StormStatus
from warren.incidents.silences import Acknowledgement, Silence, why_refused
from warren.incidents.store.database import ADDED_COLUMNS
from warren.incidents.store.rows import COLUMNS, FIELDS, TABLE_OF, RowChange, to_change
from warren.snapshot.status import GroupStatus

MAX_KEY_CHARS = 1_000_000
MAX_DETAIL_CHARS = 200
_MODEL_OF = {table: model for model, table in TABLE_OF.items()}
_JSON_FIELDS = frozenset({"changes", "notified", "partitions", "result"})
_STATUS_NAMES = frozenset(status.name for status in Status)


class RecordReject(StrEnum):
    """Why a record of the changelog is rejected."""

    KEY = "the key names no row of a table"
    VALUE = "a field is missing, or not of the type, range or length that Warren writes"
    WRONG_ROW = "the row is not that of the key"
    ACTION = "the API would refuse the silence or acknowledgement"
    NOT_THE_LEADER = "only the leader writes such records, and it did not write this one"


class RejectedRecord(Exception):  # noqa: N818 - not an error: a record is counted and skipped
    """A record that no Warren has written; `change` deletes the row of its key, if it has one."""

    def __init__(self, reason: RecordReject, detail: str, change: RowChange | None = None) -> None:
        super().__init__(detail)
        self.reason = reason
        # It may quote the record, which may have any character.
        self.detail = ascii(detail[:MAX_DETAIL_CHARS])[1:-1]
        self.change = change


def encode_record(change: RowChange) -> tuple[bytes, bytes | None]:
    """The key and the value of a record."""
    return f"{change.table}/{change.key}".encode(), None if change.row is None else orjson.dumps(change.row)


def decode_record(key: bytes | None, value: bytes | None, written_ms: int | None = None) -> RowChange:
    """The change that a record stands for; `written_ms` is the time of the record, if it has one."""
    deletion = _decode_key(key)
    if value is None:
        return deletion
    try:
        change = _decode_row(deletion.table, value, written_ms)
    except RejectedRecord as rejected:
        raise RejectedRecord(rejected.reason, rejected.detail, deletion) from None
    except (ValueError, TypeError, KeyError, RecursionError, msgspec.MsgspecError) as error:
        raise RejectedRecord(RecordReject.VALUE, f"{type(error).__name__}: {error}", deletion) from None
    if change.key != deletion.key:
        raise RejectedRecord(RecordReject.WRONG_ROW, f"the row of {change.key!r}", deletion)
    return change


def _decode_key(key: bytes | None) -> RowChange:
    try:
        table, _, name = (key or b"").decode().partition("/")
    except UnicodeDecodeError:
        raise RejectedRecord(RecordReject.KEY, "it is not UTF-8") from None
    if table not in COLUMNS or not name or len(name) > MAX_KEY_CHARS:
        raise RejectedRecord(RecordReject.KEY, "it is not TABLE/KEY with a table of Warren's")
    return RowChange(table, name)


def _decode_row(table: str, value: bytes, written_ms: int | None) -> RowChange:
    model = _MODEL_OF[table]
    row: dict[str, Any] = {name: added.default for name, added in ADDED_COLUMNS.get(table, {}).items()}
    row |= msgspec.json.decode(value, type=dict[str, Any])
    # Columns that a later version of Warren has added are left out.
    fields = {name: row[column] for column, name in FIELDS[model].items()}
    fields |= {name: msgspec.json.decode(fields[name]) for name in _JSON_FIELDS.intersection(fields)}
    result = fields.pop("result", None)
    item: Any = msgspec.convert(fields, model)
    if isinstance(item, Notification):
        item = replace(item, result=_decode_result(result, item))
    elif isinstance(item, Silence | Acknowledgement) and (why := why_refused(item, written_ms)):
        raise RejectedRecord(RecordReject.ACTION, why)
    return to_change(item)


def _decode_result(result: Any, notification: Notification) -> GroupStatus:  # noqa: ANN401 - any JSON
    if result == {}:
        return NO_RESULT
    # Raises on integers of more than 64 bits, which a message could not show.
    orjson.dumps(result)
    status = msgspec.convert(result, StormStatus if "groups" in result else GroupStatus)
    if (status.cluster, status.group) != (notification.cluster, notification.group):
        raise ValueError("the result is of another group than the notification")
    parts = [status, *status.partitions, *([status.maxlag] if status.maxlag else ())]
    names = {part.status for part in [*parts, *(status.groups if isinstance(status, StormStatus) else ())]}
    if not names <= _STATUS_NAMES:
        raise ValueError(f"{min(names - _STATUS_NAMES)!r} is not a status")
    return status
