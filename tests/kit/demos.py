"""The demo as a newcomer starts it, from the README, and ends it, with Ctrl-C."""

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
    """A demo that runs."""

    url: str
    bootstrap: str
    said: list[str] = field(default_factory=list)


def readme_blocks(language: str, name: str = "README.md") -> list[str]:
    """The blocks of a language that the README shows."""
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / name).read_text(), re.DOTALL)


@contextmanager
def running_demo() -> Iterator[Demo]:
    """The first command of the README, until its groups are judged; nothing of it is left afterwards."""
    command = readme_blocks("sh")[0].strip()
    mark = f"WARREN_TEST_DEMO={os.getpid()}-{os.urandom(4).hex()}"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    with subprocess.Popen(
        command,
        shell=True,
        cwd=ROOT,
        env={**environment, **dict([mark.split("=")])},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        found = None
        said = []
        for line in process.stdout:
            said.append(line)
            found = re.match(r"warren demo ready: (http://\S+), \d+ groups on (\S+),", line)
            if found:
                break
        assert found is not None, f"{command} ended:\n{''.join(said)}"
        demo = Demo(found[1], found[2], said)
        try:
            yield demo
        finally:
            # As a terminal does it: to all that belong to it.
            os.killpg(process.pid, signal.SIGINT)
            demo.said += process.stdout.readlines()
    assert any("Stopping: Warren, the groups, the producers, Kafka." in line for line in demo.said), demo.said[-20:]
    assert _marked(mark) == []


def _marked(mark: str) -> list[str]:
    """The processes whose environment carries a mark."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and mark.encode() in (entry / "environ").read_bytes():
                found.append((entry / "cmdline").read_text()[:200])
        except OSError:
            continue
    return found
