"""What people said about incidents is read back, by whoever reads."""

from contextlib import closing
from dataclasses import replace
from pathlib import Path

from warren.incidents.silences import (
    Acknowledgement,
    Silence,
    acknowledgements_in,
    not_shared,
    put_down,
    read_silences,
    silences_in,
    write_action,
)
from warren.incidents.store.database import open_to_write, writing

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
    with closing(open_to_write(tmp_path)) as book:
        assert acknowledgements_in(book) == {}, "there is no such incident"
        book.execute("INSERT INTO incidents VALUES ('i1', 'c', 'g', 1, NULL, 3, '[]', '{}', '[]', 0)")
        assert acknowledgements_in(book) == {"i1": IN_HAND}
        write_action(tmp_path, replace(IN_HAND, withdrawn_ms=9))
        assert acknowledgements_in(book) == {}


def test_what_is_not_shared_yet_is_known(tmp_path: Path) -> None:
    write_action(tmp_path, SILENCE)
    write_action(tmp_path, IN_HAND)
    with closing(open_to_write(tmp_path)) as book:
        assert not_shared(book) == [IN_HAND, SILENCE]
        with writing(book):
            put_down(book, [SILENCE], is_shared=True)
        assert not_shared(book) == [IN_HAND]
        assert silences_in(book, 0) == [SILENCE]
