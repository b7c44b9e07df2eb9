"""Receivers and sinks that are hostile or on an unsafe network: real mail and HTTP servers, and what messages show."""

import gzip
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import trustme

from tests.kit.receivers import receiving
from tests.notify.senders.test_email import serving
from warren.config import Notifier, load, read
from warren.config.secrets import Secret
from warren.config.sinks import HttpSink, InfluxSink
from warren.delivery import http_client
from warren.delivery.http_client import MAX_ANSWER_BYTES, HttpClient, without_credentials
from warren.errors import BusyError, ConfigError
from warren.incidents.model import Event
from warren.notify.senders.email import EmailSender
from warren.notify.templates.sample import sample_notification

NOTIFICATION = sample_notification("mail", Event.OPEN)


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def mail(tmp_path: Path, authority: trustme.CA) -> Notifier:
    (tmp_path / "open.tmpl").write_text("{{.Group}}\n")
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    return Notifier(
        "mail", "email", tmp_path / "open.tmpl", server="127.0.0.1", from_="warren@example.com",
        to="oncall@example.com", extra_ca=tmp_path / "ca.pem", require_tls=True,
    )  # fmt: skip


def test_with_require_tls_nothing_is_sent_to_a_server_without_it(authority: trustme.CA, mail: Notifier) -> None:
    with serving(authority, tls=False) as mailbox:
        with pytest.raises(BusyError, match="does not offer TLS, which require-tls demands: nothing is sent"):
            EmailSender(replace(mail, port=mailbox.port)).send(NOTIFICATION)
        assert mailbox.mails == []
        EmailSender(replace(mail, port=mailbox.port, require_tls=False)).send(NOTIFICATION)
        assert len(mailbox.mails) == 1, "without it mails are sent as Burrow sends them"
    with serving(authority) as mailbox:
        EmailSender(replace(mail, port=mailbox.port)).send(NOTIFICATION)
        assert mailbox.was_tls == [True]


MAIL = """
[cluster.local]
class-name = "kafka"
servers = ["localhost:9092"]
[notifier.mail]
class-name = "email"
server = "{server}"
from = "a@example.com"
to = "b@example.com"
template-open = "config/default-email.tmpl"
username = "u"
password = "p"
{more}
"""


@pytest.mark.parametrize(
    ("server", "more", "is_warned"),
    [
        ("smtp.example.com", 'auth-type = "crammd5"', True),
        ("smtp.example.com", 'auth-type = "crammd5"\nport = 587', True),
        ("smtp.example.com", 'auth-type = "crammd5"\nport = 465', False),
        ("smtp.example.com", 'auth-type = "crammd5"\nrequire-tls = true', False),
        ("smtp.example.com", 'auth-type = "plain"', False),
        ("localhost", 'auth-type = "crammd5"', False),
    ],
)
def test_a_password_that_may_be_guessed_from_what_is_sent_is_warned_about(
    tmp_path: Path, server: str, more: str, is_warned: bool
) -> None:
    (tmp_path / "burrow.toml").write_text(MAIL.format(server=server, more=more))
    warnings = read(tmp_path)[1].warnings
    assert any("set require-tls = true" in warning for warning in warnings) == is_warned


def test_certificates_that_are_not_verified_are_warned_about(tmp_path: Path) -> None:
    sink = '[sink.es]\nclass-name = "elasticsearch"\nurls = ["https://host"]\ninsecure-skip-verify = true\n'
    (tmp_path / "burrow.toml").write_text(MAIL.format(server="host", more="noverify = true") + sink)
    warnings = [each for each in read(tmp_path)[1].warnings if "anyone on the way can pose as the server" in each]
    assert ["noverify" in warnings[0], "insecure-skip-verify" in warnings[1]] == [True, True]


@contextmanager
def endless(head: bytes, part: bytes, pause_s: float = 0.0) -> Iterator[str]:
    """A server whose answer does not end, unless there is no part to repeat; gives its URL."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(65_536)
                try:
                    connection.sendall(head)
                    while part:
                        connection.sendall(part)
                        time.sleep(pause_s)
                except OSError:
                    return

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}/"
        thread.join(10)


def test_an_answer_without_end_is_read_up_to_a_limit() -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 100000000000\r\n\r\n"
    with endless(head, b"x" * 100_000) as url:
        answer = HttpClient(Notifier("x", "http"), {}).send("POST", url)
        assert (answer.status_code, len(answer.content)) == (200, MAX_ANSWER_BYTES)


def test_an_answer_that_trickles_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_client, "MAX_ANSWER_S", 0.5)
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n"
    began = time.monotonic()
    with endless(head, b"x", pause_s=0.05) as url:
        assert HttpClient(Notifier("x", "http"), {}).send("POST", url).is_success
    assert time.monotonic() - began < 5.0


def test_a_compressed_answer_is_not_unpacked() -> None:
    bomb = gzip.compress(b"x" * 50_000_000, 9)
    head = f"HTTP/1.1 500 no\r\nContent-Encoding: gzip\r\nContent-Length: {len(bomb)}\r\n\r\n".encode()
    with endless(head + bomb, b"") as url, pytest.raises(BusyError, match="the server answered 500") as error:
        HttpClient(HttpSink("x", urls=(url,)), {}).send("POST", "")
    assert "xxx" not in str(error.value)


def test_a_redirect_within_the_server_is_still_followed() -> None:
    with receiving() as receiver:
        receiver.answers, receiver.headers = [307], {"Location": "/there"}
        assert HttpClient(Notifier("x", "http"), {}).send("POST", f"{receiver.url}/here", b"b").is_success
        assert [(got.path, got.body) for got in receiver.got] == [("/here", "b"), ("/there", "b")]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("http://u:p@host/x", "http://…@host/x"),
        ("no https://u:p@ss@host:1/ there", "no https://…@host:1/ there"),
        ("http://token@host", "http://…@host"),
        ("http://host/a@b", "http://host/a@b"),
        ("mail a@b", "mail a@b"),
    ],
)
def test_a_url_is_shown_without_its_credentials(text: str, shown: str) -> None:
    assert without_credentials(text) == shown


def test_what_a_sink_says_has_no_password_of_its_url() -> None:
    with receiving() as receiver:
        url = receiver.url.replace("://", "://ann:s3cret@")
        receiver.answers, receiver.says = [500], {"/x": [f"cannot handle {url}/x"]}
        with pytest.raises(BusyError) as error:
            HttpClient(HttpSink("x", urls=(url,)), {}).send("POST", "/x")
        assert "s3cret" not in str(error.value)
        assert "cannot handle http://…@127.0.0.1" in str(error.value)
        assert receiver.got[0].headers["authorization"].startswith("Basic "), "it was used"
    assert "s3cret" not in repr(InfluxSink("x", urls=(url,), password=Secret("s3cret")))


SINK = """
[cluster.local]
class-name = "kafka"
servers = ["localhost:9092"]
[sink.es]
class-name = "elasticsearch"
urls = {urls}
"""


def test_a_mistake_in_the_urls_of_a_sink_does_not_show_them(tmp_path: Path) -> None:
    (tmp_path / "burrow.toml").write_text(SINK.format(urls='["http://ann:s3cret@host", ""]'))
    with pytest.raises(ConfigError) as error:
        load(tmp_path)
    assert "urls = (not shown): must be a list of URLs" in str(error.value)
    assert "s3cret" not in str(error.value)


def test_a_url_of_a_sink_may_come_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "burrow.toml").write_text(SINK.format(urls='["http://ann:${ES_PASSWORD}@host", "http://other"]'))
    monkeypatch.setenv("ES_PASSWORD", "s3cret")
    sink = load(tmp_path).sinks["es"]
    assert isinstance(sink, HttpSink)
    assert sink.urls == ("http://ann:s3cret@host", "http://other")
