"""The rows of the tables stay as every earlier version of Warren wrote them; new keys of a result are added."""

import json
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import pytest

from warren.incidents.model import NO_RESULT, Incident, Notification, Storm
from warren.incidents.silences import Acknowledgement, Silence
from warren.incidents.store.database import ADDED_COLUMNS, open_database, open_read_only
from warren.incidents.store.rows import COLUMNS, TABLE_OF, from_row, read, to_row

PARTITION = (
    '{"topic":"t","partition":1,"owner":"","client_id":"","status":"STALL","start":{"offset":1,"timestamp":1001,'
    '"observedAt":1000,"lag":null},"end":null,"current_lag":3,"complete":1.0,"seconds_behind":61.5,'
    '"oldest_unread_age_seconds":90000.5,"catch_up_seconds":null,"retention_left_seconds":null}'
)
RESULT = (
    f'{{"cluster":"c","group":"g","status":"ERR","complete":1.0,"partitions":[{PARTITION}],"partition_count":3,'
    f'"maxlag":{PARTITION},"totallag":9,"seconds_behind":61.5,"seconds_behind_method":"head_history",'
    '"oldest_unread_age_seconds":90000.5,"catch_up_seconds":null,"catch_up_seconds_at_most":null,"is_falling_behind":true,"retention_left_seconds":null,'
    '"lost_messages":0}'
)
ADDED_KEYS = {"seconds_behind", "seconds_behind_method", "catch_up_seconds", "catch_up_seconds_at_most"} | {
    "is_falling_behind",
    "retention_left_seconds",
    "lost_messages",
    "oldest_unread_age_seconds",
}
"""Keys that results of earlier versions lack."""
STORM_GROUP = '{"group":"g","status":"ERR","totallag":9,"partitions":1,"seconds_behind":61.5}'
STORM_RESULT = f'{RESULT[:-1]},"groups":[{STORM_GROUP}],"group_count":1}}'
INCIDENT: Mapping[str, object] = {
    "id": "i1", "cluster": "c", "name": "g", "opened_ms": 5, "changes": "[[5,2],[7,3]]", "worst": 3,
    "told": '{"hook":[2,7,3,"s1"]}', "closed_ms": None, "partitions": '[["t",1,5,null],["t",2,4,4]]',
    "partition_count": 7,
}  # fmt: skip
NOTIFICATION: Mapping[str, object] = {
    "key": "i1/hook/1", "listener": "hook", "event": "open", "incident": "i1", "number": 1, "cluster": "c", "name": "g",
    "opened_ms": 5, "due_ms": 6, "why": "it is ERR", "result": RESULT, "team": "a", "channel": "#a", "attempts": 2,
    "next_ms": 9, "sent_ms": None, "given_up_ms": 10, "trouble": "refused", "receipt": "r",
}  # fmt: skip
STORM: Mapping[str, object] = {
    "id": "s1", "listener": "hook", "cluster": "c", "channel": "#c", "opened_ms": 1, "grown_ms": 2,
    "told": '[2,7,3,""]', "total": 4, "untold": 1,
}  # fmt: skip
ACKNOWLEDGEMENT = {"incident": "i1", "at_ms": 6, "by": "bob", "why": "mine", "withdrawn_ms": None}
SILENCE = {"id": "s", "cluster": "c*", "name": "g", "from_ms": 1, "until_ms": 9, "by": "ann", "why": "a release"}


@pytest.mark.parametrize(
    ("model", "row"),
    [
        (Incident, INCIDENT),
        (Notification, NOTIFICATION),
        (Notification, {**NOTIFICATION, "result": STORM_RESULT}),
        (Notification, {**NOTIFICATION, "result": "{}"}),
        (Storm, STORM),
        (Acknowledgement, ACKNOWLEDGEMENT),
        (Silence, SILENCE),
    ],
)
def test_a_row_of_an_earlier_version_is_read_and_written_unchanged(model: type, row: Mapping[str, object]) -> None:
    added = {name: column.default for name, column in ADDED_COLUMNS.get(TABLE_OF[model], {}).items()}
    assert to_row(from_row(model, list(row.values()))) == {**row, **added}


def test_lost_messages_of_an_incident_are_read_back() -> None:
    row = {**INCIDENT, "lost_messages": 1234}
    assert from_row(Incident, list(row.values())).lost_messages == 1234
    assert to_row(from_row(Incident, list(row.values()))) == row


def test_tables_of_an_earlier_version_get_the_columns_that_they_lack(tmp_path: Path) -> None:
    with closing(open_database(tmp_path)) as database:
        for table, added in ADDED_COLUMNS.items():
            for name in added:
                database.execute(f"ALTER TABLE {table} DROP COLUMN {name}")
        for table, row in (("incidents", INCIDENT), ("letters", NOTIFICATION)):
            names, values = ", ".join(row), ", ".join(f":{name}" for name in row)
            database.execute(f"INSERT INTO {table} ({names}) VALUES ({values})", row)
    for opened in (open_read_only(tmp_path), closing(open_database(tmp_path)), open_read_only(tmp_path)):
        with opened as database:
            [incident] = read(database, Incident, "")
            assert (incident.id, incident.lost_messages) == ("i1", 0)
            assert len(read(database, Notification, "")) == 1


@pytest.mark.parametrize("result", [RESULT, STORM_RESULT])
def test_a_result_of_an_earlier_version_is_read_without_its_new_keys(result: str) -> None:
    earlier = json.dumps(json.loads(result, object_hook=without_added_keys))
    stored = from_row(Notification, list({**NOTIFICATION, "result": earlier}.values()))
    assert (stored.result.seconds_behind, stored.result.seconds_behind_method) == (None, "unknown")
    again = json.loads(str(to_row(stored)["result"]), object_hook=without_added_keys)
    assert again == json.loads(earlier)


def without_added_keys(value: dict[str, object]) -> dict[str, object]:
    return {name: held for name, held in value.items() if name not in ADDED_KEYS}


def test_a_notification_of_a_storm_is_read_as_one() -> None:
    stored = {**NOTIFICATION, "result": STORM_RESULT}
    assert from_row(Notification, list(stored.values())).is_storm
    assert from_row(Notification, list({**NOTIFICATION, "result": "{}"}.values())).result is NO_RESULT


def test_the_columns_are_those_of_the_tables(tmp_path: Path) -> None:
    with closing(open_database(tmp_path)) as database:
        for table, columns in COLUMNS.items():
            described = database.execute(f"PRAGMA table_info({table})").fetchall()
            assert {name for _, name, *_ in described} == set(columns)
            assert [name for _, name, *_, is_key in described if is_key] == [columns[0]]
