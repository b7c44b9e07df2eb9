"""A file with every kind of section that says how Warren runs and what it notifies."""

from pathlib import Path

import pytest
import trustme

from tests.config.written import SMALLEST, loaded, mistakes
from warren.config import HttpServer, read
from warren.config.notifiers import ZooKeeper

MOST_SECTIONS = """
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
    own = trustme.CA().issue_cert("warren.example.com")
    own.cert_chain_pems[0].write_to_path(tmp_path / "cert.pem")
    own.private_key_pem.write_to_path(tmp_path / "key.pem")
    for name in ("open.tmpl", "close.tmpl"):
        (tmp_path / name).write_text("")
    return tmp_path


def test_sections_of_every_kind_are_read(files: Path) -> None:
    config = loaded(files, SMALLEST + MOST_SECTIONS)
    assert (config.general.stdout_logfile, config.general.access_control_allow_origin) == (
        Path("burrow.out"),
        "mysite.example.com",
    )
    assert config.zookeeper == ZooKeeper(("zk1:2181", "zk2:2181"), 6, "/mypath/burrow")
    assert config.http_servers == {"mylistener": HttpServer(":8080", 300, "mytls", name="mylistener")}
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
        ('url-open = "http', 'url-open = " hush', "url-open = (not shown): must be a URL"),
        ('password = "hush"', 'password = ["hush"]', "password = (not shown): must be a string"),
        ('key1 = "hush"', 'key1 = ["hush"]', "extras = (not shown): must be a table of strings"),
    ],
)
def test_a_mistake_in_them_is_reported_without_secrets(files: Path, before: str, after: str, expected: str) -> None:
    assert before in MOST_SECTIONS
    (mistake,) = mistakes(files, SMALLEST + MOST_SECTIONS.replace(before, after, 1))
    assert expected in mistake
    assert "hush" not in mistake


def test_log_files_are_kept_as_long_as_by_burrow(tmp_path: Path) -> None:
    logging = loaded(tmp_path, SMALLEST).logging
    assert (logging.maxsize, logging.maxbackups, logging.maxage) == (100, 10, 30)
