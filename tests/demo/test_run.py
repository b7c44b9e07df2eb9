"""`warren demo` as a newcomer meets it: it comes up, shows verdicts, and leaves nothing behind."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest


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
    done = subprocess.run(
        [sys.executable, "-m", "warren.cli", "demo", "--minutes", "0.7", "--keep", str(tmp_path / "kept")],
        env={**os.environ, name: value},
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert re.search(r"^warren demo ready", done.stdout, re.MULTILINE)
    for group in ("healthy", "stalled", "slow"):
        assert group in done.stdout
    assert children_of(marker) == []
