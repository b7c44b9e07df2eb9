"""Runs the demo with the command of the README, and ends it with Ctrl-C."""

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]


@dataclass
class Demo:
    """A running demo and its output."""

    url: str
    bootstrap: str
    output: list[str] = field(default_factory=list)


def readme_blocks(language: str, name: str = "README.md") -> list[str]:
    """The code blocks of a language in the README."""
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / name).read_text(), re.DOTALL)


@contextmanager
def running_demo() -> Iterator[Demo]:
    """Run the first command of the README until there are verdicts; checks that no process is left at the end."""
    command = readme_blocks("sh")[0].strip()
    marker = f"WARREN_TEST_DEMO={os.getpid()}-{os.urandom(4).hex()}"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    with subprocess.Popen(
        command,
        shell=True,
        cwd=ROOT,
        env={**environment, **dict([marker.split("=")])},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        ready = None
        output = []
        for line in process.stdout:
            output.append(line)
            ready = re.match(r"warren demo ready: (http://\S+), \d+ groups on (\S+),", line)
            if ready:
                break
        assert ready is not None, f"{command} ended:\n{''.join(output)}"
        demo = Demo(ready[1], ready[2], output)
        try:
            yield demo
        finally:
            # To the whole process group, as a terminal does.
            os.killpg(process.pid, signal.SIGINT)
            demo.output += process.stdout.readlines()
    assert any("Stopping Warren, the consumer groups, the producers and Kafka." in line for line in demo.output), (
        demo.output[-20:]
    )
    assert _processes_with(marker) == []


def _processes_with(marker: str) -> list[str]:
    """The command lines of the processes with this in their environment."""
    processes = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and marker.encode() in (entry / "environ").read_bytes():
                processes.append((entry / "cmdline").read_text()[:200])
        except OSError:
            continue
    return processes
