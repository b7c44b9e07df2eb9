"""Silences and acknowledgements are stored, read back, and marked as shared."""

from contextlib import closing
from pathlib import Path

from msgspec.structs import replace

from warren.incidents.silences import Acknowledgement, Silence
from warren.incidents.store.database import open_database, transaction
from warren.incidents.store.operator_actions import (
    current_actions,
    read_silences,
    store_actions,
    unshared_actions,
    write_action,
)

SILENCE = Silence("s1", "prod-*", "pay-*", 10, 100, "ann", "a release")
ACKNOWLEDGEMENT = Acknowledgement("i1", 5, "bob", "I am on it")


def test_a_silence_is_read_until_it_ends(tmp_path: Path) -> None:
    assert read_silences(tmp_path, 0) == []
    write_action(tmp_path, SILENCE)
    write_action(tmp_path, replace(SILENCE, id="s2", until_ms=50))
    assert [silence.id for silence in read_silences(tmp_path, 49)] == ["s2", "s1"]
    assert read_silences(tmp_path, 50) == [SILENCE]
    assert read_silences(tmp_path, 100) == []


def test_a_silence_can_be_ended(tmp_path: Path) -> None:
    write_action(tmp_path, SILENCE)
    write_action(tmp_path, replace(SILENCE, until_ms=20))
    assert read_silences(tmp_path, 20) == []


def test_an_open_incident_is_acknowledged_until_that_is_withdrawn(tmp_path: Path) -> None:
    write_action(tmp_path, ACKNOWLEDGEMENT)
    with closing(open_database(tmp_path)) as database:
        assert current_actions(database, 0).acknowledgements == {}, "there is no such incident"
        database.execute("INSERT INTO incidents VALUES ('i1', 'c', 'g', 1, NULL, 3, '[]', '{}', '[]', 0, 0)")
        assert current_actions(database, 0).acknowledgements == {"i1": ACKNOWLEDGEMENT}
        write_action(tmp_path, replace(ACKNOWLEDGEMENT, withdrawn_ms=9))
        assert current_actions(database, 0).acknowledgements == {}


def test_unshared_actions_are_known(tmp_path: Path) -> None:
    write_action(tmp_path, SILENCE)
    write_action(tmp_path, ACKNOWLEDGEMENT)
    with closing(open_database(tmp_path)) as database:
        assert unshared_actions(database) == [ACKNOWLEDGEMENT, SILENCE]
        with transaction(database):
            store_actions(database, [SILENCE], is_shared=True)
        assert unshared_actions(database) == [ACKNOWLEDGEMENT]
        assert current_actions(database, 0).silences == [SILENCE]
