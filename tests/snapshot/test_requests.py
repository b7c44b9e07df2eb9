"""Requests between processes: whole, durable, and nothing foreign in their way."""

import json
import logging
import os
from pathlib import Path
from typing import Any

import pytest

from warren.snapshot.requests import PipelineRequest, RequestKind, RequestQueue

GOOD: dict[str, Any] = {"id": "x", "kind": "delete", "asked_at_ms": 5, "cluster": "c", "group": "g"}


@pytest.fixture
def box(tmp_path: Path) -> RequestQueue:
    return RequestQueue(tmp_path / "data")


def names(tmp_path: Path) -> set[str]:
    return {path.name for path in (tmp_path / "data" / "requests").iterdir()}


def test_nothing_has_been_asked(box: RequestQueue) -> None:
    assert box.pending() == []
    box.remove(["never asked"])


def test_what_is_asked_is_seen_by_another_process_until_it_is_removed(box: RequestQueue, tmp_path: Path) -> None:
    second = box.ask(RequestKind.DELETE, 20, cluster="c", group="g", topic="t")
    first = box.ask(RequestKind.DELETE, 10, cluster="c", group="g")
    third = box.ask(RequestKind.LOGLEVEL, 30, level="debug")
    assert second == PipelineRequest(second.id, RequestKind.DELETE, 20, "c", "g", "t")
    other = RequestQueue(tmp_path / "data")
    assert other.pending() == [first, second, third], "oldest first"
    assert first.topic is None, "the whole group"
    other.remove([second.id, second.id, "gone already"])
    assert box.pending() == [first, third]
    assert names(tmp_path) == {f"{first.id}.json", f"{third.id}.json"}


@pytest.mark.parametrize("name", ["", "grüße-消費者-🐇", "../../etc/passwd", 'a"b\\c\n\x00', " ", "x" * 40_000])
def test_names_may_be_anything(box: RequestQueue, name: str) -> None:
    asked = box.ask(RequestKind.DELETE, 1, cluster=name, group=name, topic=name)
    assert box.pending() == [asked]
    assert (asked.cluster, asked.group, asked.topic) == (name, name, name)


def test_half_a_character_is_refused(box: RequestQueue) -> None:
    with pytest.raises(ValueError, match="surrogates not allowed"):
        box.ask(RequestKind.DELETE, 1, cluster="c", group="\ud83d")
    assert box.pending() == []


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("nothing", b""),
        ("no JSON", b"{"),
        ("no text", b"\xff\xfe\x00"),
        ("deep", b"[" * 100_000),
        ("another thing", b"[]"),
        ("null", b"null"),
        ("no fields", b"{}"),
        ("another's id", json.dumps(GOOD | {"id": "y"}).encode()),
        ("a kind nobody knows", json.dumps(GOOD | {"kind": "reboot"}).encode()),
        ("a kind that is a list", json.dumps(GOOD | {"kind": []}).encode()),
        ("a field nobody knows", json.dumps(GOOD | {"force": True}).encode()),
        ("a group that is a number", json.dumps(GOOD | {"group": 7}).encode()),
        ("a topic that is a number", json.dumps(GOOD | {"topic": 0}).encode()),
        ("half a character", json.dumps(GOOD | {"group": "\ud83d"}).encode()),
        ("a time that is a text", json.dumps(GOOD | {"asked_at_ms": "5"}).encode()),
        ("a time that is no number", b'{"id": "x", "kind": "delete", "asked_at_ms": NaN}'),
        ("a time before all", json.dumps(GOOD | {"asked_at_ms": -1}).encode()),
        ("a time after all", json.dumps(GOOD | {"asked_at_ms": 10**30}).encode()),
    ],
)
def test_what_is_no_request_is_reported_once_and_left(
    box: RequestQueue, tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str, data: bytes
) -> None:
    asked = box.ask(RequestKind.DELETE, 1, cluster="c", group="g")
    foreign = tmp_path / "data" / "requests" / "x.json"
    foreign.write_bytes(data)
    with caplog.at_level(logging.WARNING):
        assert [box.pending() for _ in range(3)] == [[asked]] * 3, name
    assert len(caplog.records) == 1
    assert str(foreign) in caplog.text
    assert foreign.exists()


def test_other_files_and_folders_are_no_requests(
    box: RequestQueue, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    asked = box.ask(RequestKind.DELETE, 1, cluster="c", group="g")
    folder = tmp_path / "data" / "requests"
    (folder / "folder.json").mkdir()
    (folder / "notes.txt").write_text("buy carrots")
    (folder / "half.draft").write_text('{"id": "ha')
    with caplog.at_level(logging.WARNING):
        assert [box.pending(), box.pending()] == [[asked], [asked]]
    assert len(caplog.records) == 2, "a draft is somebody's who is still writing"


def test_a_folder_that_is_a_file_is_reported(
    box: RequestQueue, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "requests").write_text("")
    with caplog.at_level(logging.WARNING):
        assert [box.pending(), box.pending()] == [[], []]
        box.remove(["x"])
        box.remove(["x"])
    assert len(caplog.records) == 2


def test_a_request_appears_only_when_it_is_on_disk(
    box: RequestQueue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError("no space left on device")

    box.ask(RequestKind.DELETE, 1, cluster="c", group="first")
    with monkeypatch.context() as patch:
        seen: list[list[PipelineRequest]] = []
        real = os.fsync

        def watched(handle: int) -> None:
            seen.append(box.pending())
            real(handle)

        patch.setattr(os, "fsync", watched)
        box.ask(RequestKind.DELETE, 2, cluster="c", group="second")
        assert [[request.group for request in requests] for requests in seen] == [
            ["first"], ["first"], ["first", "second"],
        ], "the folder's own name, the draft, and the name it gets"  # fmt: skip
        patch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="no space"):
            box.ask(RequestKind.DELETE, 3, cluster="c", group="third")
    assert [request.group for request in box.pending()] == ["first", "second"]
    assert all(name.endswith(".json") for name in names(tmp_path))
