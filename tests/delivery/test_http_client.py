"""What an HTTP answer means for the request: taken, try again, or refused."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.receivers import Receiver, receiving
from warren.config import Notifier
from warren.config.sinks import HttpSink
from warren.delivery.http_client import HttpClient, parse_retry_after
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
    assert parse_retry_after(said, NOW_S) == wait_s


@pytest.mark.parametrize(
    ("status", "retry_after", "expected"),
    [
        (429, "7", BusyError),
        (503, "7", BusyError),
        (429, "", BusyError),
        (500, "7", BusyError),
        (404, "7", RefusedError),
    ],
)
def test_an_answer_is_busy_refused_or_a_failure(
    tmp_path: Path, receiver: Receiver, status: int, retry_after: str, expected: type[Exception]
) -> None:
    (tmp_path / "open.tmpl").write_text("x")
    receiver.answers, receiver.headers = [status], {"Retry-After": retry_after}
    receiver.says["/"] = ["no_service"]
    with pytest.raises(expected, match=f"the server answered {status} no_service") as said:
        HttpSender(Notifier("x", "http", tmp_path / "open.tmpl", url_open=f"{receiver.url}/")).send(
            sample_notification("x", Event.OPEN)
        )
    if isinstance(said.value, BusyError):
        assert said.value.wait_s == (7 if retry_after and status != 500 else 0)


@pytest.mark.parametrize("page", ["<html>no</html>", "not a word", "x" * 500, "é"])
def test_only_a_word_of_an_answer_is_repeated(receiver: Receiver, page: str) -> None:
    receiver.answers, receiver.says["/"] = [404], [page]
    with pytest.raises(RefusedError) as said:
        HttpClient(Notifier("x", "http"), {}).send("POST", f"{receiver.url}/", b"")
    assert len(str(said.value)) < 100
    assert page not in str(said.value)


@pytest.mark.parametrize("headers", [{"X-Key": "secret\n"}, {"X-Key": "sécret€"}])
def test_a_header_that_cannot_be_sent_is_not_shown(receiver: Receiver, headers: dict[str, str]) -> None:
    with pytest.raises(RefusedError, match="cannot be sent as it is configured") as said:
        HttpClient(Notifier("x", "http", headers=headers), {}).send("POST", receiver.url, b"")
    assert "cret" not in str(said.value)
    assert receiver.got == []


@pytest.mark.parametrize(
    ("status", "retried_by_notifiers", "retried_by_sinks"),
    [
        (400, False, False),
        (401, False, True),
        (403, False, True),
        (404, False, True),
        (408, True, True),
        (413, False, False),
        (425, True, True),
        (429, True, True),
        (500, True, True),
        (503, True, True),
    ],
)
def test_sinks_also_retry_what_somebody_can_mend(
    receiver: Receiver, status: int, retried_by_notifiers: bool, retried_by_sinks: bool
) -> None:
    receiver.answers = [status, status]
    for client, url, is_retried in (
        (HttpClient(Notifier("x", "http"), {}), receiver.url, retried_by_notifiers),
        (HttpClient(HttpSink("x", urls=(receiver.url,)), {}), "/", retried_by_sinks),
    ):
        with pytest.raises(BusyError if is_retried else RefusedError, match=f"the server answered {status}"):
            client.send("POST", url, b"")
        client.close()


def test_an_accepted_status_is_an_answer(receiver: Receiver) -> None:
    receiver.answers = [404]
    client = HttpClient(HttpSink("x", urls=(receiver.url,)), {})
    assert client.send("POST", "/", accepted={404}).status_code == 404


@pytest.mark.parametrize("first", ["http://127.0.0.1:1", "nonsense", "ftp://127.0.0.1"])
def test_a_sink_fails_over_to_its_next_server(receiver: Receiver, first: str) -> None:
    client = HttpClient(HttpSink("x", urls=(first, f"{receiver.url}/")), {})
    with pytest.raises(BusyError):
        client.send("POST", "/path", b"x", query={"a": "1", "b": None})
    assert client.send("POST", "/path", b"x", query={"a": "1", "b": None}).is_success
    assert [request.path for request in receiver.got] == ["/path?a=1"]
