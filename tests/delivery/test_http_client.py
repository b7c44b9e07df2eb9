"""What an answer over HTTP means for a letter."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.receivers import Receiver, receiving
from warren.config import Notifier
from warren.delivery.http_client import HttpClient, wait_asked_for
from warren.errors import BusyError, RefusedError
from warren.incidents.model import Event
from warren.notify.senders.http import HttpSender
from warren.notify.templates.sample import sample_notification

NOW_S = 1_767_225_600.0


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as receiver:
        yield receiver


@pytest.mark.parametrize(
    ("said", "wait_s"),
    [
        (None, None),
        ("", None),
        ("soon", None),
        ("-5", None),
        ("30", 30.0),
        (" 0 ", 0.0),
        ("Thu, 01 Jan 2026 00:02:00 GMT", 120.0),
        ("Wed, 31 Dec 2025 23:00:00 GMT", 0.0),
        ("Thu, 99 Jan 2026 00:02:00 GMT", None),
        ("٣", None),
    ],
)
def test_how_long_a_receiver_wants_to_be_left_alone(said: str | None, wait_s: float | None) -> None:
    assert wait_asked_for(said, NOW_S) == wait_s


@pytest.mark.parametrize(
    ("status", "retry_after", "expected"),
    [
        (429, "7", BusyError),
        (503, "7", BusyError),
        (429, "", ConnectionError),
        (500, "7", ConnectionError),
        (404, "7", RefusedError),
    ],
)
def test_an_answer_is_busy_refused_or_a_failure(
    tmp_path: Path, receiver: Receiver, status: int, retry_after: str, expected: type[Exception]
) -> None:
    (tmp_path / "open.tmpl").write_text("x")
    receiver.answers, receiver.headers = [status], {"Retry-After": retry_after}
    receiver.says["/"] = ["no_service"]
    with pytest.raises(expected, match=f"the receiver answered {status} no_service") as said:
        HttpSender(Notifier("x", "http", tmp_path / "open.tmpl", url_open=f"{receiver.url}/"))(
            sample_notification("x", Event.OPEN)
        )
    assert not isinstance(said.value, BusyError) or said.value.wait_s == 7


@pytest.mark.parametrize("page", ["<html>no</html>", "not a word", "x" * 500, "é"])
def test_only_a_word_of_an_answer_is_repeated(receiver: Receiver, page: str) -> None:
    receiver.answers, receiver.says["/"] = [404], [page]
    with pytest.raises(RefusedError) as said:
        HttpClient(Notifier("x", "http")).send("POST", f"{receiver.url}/", b"")
    assert len(str(said.value)) < 100
    assert page not in str(said.value)


@pytest.mark.parametrize("headers", [{"X-Key": "secret\n"}, {"X-Key": "sécret€"}])
def test_a_header_that_cannot_be_sent_is_not_shown(receiver: Receiver, headers: dict[str, str]) -> None:
    with pytest.raises(RefusedError, match="cannot be sent as it is configured") as said:
        HttpClient(Notifier("x", "http", headers=headers)).send("POST", receiver.url, b"")
    assert "cret" not in str(said.value)
    assert receiver.got == []
