"""`warren demo` as a newcomer meets it: it comes up, shows verdicts, and leaves nothing behind."""

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit.servers import Client
from warren.demo.run import run_demo
from warren.errors import DemoError


def children_of(marker: str) -> list[int]:
    """The processes whose environment carries a marker."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and marker.encode() in (entry / "environ").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


@pytest.mark.timeout(420)
def test_the_demo_comes_up_shows_verdicts_and_ends_all_it_started(tmp_path: Path) -> None:
    marker = f"WARREN_TEST_DEMO={tmp_path.name}-{os.getpid()}"
    name, _, value = marker.partition("=")
    shown, url = "", None
    with subprocess.Popen(
        [sys.executable, "-m", "warren.cli", "demo", "--minutes", "0.4", "--keep", str(tmp_path / "kept")],
        env={**os.environ, name: value},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as demo:
        assert demo.stdout is not None
        for line in demo.stdout:
            shown += line
            if ready := re.match(r"warren demo ready: (http://\S+),", line):
                url = ready[1]
                groups = Client(url).json("/v3/kafka/demo/consumer")["consumers"]
                assert {"email-stalled", "recommendations-slow"} <= set(groups), groups
    assert demo.returncode == 0, shown[-4000:]
    assert url is not None, shown
    for kind in ("healthy", "stalled", "slow"):
        assert kind in shown
    command = next(line for line in shown.splitlines() if "/lag " in line).split()[1]
    assert command.startswith(f"{url}/v3/kafka/demo/consumer/")
    assert children_of(marker) == []


def test_a_port_that_is_taken_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(DemoError, match=rf"--port {port}: it is taken"):
            run_demo(port=port)
