"""Which records of the changelog stand for a row, and which are rejected: any client may have written them."""

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.incidents.store.test_rows import (
    ACKNOWLEDGEMENT,
    INCIDENT,
    NOTIFICATION,
    RESULT,
    SILENCE,
    STORM,
    STORM_RESULT,
)
from tests.kit.incidents import incident, notification
from warren.domain.status import Status
from warren.incidents.model import MAX_CHANGES, Event, StatusChange
from warren.incidents.silences import MAX_CLOCK_DIFFERENCE_MS, MAX_SILENCE_MS, Silence
from warren.incidents.store.records import RecordReject, RejectedRecord, decode_record, encode_record
from warren.incidents.store.rows import RowChange, to_change

WRITTEN_MS = 1_700_000_000_000
ROWS = {
    "incidents": {**INCIDENT, "lost_messages": 0},
    "letters": NOTIFICATION,
    "storms": STORM,
    "acknowledgements": ACKNOWLEDGEMENT,
    "silences": SILENCE,
}
DAY_MS = 86_400_000


def decode(table: str, **changes: Any) -> RowChange:
    """Decode the record of a valid row, some of whose columns are changed."""
    key = next(iter(ROWS[table].values()))
    value = json.dumps({**ROWS[table], **changes}).encode()
    return decode_record(f"{table}/{key}".encode(), value, WRITTEN_MS)


@pytest.mark.parametrize("table", ROWS)
def test_a_row_that_warren_has_written_is_read(table: str) -> None:
    change = decode(table)
    shared = {"is_shared": 1} if table in ("silences", "acknowledgements") else {}
    assert change == RowChange(table, str(next(iter(ROWS[table].values()))), {**ROWS[table], **shared})
    assert decode(table, added_by_a_later_version="x") == change


@pytest.mark.parametrize(
    ("table", "changes"),
    [
        ("incidents", {"opened_ms": "yesterday"}),
        ("incidents", {"opened_ms": -1}),
        ("incidents", {"opened_ms": 2**70}),
        ("incidents", {"opened_ms": 1.5}),
        ("incidents", {"opened_ms": None}),
        ("incidents", {"opened_ms": True}),
        ("incidents", {"worst": 9}),
        ("incidents", {"worst": "ERR"}),
        ("incidents", {"changes": "[]"}),
        ("incidents", {"changes": json.dumps([[5, 2]] * (MAX_CHANGES + 1))}),
        ("incidents", {"changes": [[5, 2]]}),
        ("incidents", {"changes": "[[5,99]]"}),
        ("incidents", {"changes": "not JSON"}),
        ("incidents", {"told": '{"hook":[2,7,3,5]}'}),
        ("incidents", {"told": '{"hook":"x"}'}),
        ("incidents", {"partitions": '[["t",-1,5,null]]'}),
        ("incidents", {"partitions": "[" * 100_000}),
        ("incidents", {"cluster": "c" * 32_768}),
        ("incidents", {"cluster": ["c"]}),
        ("letters", {"event": "party"}),
        ("letters", {"attempts": -1}),
        ("letters", {"sent_ms": "now"}),
        ("letters", {"result": "null"}),
        ("letters", {"result": "[]"}),
        ("letters", {"result": RESULT.replace('"ERR"', '"<!channel>"')}),
        ("letters", {"result": RESULT.replace('"STALL"', '"STALLED"')}),
        (
            "letters",
            {"result": STORM_RESULT.replace('"group":"g","status":"ERR","totallag":9,"partitions":1', '"x":1')},
        ),
        ("letters", {"result": RESULT.replace('"totallag":9', f'"totallag":{10**400}')}),
        ("letters", {"name": "another group"}),
        ("storms", {"total": None}),
        ("storms", {"told": "[]"}),
        ("silences", {"group": 5, "name": 5}),
        ("silences", {"name": ""}),
        ("silences", {"name": "*" * 501}),
        ("silences", {"by": "b" * 101}),
        ("silences", {"why": "w" * 501}),
        ("acknowledgements", {"withdrawn_ms": "x"}),
    ],
)
def test_a_field_that_warren_would_not_write_is_rejected(table: str, changes: dict[str, Any]) -> None:
    with pytest.raises(RejectedRecord) as rejected:
        decode(table, **changes)
    assert rejected.value.reason is RecordReject.VALUE
    assert rejected.value.change == RowChange(table, str(next(iter(ROWS[table].values()))))


@pytest.mark.parametrize("table", ROWS)
def test_a_row_without_one_of_its_fields_is_rejected(table: str) -> None:
    for column in ROWS[table]:
        row = {name: value for name, value in ROWS[table].items() if name not in (column, "lost_messages")}
        if column != "lost_messages":
            with pytest.raises(RejectedRecord):
                decode_record(f"{table}/{next(iter(ROWS[table].values()))}".encode(), json.dumps(row).encode())


def test_what_is_logged_of_a_record_is_printable() -> None:
    with pytest.raises(RejectedRecord) as rejected:
        decode("letters", event="a\nb\x1b[2J")
    assert rejected.value.detail.isprintable()


def test_the_row_of_another_key_is_rejected() -> None:
    with pytest.raises(RejectedRecord) as rejected:
        decode_record(b"storms/other", json.dumps(STORM).encode())
    assert rejected.value.reason is RecordReject.WRONG_ROW
    assert rejected.value.change == RowChange("storms", "other")


@pytest.mark.parametrize("key", [None, b"", b"storms", b"storms/", b"unknown/x", b"\xff/x", b"silences/\xff"])
def test_a_key_of_no_table_is_rejected(key: bytes | None) -> None:
    for value in (None, b"{}"):
        with pytest.raises(RejectedRecord) as rejected:
            decode_record(key, value)
        assert (rejected.value.reason, rejected.value.change) == (RecordReject.KEY, None)


@pytest.mark.parametrize(
    ("from_ms", "lasts_ms", "is_accepted"),
    [
        (WRITTEN_MS, MAX_SILENCE_MS, True),
        (WRITTEN_MS, MAX_SILENCE_MS + 1, False),
        (WRITTEN_MS, 10 * MAX_SILENCE_MS, False),
        (WRITTEN_MS, 0, True),
        (WRITTEN_MS, -1, False),
        (WRITTEN_MS + MAX_CLOCK_DIFFERENCE_MS, DAY_MS, True),
        (WRITTEN_MS + MAX_CLOCK_DIFFERENCE_MS + 1, DAY_MS, False),
        (WRITTEN_MS - 400 * DAY_MS, DAY_MS, True),
    ],
)
def test_a_silence_lasts_a_year_at_most_from_when_it_was_written(
    from_ms: int, lasts_ms: int, is_accepted: bool
) -> None:
    if is_accepted:
        assert decode("silences", from_ms=from_ms, until_ms=from_ms + lasts_ms).row
        return
    with pytest.raises(RejectedRecord) as rejected:
        decode("silences", from_ms=from_ms, until_ms=from_ms + lasts_ms)
    assert rejected.value.reason is RecordReject.ACTION


@pytest.mark.parametrize(
    ("table", "changes"),
    [
        ("silences", {"by": " "}),
        ("silences", {"why": ""}),
        ("silences", {"why": "a\nb"}),
        ("silences", {"name": "a\x1b[2J"}),
        ("silences", {"name": "a*" * 21}),
        ("silences", {"cluster": "a\u2028"}),
        ("acknowledgements", {"by": ""}),
        ("acknowledgements", {"why": "a\rb"}),
    ],
)
def test_what_the_api_would_refuse_is_rejected(table: str, changes: dict[str, Any]) -> None:
    with pytest.raises(RejectedRecord) as rejected:
        decode(table, **changes)
    assert rejected.value.reason is RecordReject.ACTION


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@given(table=st.sampled_from(sorted(ROWS)), data=st.data(), value=json_values)
def test_any_value_of_any_field_is_read_or_rejected(table: str, data: st.DataObject, value: object) -> None:
    column = data.draw(st.sampled_from(sorted(ROWS[table])))
    for written in (value, json.dumps(value)):
        with contextlib.suppress(RejectedRecord):
            assert decode(table, **{column: written}).table == table


@given(key=st.binary(max_size=30) | st.none(), value=st.binary(max_size=60) | st.none())
def test_any_bytes_are_read_or_rejected(key: bytes | None, value: bytes | None) -> None:
    for given_key in (key, b"silences/" + (key or b"")):
        with contextlib.suppress(RejectedRecord):
            assert decode_record(given_key, value).row is None, "no bytes are a row by chance"


@given(name=st.text(max_size=50))
def test_what_warren_writes_it_reads_whatever_the_names_are(name: str) -> None:
    opened = replace(
        incident("i1", name), changes=(StatusChange(1, Status.ERR),) * MAX_CHANGES, closed_ms=5, lost_messages=7
    )
    sent = notification(1, "i1", event=Event.CLOSE, sent_ms=5, receipt=name, last_error=name)
    named = replace(sent, group=name, result=replace(sent.result, group=name), key=f"report/c/{name}/hook/1")
    silence = Silence("s", "*", "g*", 1, 1 + MAX_SILENCE_MS, "ann", "a release")
    for item in (opened, named, silence):
        change = to_change(item)
        assert decode_record(*encode_record(change), WRITTEN_MS) == change
