"""Files out of Debian's packages, fetched once and not installed."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from warren.java import cache_dir


def debian_files(package: str, *paths: str) -> Path:
    """A directory with some files of a package in it, each under its last name."""
    home = cache_dir() / "debian" / package
    if all((home / Path(path).name).exists() for path in paths):
        return home
    if shutil.which("apt-get") is None:
        pytest.skip(f"there is no apt-get to fetch Debian's {package} with")
    home.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="warren-apt-") as scratch:
        for part in ("lists/partial", "archives/partial"):
            (Path(scratch) / part).mkdir(parents=True)
        # Lists of our own: a machine may have none, and only root may fetch those of all.
        own = ["-o", f"Dir::State::lists={scratch}/lists", "-o", f"Dir::Cache={scratch}", "-o", "APT::Sandbox::User="]
        for command in (["apt-get", *own, "update"], ["apt-get", *own, "download", package]):
            ended = subprocess.run(command, cwd=scratch, capture_output=True, text=True)
            assert ended.returncode == 0, f"{command} failed: {ended.stderr}"
        [found] = Path(scratch).glob(f"{package}_*.deb")
        subprocess.run(["dpkg", "-x", str(found), f"{scratch}/x"], check=True)
        for path in paths:
            # Others may fetch it at the same time.
            new = home / f"{Path(path).name}.{os.getpid()}"
            shutil.copy(f"{scratch}/x/{path}", new)
            new.rename(home / Path(path).name)
    return home
