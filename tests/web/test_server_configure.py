"""A server process that changes to another configuration: answers, listeners, certificates, and what is not dropped."""

import contextlib
import http.client
import os
import signal
import socket
import ssl
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import trustme

from tests.kit.servers import Client, server_config, within
from warren.config import Cluster, Config, General, HttpServer
from warren.config.auth import Auth, Entry, Role, digest_of, identity
from warren.config.security import Tls
from warren.errors import WarrenError
from warren.web.server import WebServer

ADMIN = Auth(Path("auth"), (Entry(Role.ADMIN, identity(None), digest_of(b"secret")),))


class Office:
    """A server process, its configuration and its clients."""

    def __init__(self, server: WebServer, config: Config) -> None:
        self.server, self.config = server, config

    def configure(self, **changes: object) -> None:
        wanted = replace(self.config, **changes)  # type: ignore[arg-type]
        self.server.configure(wanted)
        self.config = wanted

    def client(self, index: int = 0) -> Client:
        return Client(self.server.urls()[index])

    def clusters(self) -> list[str]:
        answer: list[str] = self.client().json("/v3/kafka")["clusters"]
        return answer


@pytest.fixture
def office(tmp_path: Path) -> Iterator[Office]:
    config = server_config(tmp_path)
    with contextlib.closing(WebServer(config)) as server:
        server.urls()
        yield Office(server, config)


def connected(office: Office) -> http.client.HTTPConnection:
    host, port = office.server.urls()[0].removeprefix("http://").split(":")
    return http.client.HTTPConnection(host, int(port), timeout=20)


def ask(connection: http.client.HTTPConnection, path: str, **headers: str) -> tuple[int, bytes]:
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    return answer.status, answer.read()


def test_answers_and_roles_change_and_open_connections_stay(office: Office) -> None:
    pid, connection = office.server.pid, connected(office)
    assert ask(connection, "/v3/kafka")[0] == 200
    peer = connection.sock
    clusters = {"three": Cluster("three", ("127.0.0.1:1",))}
    office.configure(clusters=clusters, general=General(access_control_allow_origin="https://a"), auth=ADMIN)
    assert ask(connection, "/v3/kafka")[0] == 401
    status, body = ask(connection, "/v3/kafka", Authorization="Bearer secret")
    assert (status, b'"clusters":["three"]' in body) == (200, True)
    assert (connection.sock is peer, office.server.pid) == (True, pid)
    assert office.client().ask("/burrow/admin").headers["Access-Control-Allow-Origin"] == "https://a"
    office.configure(auth=None, clusters={})
    assert office.clusters() == []
    assert ask(connection, "/v3/kafka")[0] == 200
    os.kill(pid or 0, signal.SIGKILL)
    within(lambda: office.server.pid != pid and is_answering(office), "it is back", 30)
    assert office.clusters() == [], "a restart takes the new configuration"


def is_answering(office: Office) -> bool:
    with contextlib.suppress(OSError):
        return office.client().ask("/burrow/admin").status == 200
    return False


def test_listeners_come_and_go_and_an_address_that_cannot_be_used_changes_nothing(office: Office) -> None:
    first = office.config.http_servers["default"]
    [url], connection = office.server.urls(), connected(office)
    assert ask(connection, "/burrow/admin")[0] == 200
    with socket.create_server(("127.0.0.1", 0)) as holder:
        taken = HttpServer(f"127.0.0.1:{holder.getsockname()[1]}", name="taken")
        with pytest.raises(WarrenError, match=r"\[httpserver.taken\] cannot listen at .* Address already in use"):
            office.configure(http_servers={"default": first, "taken": taken}, clusters={})
    assert office.server.urls() == [url]
    assert office.clusters() == ["one", "two"]
    office.configure(http_servers={"default": first, "taken": taken})
    assert office.server.urls() == [url, f"http://{taken.address}"]
    assert [office.client(index).ask("/burrow/admin").status for index in (0, 1)] == [200, 200]
    assert ask(connection, "/burrow/admin")[0] == 200, "the connection is still the same"
    # Another timeout is another server on the same socket.
    office.configure(http_servers={"taken": replace(taken, timeout=7)})
    assert office.server.urls() == [f"http://{taken.address}"]
    assert office.client().ask("/burrow/admin").status == 200
    within(lambda: not accepts(url), "nobody listens at the first address", 10)


def test_a_listener_moves_to_all_interfaces_and_back_at_its_port(office: Office) -> None:
    with socket.create_server(("127.0.0.1", 0)) as holder:
        port = holder.getsockname()[1]
    for address in (f"127.0.0.1:{port}", f":{port}", f"127.0.0.1:{port}"):
        office.configure(http_servers={"default": HttpServer(address, name="default")})
        assert office.server.urls() == [f"http://127.0.0.1:{port}"]
        for _ in range(20):
            assert office.client().ask("/burrow/admin").status == 200
        for host in ("127.0.0.1", ""):
            with pytest.raises(OSError, match="in use"):
                socket.create_server((host, port))


def accepts(url: str) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])), 1):
        return True
    return False


def issue(folder: Path) -> ssl.SSLContext:
    """Write a certificate and its key; gives a context that trusts no other."""
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1")
    issued.cert_chain_pems[0].write_to_path(folder / "certificate.pem")
    issued.private_key_pem.write_to_path(folder / "key.pem")
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return context


def test_a_renewed_certificate_is_used_and_a_broken_one_refused(office: Office, tmp_path: Path) -> None:
    servers = {"default": replace(office.config.http_servers["default"], tls="own")}
    tls = {"own": Tls(tmp_path / "certificate.pem", tmp_path / "key.pem", name="own")}
    first = issue(tmp_path)
    office.configure(http_servers=servers, tls=tls)
    [url] = office.server.urls()
    assert (url[:5], Client(url, first).ask("/burrow/admin").status) == ("https", 200)
    second = issue(tmp_path)
    office.configure()
    assert [is_trusted(url, context) for context in (first, second)] == [False, True], "the renewed one is used at once"
    (tmp_path / "key.pem").write_text("broken")
    with pytest.raises(WarrenError, match=r"\[tls.own\] certificate or key cannot be used"):
        office.configure(clusters={})
    assert Client(url, second).json("/v3/kafka")["clusters"] == ["one", "two"]


def is_trusted(url: str, context: ssl.SSLContext) -> bool:
    with contextlib.suppress(OSError):
        return Client(url, context).ask("/burrow/admin").status == 200
    return False
