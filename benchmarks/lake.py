"""100,000 partitions an interval into a lake of Parquet, ten intervals a job: time of the job, and bytes a row.

`python -m benchmarks.lake [PARTITIONS]`
"""

import os
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.conditions import cpu_s, show
from benchmarks.snapshots import record
from tests.kit.sink_workers import deliver_next, sample
from warren.config.sinks import LakeSink
from warren.delivery.sink_status import sink_folder
from warren.sinks.lake.session import lake_session
from warren.sinks.lake.worker import lake_worker

INTERVALS = 10
JOBS = 3


def main() -> None:
    """Some jobs in a row: the first warms Spark up."""
    partitions = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    rows: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory() as root:
        cycles = record(Path(root) / "data", partitions, cycles=INTERVALS * JOBS)
        path = Path(root) / "lake"
        sink = LakeSink("lake", path=str(path), write_interval=INTERVALS * 60.0, spool=10_000)
        spark = lake_session(sink)
        jvm = spark.sparkContext._gateway.proc.pid  # type: ignore[union-attr]
        at_ms = time.time_ns() // 60_000_000_000 * 60_000
        worker = lake_worker(sink, (), Path(root) / "data", lambda: at_ms, lambda _: spark)
        before = 0
        for job in range(JOBS):
            kept_s = 0.0
            for _ in range(INTERVALS):
                at_ms += 60_000
                next(cycles)
                began = time.monotonic()
                sample(worker, at_ms)
                kept_s += time.monotonic() - began
            waiting = sum(file.stat().st_size for file in sink_folder(Path(root) / "data", "lake").rglob("*.*"))
            used, began = cpu_s(jvm) + cpu_s(os.getpid()), time.monotonic()
            assert deliver_next(worker)
            took_s, used = time.monotonic() - began, cpu_s(jvm) + cpu_s(os.getpid()) - used
            size = sum(file.stat().st_size for file in path.rglob("*.parquet"))
            count = sum(spark.read.parquet(str(folder)).count() for folder in path.glob("[a-z]*")) // (job + 1)
            rows.append(
                {
                    "job": job + 1,
                    "rows": count,
                    "kept_ms_an_interval": round(kept_s / INTERVALS * 1000, 1),
                    "spool_mb": round(waiting / 1e6),
                    "job_s": round(took_s, 1),
                    "rows_a_second": round(count / took_s),
                    "cpu_s": round(used, 1),
                    "bytes_a_row": round((size - before) / count, 1),
                }
            )
            before = size
    show(f"{partitions:,} partitions, {INTERVALS} intervals a job", rows)
    spark.stop()


if __name__ == "__main__":
    main()
