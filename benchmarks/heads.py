"""Head samples of many partitions of a real broker: how long a sample takes, and how long the cycle waits for it.

    python -m benchmarks.heads [--partitions 5000,10000,20000] [--samples 20]

One broker holds about 20,000 partitions at most: the kernel limits how many files a process can map.
"""

import argparse
import multiprocessing
import statistics
import time

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from benchmarks.conditions import cpu_s, show
from warren.app import SAMPLE_TIMEOUT_S
from warren.config.kafka import Connection
from warren.demo.broker import Kafka
from warren.kafka.sampler import ClusterSamplers
from warren.kafka.samples import ClusterSample, SamplingTarget
from warren.pipeline.sample_prefetch import SamplePrefetch

TOPIC_WIDTH = 100
TRIGGER_S = 2.0


def main() -> None:
    """Measure one broker with more and more topics."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--partitions", default="5000,10000,20000")
    parser.add_argument("--samples", type=int, default=20)
    options = parser.parse_args()
    rows: list[dict[str, object]] = []
    created = 0
    with Kafka(fast_start=False, memory="2g") as kafka:
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
        for partitions in (int(size) for size in options.partitions.split(",")):
            while created < partitions:
                names = [f"topic-{index:05d}" for index in range(created // TOPIC_WIDTH, created // TOPIC_WIDTH + 10)]
                for future in admin.create_topics([NewTopic(name, TOPIC_WIDTH, 1) for name in names]).values():
                    future.result()
                created += len(names) * TOPIC_WIDTH
            rows.append(measure(kafka.bootstrap, created, options.samples))
            print(rows[-1], flush=True)
    show("heads", rows)


def measure(bootstrap: str, partitions: int, samples: int) -> dict[str, object]:
    """Sample repeatedly as `warren run` does: started early enough to be done when the cycle is due."""
    took, waited = [], []
    with ClusterSamplers([SamplingTarget("bench", Connection((bootstrap,)))], 1) as samplers:

        def sample() -> ClusterSample:
            began = time.monotonic()
            cluster_sample = samplers.sample(SAMPLE_TIMEOUT_S)["bench"]
            took.append(time.monotonic() - began)
            return cluster_sample

        while len(sample().heads) < partitions:
            time.sleep(1)
        took.clear()
        (process,) = (child.pid or 0 for child in multiprocessing.active_children())
        used = cpu_s(process)
        ahead = SamplePrefetch(lambda _: sample(), lambda: ["bench"])
        for _ in range(samples):
            due = time.monotonic() + TRIGGER_S
            ahead.prepare(due)
            time.sleep(TRIGGER_S)
            began = time.monotonic()
            ahead.take()
            waited.append(time.monotonic() - began)
        ahead.close()
        used = cpu_s(process) - used
    return {
        "partitions": partitions,
        "sample_ms": round(statistics.median(took) * 1000),
        "cpu_ms": round(used / samples * 1000),
        "cycle_waits_ms": round(statistics.median(waited) * 1000),
        "partitions_per_s": round(partitions / statistics.median(took)),
    }


if __name__ == "__main__":
    main()
