"""A real Alertmanager."""

import contextlib
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from tests.kit.debian import debian_files
from tests.kit.warrens import wait_for

_SHARE = "usr/share/prometheus/alertmanager"
_SETTINGS = "route:\n  receiver: nobody\nreceivers:\n- name: nobody\n"


@contextmanager
def running_alertmanager(place: Path, settings: str = _SETTINGS) -> Iterator[str]:
    """The URL of one that keeps its data in a directory and tells nobody, unless its settings say whom."""
    files = [f"{_SHARE}/default.tmpl", f"{_SHARE}/email.tmpl"]
    home = debian_files("prometheus-alertmanager", "usr/bin/prometheus-alertmanager", *files)
    program = place / "alertmanager"
    # Debian's looks for its templates where only an installed package has them; ours looks where it runs.
    there = f"/{_SHARE}".encode()
    program.write_bytes((home / "prometheus-alertmanager").read_bytes().replace(there, b"./" * (len(there) // 2)))
    program.chmod(0o755)
    for file in files:
        shutil.copy(home / Path(file).name, place)
    (place / "settings.yml").write_text(settings)
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    command = [
        str(program),
        "--config.file=settings.yml",
        "--storage.path=data",
        f"--web.listen-address={address}",
        "--cluster.listen-address=",
    ]
    with (place / "log").open("wb") as log, subprocess.Popen(command, cwd=place, stdout=log, stderr=log) as running:
        try:
            wait_for(lambda: _is_ready(address), f"Alertmanager is ready; see {place}/log", 20)
            yield f"http://{address}"
        finally:
            running.terminate()


def _is_ready(address: str) -> bool:
    with contextlib.suppress(httpx.TransportError):
        return httpx.get(f"http://{address}/-/ready", verify=False).is_success
    return False
