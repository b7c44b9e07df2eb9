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
def running_alertmanager(folder: Path, settings: str = _SETTINGS) -> Iterator[str]:
    """Run an Alertmanager with its data in a folder; yields its URL. It notifies nobody, unless its settings say so."""
    files = [f"{_SHARE}/default.tmpl", f"{_SHARE}/email.tmpl"]
    home = debian_files("prometheus-alertmanager", "usr/bin/prometheus-alertmanager", *files)
    program = folder / "alertmanager"
    # Debian's build looks for its templates in the installed package; this copy looks in its working directory.
    installed = f"/{_SHARE}".encode()
    program.write_bytes(
        (home / "prometheus-alertmanager").read_bytes().replace(installed, b"./" * (len(installed) // 2))
    )
    program.chmod(0o755)
    for file in files:
        shutil.copy(home / Path(file).name, folder)
    (folder / "settings.yml").write_text(settings)
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    command = [
        str(program),
        "--config.file=settings.yml",
        "--storage.path=data",
        f"--web.listen-address={address}",
        "--cluster.listen-address=",
    ]
    with (folder / "log").open("wb") as log, subprocess.Popen(command, cwd=folder, stdout=log, stderr=log) as running:
        try:
            wait_for(lambda: _is_ready(address), f"Alertmanager is ready; see {folder}/log", 20)
            yield f"http://{address}"
        finally:
            running.terminate()


def _is_ready(address: str) -> bool:
    with contextlib.suppress(httpx.TransportError):
        return httpx.get(f"http://{address}/-/ready", verify=False).is_success
    return False
