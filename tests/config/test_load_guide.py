"""Every section as a guide to Burrow 1.1 shows it is accepted; what is no TOML in it is a mistake with its line."""

from pathlib import Path

import pytest
import trustme

from tests.config.written import loaded, mistakes
from warren.cli import main

GENERAL = """
[general]
pidfile="burrow.pid"
stdout-logfile="burrow.out"
access-control-allow-origin="mysite.example.com"
"""
ZOOKEEPER = """
[zookeeper]
servers=["zkhost01.example.com:2181", "zkhost02.example.com:2181", "zkhost03.example.com:2181" ]
timeout=6
root-path=/mypath/burrow
"""
CLIENT_PROFILE = """
[client-profile.myclient]
kafka-version="0.10.2"
client-id="burrow-myclient"
tls="mytlsprofile"
sasl="mysaslprofile"
"""
HTTP_SERVER = """
[httpserver.mylistener]
address=":8080"
timeout=300
tls="tls-profile-name"
"""
STORAGE = """
[storage.mystorage]
class-name="inmemory"
intervals=10
expire-group=604800
workers=20
min-distance=1
group-whitelist=".*"
"""
EVALUATOR = """
[evaluator.mystorage]
class-name="caching"
expire-cache=10
"""
MINIMUM_COMPLETE = """
[evaluator.default]
class-name="caching"
minimum-complete=0.20
"""
CLUSTER = """
[cluster.myclustername]
class-name="kafka"
servers=[ "kafka01.example.com:10251", "kafka02.example.com:10251", "kafka03.example.com:10251" ]
client-profile="profile-name"
topic-refresh=120
offset-refresh=30
"""
CONSUMER = """
[consumer.myconsumers]
class-name="kafka"
cluster="myclustername"
servers=[ "kafka01.example.com:10251", "kafka02.example.com:10251", "kafka03.example.com:10251" ]
client-profile="profile-name"
offsets-topic="__consumer_offsets"
start-latest=true
group-whitelist=".*"
group-blacklist="^not-this-group$"
"""
START_LATEST = """
[consumer.myconsumers]
class-name="kafka"
cluster="myclustername"
start-latest=true
"""
NOTIFIER = """
[notifier.mynotify]
class-name="http"
interval=30
threshold=3
group-whitelist="^important-group-prefix.*$"
group-blacklist="^not-this-group$"
extras={ key1="value1", key2="value2" }2" }
send-close=true
template-open="path/to/file1.tmpl"
template-close="path/to/file2.tmpl"
(add additional class configs here)
"""
SERVERS = 'servers=[ "kafka01.example.com:10251" ]\n'
REFERRED = """
[client-profile.profile-name]
[tls.mytlsprofile]
cafile="ca.pem"
[sasl.mysaslprofile]
username="burrow"
password="secret"
[tls.tls-profile-name]
certfile="cert.pem"
keyfile="key.pem"
"""
"""What the sections name and the guide does not show."""

QUOTED_ZOOKEEPER = ZOOKEEPER.replace("/mypath/burrow", '"/mypath/burrow"')
WHOLE_NOTIFIER = NOTIFIER.replace('}2" }', "}").replace(
    "(add additional class configs here)", 'url-open="http://example.com/event"'
)
COMMON = GENERAL + QUOTED_ZOOKEEPER + CLIENT_PROFILE + HTTP_SERVER + STORAGE + CLUSTER + WHOLE_NOTIFIER + REFERRED


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The directory of a file whose sections name certificates and templates."""
    authority = trustme.CA()
    own = authority.issue_cert("burrow.example.com")
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    own.cert_chain_pems[0].write_to_path(tmp_path / "cert.pem")
    own.private_key_pem.write_to_path(tmp_path / "key.pem")
    (tmp_path / "path" / "to").mkdir(parents=True)
    for name in ("file1.tmpl", "file2.tmpl"):
        (tmp_path / "path" / "to" / name).write_text("{{.Group}} {{.Extras.key1}}")
    return tmp_path


@pytest.mark.parametrize(
    "sections", [CONSUMER + EVALUATOR, CONSUMER + MINIMUM_COMPLETE, START_LATEST + SERVERS], ids=lambda text: text[-20:]
)
def test_check_accepts_all_sections_of_the_guide(home: Path, sections: str, capsys: pytest.CaptureFixture[str]) -> None:
    (home / "burrow.toml").write_text(COMMON + sections)
    code = main(["check", "--strict", "--config-dir", str(home)])
    text = capsys.readouterr().out
    assert code == 0, text
    assert "mistake:" not in text
    [warning] = [line for line in text.splitlines() if line.startswith("warning:")]
    assert "without [auth] everyone who reaches it (all interfaces, port 8080) may delete groups" in warning


def test_what_the_sections_say_is_configured(home: Path) -> None:
    config = loaded(home, COMMON + CONSUMER + MINIMUM_COMPLETE)
    consumer, notifier = config.consumers["myconsumers"], config.notifiers["mynotify"]
    assert (consumer.start_latest, consumer.group_allowlist, consumer.group_denylist) == (
        True,
        ".*",
        "^not-this-group$",
    )
    assert (config.storage.intervals, config.storage.group_allowlist) == (10, ".*")
    assert config.evaluator.minimum_complete == 0.2
    assert config.zookeeper is not None
    assert config.zookeeper.root_path == "/mypath/burrow"
    assert notifier.extras == {"key1": "value1", "key2": "value2"}
    assert notifier.template_open == home / "path" / "to" / "file1.tmpl"


@pytest.mark.parametrize(("section", "line"), [(ZOOKEEPER, 5), (NOTIFIER, 8), (NOTIFIER.replace('}2" }', "}"), 12)])
def test_what_is_no_toml_is_a_mistake_with_its_line(home: Path, section: str, line: int) -> None:
    (mistake,) = mistakes(home, section)
    assert "must be TOML" in mistake
    assert f"(at line {line}, " in mistake


def test_a_consumer_section_needs_its_servers(home: Path) -> None:
    (mistake,) = mistakes(home, COMMON + START_LATEST)
    assert "[consumer.myconsumers] servers is missing" in mistake
