"""`[httpserver.NAME]` and `[metrics]`: addresses to listen on, and which metrics there are."""

from pathlib import Path

import pytest

from tests.config.written import SMALLEST, loaded, mistakes
from warren.config import HttpServer
from warren.config.http import Metrics
from warren.config.summary import summary


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
        message = f'burrow.toml:13: [httpserver.y] address = "{second}": is taken by [httpserver.x]'
        assert mistakes(tmp_path, text) == [message]
    else:
        assert list(loaded(tmp_path, text).http_servers) == ["x", "y"]


def test_without_a_server_there_is_one_on_a_free_port(tmp_path: Path) -> None:
    config = loaded(tmp_path, SMALLEST)
    assert (config.http_servers, config.listeners) == ({}, {"default": HttpServer(":0", name="default")})
    config = loaded(tmp_path, SMALLEST + "[httpserver.x]")
    assert config.listeners == config.http_servers == {"x": HttpServer(name="x")}


def test_metrics_are_chosen_by_level_and_name(tmp_path: Path) -> None:
    assert loaded(tmp_path, SMALLEST).metrics == Metrics("partition", ())
    config = loaded(tmp_path, SMALLEST + '[metrics]\nlevel = "Group"\nnames = ["burrow_*", "warren_ready"]')
    assert config.metrics == Metrics("group", ("burrow_*", "warren_ready"))
    assert "metrics down to each group whose names match burrow_* or warren_ready" in list(summary(config))
    assert not any(line.startswith("metrics") for line in summary(loaded(tmp_path, SMALLEST)))
    [message] = mistakes(tmp_path, SMALLEST + '[metrics]\nlevel = "topic"')
    assert message.endswith('[metrics] level = "topic": must be one of cluster, group, partition')
