"""What people said about incidents is read back, by whoever reads."""

from contextlib import closing
from dataclasses import replace
from pathlib import Path

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
IN_HAND = Acknowledgement("i1", 5, "bob", "I look")


def test_a_silence_is_there_until_it_is_over(tmp_path: Path) -> None:
    assert read_silences(tmp_path, 0) == []
    write_action(tmp_path, SILENCE)
    write_action(tmp_path, replace(SILENCE, id="s2", until_ms=50))
    assert [one.id for one in read_silences(tmp_path, 49)] == ["s2", "s1"]
    assert read_silences(tmp_path, 50) == [SILENCE]
    assert read_silences(tmp_path, 100) == []


def test_a_silence_can_be_ended(tmp_path: Path) -> None:
    write_action(tmp_path, SILENCE)
    write_action(tmp_path, replace(SILENCE, until_ms=20))
    assert read_silences(tmp_path, 20) == []


def test_an_acknowledgement_is_that_of_an_open_incident_until_it_is_taken_back(tmp_path: Path) -> None:
    write_action(tmp_path, IN_HAND)
    with closing(open_database(tmp_path)) as book:
        assert current_actions(book, 0).acknowledgements == {}, "there is no such incident"
        book.execute("INSERT INTO incidents VALUES ('i1', 'c', 'g', 1, NULL, 3, '[]', '{}', '[]', 0)")
        assert current_actions(book, 0).acknowledgements == {"i1": IN_HAND}
        write_action(tmp_path, replace(IN_HAND, withdrawn_ms=9))
        assert current_actions(book, 0).acknowledgements == {}


def test_what_is_not_shared_yet_is_known(tmp_path: Path) -> None:
    write_action(tmp_path, SILENCE)
    write_action(tmp_path, IN_HAND)
    with closing(open_database(tmp_path)) as book:
        assert unshared_actions(book) == [IN_HAND, SILENCE]
        with transaction(book):
            store_actions(book, [SILENCE], is_shared=True)
        assert unshared_actions(book) == [IN_HAND]
        assert current_actions(book, 0).silences == [SILENCE]
