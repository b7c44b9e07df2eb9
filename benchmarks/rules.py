"""What the shipped rules cost a real Prometheus that scrapes a real server on recorded snapshots.

python -m benchmarks.rules [--partitions 100000] [--seconds 420]
"""

import argparse
import re
import tempfile
import time
from pathlib import Path

import httpx
import yaml

from benchmarks.conditions import show
from benchmarks.serve import FULL, Replay
from benchmarks.served import ROOT, Served
from benchmarks.snapshots import INTERVALS, record
from tests.deploy.trouble import SHIPPED
from tests.kit.prometheus import Prometheus, running_prometheus
from warren.snapshot.store import Store

PER_GROUP = 15
_TOOK = re.compile(r'rule_group_last_duration_seconds\{rule_group="[^;]*;([\w-]+)"\} (\S+)')
_MEMORY = re.compile(r"(?m)^process_resident_memory_bytes (\S+)")
_PROCESSOR = re.compile(r"(?m)^process_cpu_seconds_total (\S+)")
LAST_S = 120.0


def main() -> None:
    """One size, for long enough that the ranges of all rules but the longest are full."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--partitions", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=420.0)
    parser.add_argument("--rules", default="*.yml")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        data, place = Path(folder, "data"), Path(folder, "prometheus")
        data.mkdir()
        place.mkdir()
        recorded = list(record(data, options.partitions, INTERVALS + FULL - 1, per_group=PER_GROUP))
        Replay(Store(data), recorded[-FULL:], 10.0).start()
        settings = yaml.safe_load((SHIPPED / "prometheus.yml").read_text())
        settings["rule_files"] = [str(SHIPPED / "rules" / options.rules)]
        del settings["alerting"]
        with Served(ROOT / "src", data, is_cached=True) as served:
            settings["scrape_configs"][0]["static_configs"][0]["targets"] = [f"127.0.0.1:{served.port}"]
            (place / "prometheus.yml").write_text(yaml.safe_dump(settings))
            with running_prometheus(place / "prometheus.yml") as prometheus:
                time.sleep(max(options.seconds - LAST_S, 0))
                before = _number(_PROCESSOR, prometheus)
                time.sleep(LAST_S)
                processor = (_number(_PROCESSOR, prometheus) - before) / LAST_S
                text = httpx.get(f"{prometheus.url}/metrics", timeout=60.0).text
                [scrape] = prometheus.query("scrape_duration_seconds")
                row = {
                    "partitions": options.partitions,
                    "samples": int(prometheus.query("scrape_samples_post_metric_relabeling")[0]["value"][1]),
                    "scrape_s": round(float(scrape["value"][1]), 2),
                    **{f"{name}_s": round(float(took), 2) for name, took in _TOOK.findall(text)},
                    "alerts": sum(map(len, prometheus.firing().values())),
                    "processor_s_per_s": round(processor, 2),
                    "prometheus_mib": round(_number(_MEMORY, prometheus) / 2**20),
                }
                costs = [(one["evaluationTime"], one["name"]) for one in prometheus.rules()]
        show("rules", [row])
        if costs:
            show("rule", [{"rule": name, "s": round(took, 3)} for took, name in sorted(costs, reverse=True)[:10]])


def _number(pattern: re.Pattern[str], prometheus: Prometheus) -> float:
    """A number that Prometheus says of itself."""
    return float(pattern.findall(httpx.get(f"{prometheus.url}/metrics", timeout=60.0).text)[0])


if __name__ == "__main__":
    main()
