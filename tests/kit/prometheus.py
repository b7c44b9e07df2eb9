"""A real Prometheus, and the tools that come with it and with Alertmanager."""

import contextlib
import socket
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

Alert = dict[str, Any]
EVERY_S = 1


def promtool(*arguments: str | Path, said: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """Run Prometheus' own checks."""
    program = debian_files("prometheus", "usr/bin/promtool") / "promtool"
    return subprocess.run([program, *arguments], input=said, capture_output=True)


def amtool(*arguments: str | Path) -> subprocess.CompletedProcess[bytes]:
    """Run Alertmanager's own checks."""
    program = debian_files("prometheus-alertmanager", "usr/bin/amtool") / "amtool"
    return subprocess.run([program, *arguments], capture_output=True)


@dataclass(frozen=True)
class Prometheus:
    """One that runs."""

    url: str

    def query(self, expression: str) -> list[dict[str, Any]]:
        """What an expression gives now: labels as `metric`, and the `value`."""
        return list(self.ask("query", {"query": expression})["result"])

    def firing(self) -> dict[str, list[Alert]]:
        """The alerts that fire, by name."""
        found: dict[str, list[Alert]] = {}
        for one in self.ask("alerts")["alerts"]:
            if one["state"] == "firing":
                found.setdefault(one["labels"]["alertname"], []).append(one)
        return found

    def rules(self) -> list[dict[str, Any]]:
        """All rules, each with its health."""
        return [rule for group in self.ask("rules")["groups"] for rule in group["rules"]]

    def ask(self, path: str, wanted: Mapping[str, Any] | None = None) -> Any:
        """What it answers, which must be good."""
        answer = httpx.get(f"{self.url}/api/v1/{path}", params=dict(wanted or {}), timeout=30.0, verify=False).json()
        assert answer["status"] == "success", answer
        return answer["data"]


@contextmanager
def running_prometheus(settings: Path) -> Iterator[Prometheus]:
    """One with a file of settings, that keeps its data beside it."""
    program = debian_files("prometheus", "usr/bin/prometheus") / "prometheus"
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    place = settings.parent
    command = [
        str(program),
        f"--config.file={settings}",
        f"--storage.tsdb.path={place / 'data'}",
        f"--web.listen-address={address}",
    ]
    with (place / "log").open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as running:
        try:
            wait_for(lambda: _is_ready(address), f"Prometheus is ready; see {place}/log", 20)
            yield Prometheus(f"http://{address}")
        finally:
            running.terminate()


@contextmanager
def scraping(warren: str, place: Path) -> Iterator[Prometheus]:
    """One that asks a Warren every `EVERY_S`, and keeps its data in a directory."""
    settings = place / "prometheus.yml"
    settings.write_text(
        f"global: {{scrape_interval: {EVERY_S}s}}\n"
        "scrape_configs:\n"
        f"- {{job_name: warren, static_configs: [{{targets: ['{urlsplit(warren).netloc}']}}]}}\n"
    )
    with running_prometheus(settings) as running:
        yield running


def _is_ready(address: str) -> bool:
    with contextlib.suppress(httpx.TransportError):
        return httpx.get(f"http://{address}/-/ready", verify=False).is_success
    return False
