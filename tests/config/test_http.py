from pathlib import Path

import pytest

from tests.config.written import SMALLEST, loaded, mistakes
from warren.config import HttpServer, ZooKeeper, read

OUTWARD = """
[general]
pidfile = "burrow.pid"
stdout-logfile = "burrow.out"
access-control-allow-origin = "mysite.example.com"

[zookeeper]
servers = ["zk1:2181", "zk2:2181"]
timeout = 6
root-path = "/mypath/burrow"

[client-profile.myclient]
kafka-version = "0.10.2"
tls = "mytls"
sasl = "mysasl"

[tls.mytls]
certfile = "cert.pem"
keyfile = "key.pem"

[sasl.mysasl]
username = "me"
password = "hush"

[httpserver.mylistener]
address = ":8080"
timeout = 300
tls = "mytls"

[notifier.mynotify]
class-name = "http"
interval = 30
threshold = 3
group-whitelist = "^important-group-prefix.*$"
group-blacklist = "^not-this-group$"
extras = { key1 = "hush", key2 = 2, key3 = true }
send-close = true
template-open = "open.tmpl"
template-close = "close.tmpl"
url-open = "http://example.com/event"
method-close = "DELETE"

[notifier.mail]
class-name = "email"
template-open = "open.tmpl"
server = "mail.example.com"
port = 587
from = "warren@example.com"
to = "oncall@example.com"
auth-type = "plain"
"""


@pytest.fixture
def files(tmp_path: Path) -> Path:
    for name in ("cert.pem", "key.pem", "open.tmpl", "close.tmpl"):
        (tmp_path / name).write_text("")
    return tmp_path


def test_sections_that_say_how_it_runs_and_whom_it_tells_are_read(files: Path) -> None:
    config = loaded(files, SMALLEST + OUTWARD)
    assert (config.general.stdout_logfile, config.general.access_control_allow_origin) == (
        Path("burrow.out"),
        "mysite.example.com",
    )
    assert config.zookeeper == ZooKeeper(("zk1:2181", "zk2:2181"), 6, "/mypath/burrow")
    assert config.http_servers == {"mylistener": HttpServer(":8080", 300, "mytls", "mylistener")}
    assert config.tls["mytls"].certfile == files / "cert.pem"
    notifier, mail = config.notifiers["mynotify"], config.notifiers["mail"]
    assert (notifier.template_open, notifier.template_close) == (files / "open.tmpl", files / "close.tmpl")
    assert (notifier.threshold, notifier.group_allowlist) == (3, "^important-group-prefix.*$")
    assert notifier.extras == {"key1": "hush", "key2": "2", "key3": "true"}
    assert (notifier.method_open, notifier.method_close, notifier.keepalive) == ("POST", "DELETE", 300)
    assert (mail.from_, mail.to, mail.port) == ("warren@example.com", "oncall@example.com", 587)
    assert read(files)[1].warnings == []


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ('tls = "mytls"\nsasl', 'tls = "none"\nsasl', 'tls = "none": must be the name of a [tls.NAME] section (mytls)'),
        ('"cert.pem"', '"gone.pem"', 'certfile = "gone.pem": cannot be read: No such file or directory'),
        ('"close.tmpl"', '"."', 'template-close = ".": cannot be read: Is a directory'),
        ('template-close = "close.tmpl"\n', "", "template-close is missing: send-close needs it"),
        ('url-open = "http://example.com/event"\n', "", "url-open is missing: a notifier of class http needs it"),
        ('to = "oncall@example.com"\n', "", "to is missing: a notifier of class email needs it"),
        ('"http"', '"slak"', 'class-name = "slak": must be one of http, email, slack, alertmanager, apprise, null'),
        ('address = ":8080"', 'address = ":http"', 'address = ":http": must be an address to listen on'),
        ('tls = "mytls"\n\n', 'tls = "mytsl"\n\n', 'tls = "mytsl": must be the name of a [tls.NAME] section (mytls)'),
        ('keyfile = "key.pem"\n', "", 'tls = "mytls": an HTTP server also needs its keyfile'),
        ('url-open = "http', 'url-open = " hush', "url-open = (not shown): must be a URL"),
        ('password = "hush"', 'password = ["hush"]', "password = (not shown): must be a string"),
        ('key1 = "hush"', 'key1 = ["hush"]', "extras = (not shown): must be a table of strings"),
    ],
)
def test_a_mistake_in_them_is_told_without_secrets(files: Path, before: str, after: str, expected: str) -> None:
    assert before in OUTWARD
    (mistake,) = mistakes(files, SMALLEST + OUTWARD.replace(before, after, 1))
    assert expected in mistake
    assert "hush" not in mistake


@pytest.mark.parametrize(
    ("address", "host", "port"),
    [
        (":8000", "", 8000),
        ("127.0.0.1:8000", "127.0.0.1", 8000),
        ("0.0.0.0:65535", "0.0.0.0", 65535),
        ("[::1]:8000", "::1", 8000),
        ("[::]:8000", "::", 8000),
        ("warren.example.com:8000", "warren.example.com", 8000),
        ("my_service:80", "my_service", 80),
        ("Localhost:8000", "localhost", 8000),
        ("", "", 0),
        (":", "", 0),
        (":0", "", 0),
        ("localhost", "localhost", 0),
        ("localhost:", "localhost", 0),
        ("[::1]", "::1", 0),
    ],
)
def test_an_address_has_a_host_and_a_port_or_takes_any_free_one(
    tmp_path: Path, address: str, host: str, port: int
) -> None:
    server = loaded(tmp_path, f'{SMALLEST}[httpserver.x]\naddress = "{address}"').http_servers["x"]
    assert (server.address, server.host, server.port) == (address, host, port)


NO_ADDRESSES = """
":65536" ":123456" ":http" ":-1" "::1" "[::1" "[::g]:1" "[1.2.3.4]:1" "8000" 8000 "1.2.3:80" "256.1.1.1:80"
"a\\u0020b:80" "http://a:80" "a:80/" "ä:80" ":8000\\n" true
"""


@pytest.mark.parametrize("address", NO_ADDRESSES.split())
def test_what_is_no_address_is_a_mistake(tmp_path: Path, address: str) -> None:
    (mistake,) = mistakes(tmp_path, f"{SMALLEST}[httpserver.x]\naddress = {address}")
    assert mistake.endswith(': must be an address to listen on such as ":8000", "127.0.0.1:8000" or "[::1]:8000"')


@pytest.mark.parametrize(
    ("first", "second", "clash"),
    [
        (":8000", ":8000", True),
        ("a:8000", "A:8000", True),
        ("[::1]:8000", "[0:0::1]:8000", True),
        ("127.0.0.1:8000", ":8000", True),
        (":8000", "localhost:8000", True),
        (":8000", ":8001", False),
        ("127.0.0.1:8000", "127.0.0.2:8000", False),
        (":0", ":0", False),
        ("", "", False),
    ],
)
def test_two_servers_at_one_address_are_a_mistake(tmp_path: Path, first: str, second: str, clash: bool) -> None:
    text = f'{SMALLEST}[httpserver.x]\naddress = "{first}"\n[httpserver.y]\naddress = "{second}"'
    if clash:
        said = f'burrow.toml:13: [httpserver.y] address = "{second}": is taken by [httpserver.x]'
        assert mistakes(tmp_path, text) == [said]
    else:
        assert list(loaded(tmp_path, text).http_servers) == ["x", "y"]


def test_without_a_server_there_is_one_on_a_free_port(tmp_path: Path) -> None:
    config = loaded(tmp_path, SMALLEST)
    assert (config.http_servers, config.listeners) == ({}, {"default": HttpServer(":0", name="default")})
    config = loaded(tmp_path, SMALLEST + "[httpserver.x]")
    assert config.listeners == config.http_servers == {"x": HttpServer(name="x")}


def test_log_files_are_kept_as_burrow_keeps_them(tmp_path: Path) -> None:
    logging = loaded(tmp_path, SMALLEST).logging
    assert (logging.maxsize, logging.maxbackups, logging.maxage) == (100, 10, 30)
