"""Logins: wrong ones are limited, counted and logged, and the file of secrets is kept with care."""

import base64
import http.client
import io
import logging
import stat
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.config.written import SMALLEST, warnings
from tests.kit.servers import Client, Got, Town, server_config, serving
from warren.cli import main
from warren.config.auth import Auth, Entry, Role, hashed_password, identity, parse_entries, salted_hash, weaknesses_of
from warren.web.auth import MAX_KNOWN, Guard
from warren.web.logins import FAILURES_AT_ONCE, MAX_ADDRESSES, SECONDS_PER_FAILURE, Logins

HASHED = hashed_password("pass wörd: 1")


def basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


ADMIN, READER = basic("ada", "pass wörd: 1"), "Bearer spoon"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    town = Town(tmp_path / "data").grow()
    town.publish()
    return town.data


@pytest.fixture
def client(data: Path) -> Iterator[Client]:
    entries, mistakes = parse_entries(f"read token spoon\nadmin basic ada:{HASHED}\n".encode())
    assert not mistakes
    with serving(server_config(data, auth=Auth(Path("auth"), entries))) as [client]:
        yield client


def asked_from(client: Client, address: str, authorization: str) -> Got:
    """What a client at another address of this machine is answered."""
    host, port = client.url.removeprefix("http://").split(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=60, source_address=(address, 0))
    try:
        connection.request("GET", "/v3/kafka", headers={"Authorization": authorization})
        answer = connection.getresponse()
        return Got(answer.status, answer.headers, answer.read())
    finally:
        connection.close()


def test_failures_are_limited_by_address_and_lock_nobody_else_out(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    assert client.known_as(READER).ask("/v3/kafka").status == 200
    statuses = [client.known_as(f"Bearer wrong-{n}").ask("/v3/kafka").status for n in range(FAILURES_AT_ONCE + 5)]
    # While it fails, a failure may be forgiven.
    assert statuses[:FAILURES_AT_ONCE] == [401] * FAILURES_AT_ONCE
    assert statuses.count(429) >= 3
    refused = client.known_as("Bearer wrong").ask("/v3/kafka")
    assert (refused.status, refused.json["message"]) == (429, "too many failed logins")
    assert 1 <= int(refused.headers["Retry-After"]) <= SECONDS_PER_FAILURE
    # A right guess is not told from a wrong one, but who was let in before goes on.
    assert client.known_as(ADMIN).ask("/v3/kafka").status == 429
    assert client.known_as(READER).ask("/v3/kafka").status == 200
    assert client.ask("/burrow/admin").status == 200
    assert client.ask("/v3/kafka").status == 401
    assert asked_from(client, "127.0.0.2", ADMIN).status == 200
    assert client.known_as(ADMIN).ask("/v3/kafka").status == 200, "it is known now"
    metrics = client.known_as(READER).ask("/metrics").text
    assert f'warren_http_failed_logins_total{{reason="wrong"}} {statuses.count(401)}\n' in metrics
    assert f'warren_http_failed_logins_total{{reason="too_many"}} {statuses.count(429) + 2}\n' in metrics
    lines = [record.getMessage() for record in caplog.records if "failed logins" in record.getMessage()]
    assert lines[0] == "1 failed logins, the last one from 127.0.0.1"
    assert len(lines) <= 3
    assert "wrong" not in caplog.text


def test_many_wrong_passwords_at_once_are_not_more(client: Client) -> None:
    with_connections = [client.connect() for _ in range(30)]
    for connection in with_connections:
        request = f"GET /v3/kafka HTTP/1.1\r\nAuthorization: {basic('ada', 'no')}\r\nConnection: close\r\n\r\n"
        connection.sendall(request.encode())
    statuses = [int(connection.makefile("rb").read().split()[1]) for connection in with_connections]
    for connection in with_connections:
        connection.close()
    assert statuses.count(401) <= FAILURES_AT_ONCE + 3
    assert statuses.count(401) + statuses.count(429) == 30


def test_a_hashed_password_is_checked_once(client: Client) -> None:
    admin = client.known_as(ADMIN)
    began = time.monotonic()
    assert admin.ask("/v3/kafka").status == 200
    first_s = time.monotonic() - began
    began = time.monotonic()
    for _ in range(10):
        assert admin.ask("/v3/kafka").status == 200
    assert time.monotonic() - began < max(10 * first_s / 2, 2)
    assert admin.ask("/v3/admin/loglevel", "POST", b'{"level":"info"}').status == 200


# The limit by itself


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_a_failure_is_forgiven_after_a_while() -> None:
    clock = Clock()
    logins = Logins(clock)
    assert [logins.begin("192.0.2.1") for _ in range(FAILURES_AT_ONCE)] == [0.0] * FAILURES_AT_ONCE
    assert logins.begin("192.0.2.1") == pytest.approx(SECONDS_PER_FAILURE)
    assert logins.begin("192.0.2.2") == 0
    clock.now += SECONDS_PER_FAILURE
    assert logins.begin("192.0.2.1") == 0
    assert logins.begin("192.0.2.1") > 0
    clock.now += 3600
    assert [logins.begin("192.0.2.1") for _ in range(FAILURES_AT_ONCE)] == [0.0] * FAILURES_AT_ONCE


def test_successes_do_not_count() -> None:
    logins = Logins(Clock())
    for _ in range(5 * FAILURES_AT_ONCE):
        assert logins.begin("192.0.2.1") == 0
        logins.succeeded("192.0.2.1")
    assert (logins.failed, logins.refused) == (0, 0)


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("2001:db8::1", "2001:db8::ffff:2", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("::ffff:192.0.2.1", "192.0.2.1", True),
        ("::ffff:192.0.2.1", "::ffff:192.0.2.2", False),
        ("fe80::1%eth0", "fe80::2%eth0", True),
        ("", "192.0.2.1", False),
    ],
)
def test_a_client_is_an_address_or_a_network(one: str, other: str, is_same: bool) -> None:
    logins = Logins(Clock())
    for _ in range(FAILURES_AT_ONCE):
        logins.begin(one)
    assert bool(logins.begin(other)) == is_same


def test_addresses_are_forgotten_before_they_are_too_many() -> None:
    clock = Clock()
    logins = Logins(clock)
    for number in range(MAX_ADDRESSES + 1000):
        assert logins.begin(f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}") == 0
    assert len(logins._paid_at) == MAX_ADDRESSES
    clock.now += 3600
    logins.begin("192.0.2.1")
    assert len(logins._paid_at) == 1


def test_the_log_has_few_lines_of_many_failures(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    logins = Logins(clock)
    for _ in range(1000):
        logins.count_failure("192.0.2.1")
        clock.now += 0.05
    assert 5 <= len(caplog.records) <= 6
    assert sum(int(record.getMessage().split()[0]) for record in caplog.records) > 800
    assert logins.failed == 1000


# The file


def test_a_salted_hash_is_an_entry() -> None:
    _, salt, digest = HASHED.split(":")
    entries, mistakes = parse_entries(f"admin basic ada:{HASHED}".encode())
    assert entries == (Entry(Role.ADMIN, identity(b"ada"), bytes.fromhex(digest), bytes.fromhex(salt)),)
    assert not mistakes
    assert salted_hash("pass wörd: 1".encode(), bytes.fromhex(salt)) == bytes.fromhex(digest)
    assert hashed_password("pass wörd: 1") != HASHED


def test_a_password_is_checked_by_its_hash() -> None:
    guard = Guard(parse_entries(f"read basic ada:other\nadmin basic ada:{HASHED}\nread token t".encode())[0])
    assert guard.is_slow
    assert guard.known_role(ADMIN.encode()) is None
    assert guard.role_of(ADMIN.encode()) is Role.ADMIN
    assert guard.known_role(ADMIN.encode()) is Role.ADMIN
    assert guard.role_of(basic("ada", "other").encode()) is Role.READ
    for wrong in (basic("ada", "no"), basic("eve", "pass wörd: 1"), basic("ada", HASHED), f"Bearer {HASHED}"):
        assert guard.role_of(wrong.encode()) is None
        assert guard.known_role(wrong.encode()) is None


def test_remembered_credentials_are_bounded_and_not_kept_as_they_are() -> None:
    guard = Guard([Entry(Role.READ, identity(), parse_entries(b"read token t")[0][0].secret)])
    for number in range(MAX_KNOWN + 100):
        assert guard.role_of(b"Bearer " + b" " * number + b"t") is Role.READ
    assert len(guard._known) <= MAX_KNOWN
    assert all(len(name) == 32 for name in guard._known)


@pytest.mark.parametrize(
    ("line", "mistake"),
    [
        ("read token " + HASHED, "must have a random token after token, or its sha256: digest"),
        ("read basic me:scrypt:00:11", "must have a salt and a hash after scrypt:"),
        ("read basic me:scrypt:", "must have a salt and a hash after scrypt:"),
        ("read basic me:" + HASHED[:-1], "must have a salt and a hash after scrypt:"),
    ],
)
def test_a_hash_that_is_none_is_a_mistake_without_the_secret(line: str, mistake: str) -> None:
    [found] = parse_entries(line.encode())[1]
    assert mistake in found
    assert HASHED.split(":")[2][:20] not in found


def test_a_typed_password_is_hashed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("pass wörd: 1\n"))
    assert main(["hash-password"]) == 0
    printed = capsys.readouterr().out.strip()
    guard = Guard(parse_entries(f"admin basic ada:{printed}".encode())[0])
    assert guard.role_of(ADMIN.encode()) is Role.ADMIN
    monkeypatch.setattr("sys.stdin", io.StringIO("\n"))
    assert main(["hash-password"]) == 1
    assert capsys.readouterr().err == "the password is empty\n"


def test_weak_secrets_are_named_by_their_lines() -> None:
    digest = "sha256:" + "0" * 64
    content = (
        f"# x\nread token {digest}\nread token plain\nadmin basic a:{HASHED}\nread basic b:p\nread basic c:{digest}"
    )
    assert [weakness.partition(";")[0] for weakness in weaknesses_of(content.encode())] == [
        "line 3: the token is written as it is",
        "line 5: the password is written as it is",
        "line 6: the password is a digest without salt",
    ]


@pytest.mark.parametrize(("mode", "is_warned"), [(0o600, False), (0o640, False), (0o644, True), (0o602, True)])
def test_a_file_that_others_can_read_is_a_warning(tmp_path: Path, mode: int, is_warned: bool) -> None:
    file = tmp_path / "auth.txt"
    file.write_text(f"admin basic ada:{HASHED}\nread token plain-token\n")
    file.chmod(mode)
    found = warnings(tmp_path, f'{SMALLEST}[auth]\nfile = "auth.txt"')
    assert stat.S_IMODE(file.stat().st_mode) == mode
    assert ["auth.txt can be read by every user of this machine: chmod 600" in each for each in found] == (
        [True, False] if is_warned else [False]
    )
    assert "the token is written as it is" in found[-1]
    assert "plain-token" not in "".join(found)
