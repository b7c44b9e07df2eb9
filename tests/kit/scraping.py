"""A real Prometheus that scrapes a Warren."""

import contextlib
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx

from tests.kit.debian import debian_files
from tests.kit.warrens import wait_for
from warren.demo.broker import _free_ports

EVERY_S = 1


@dataclass(frozen=True)
class Scraper:
    """Where a Prometheus answers."""

    url: str

    def ask(self, path: str, wanted: Mapping[str, Any]) -> Any:
        """What it answers, which must be good."""
        answer = httpx.get(f"{self.url}/api/v1/{path}", params=dict(wanted), timeout=30.0, verify=False).json()
        assert answer["status"] == "success", answer
        return answer["data"]


@contextmanager
def scraping(warren: str, place: Path) -> Iterator[Scraper]:
    """A Prometheus that asks a Warren each second, and keeps its data in a directory."""
    program = debian_files("prometheus", "usr/bin/prometheus") / "prometheus"
    [(port, _)] = _free_ports(1)
    (place / "prometheus.yml").write_text(
        f"global: {{scrape_interval: {EVERY_S}s}}\n"
        "scrape_configs:\n"
        f"- {{job_name: warren, static_configs: [{{targets: ['{urlsplit(warren).netloc}']}}]}}\n"
    )
    command = [
        str(program),
        f"--config.file={place / 'prometheus.yml'}",
        f"--storage.tsdb.path={place / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    with (place / "log").open("wb") as log, subprocess.Popen(command, cwd=place, stdout=log, stderr=log) as running:
        try:
            scraper = Scraper(f"http://127.0.0.1:{port}")
            wait_for(lambda: _is_ready(scraper.url), f"Prometheus is ready; see {place}/log", 30)
            yield scraper
        finally:
            running.terminate()


def _is_ready(url: str) -> bool:
    with contextlib.suppress(httpx.TransportError):
        return httpx.get(f"{url}/-/ready", verify=False).is_success
    return False
