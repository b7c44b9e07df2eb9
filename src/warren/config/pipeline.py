"""`[pipeline]`, Warren's own: when a cycle runs, on which Spark, and where its data is."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from warren.config.values import FILE, JVM_SIZE, SPARK_CONF, SPARK_MASTER, Check, number, whole

_DIRECTORY = Check("a directory; a relative path starts at the directory of burrow.toml", FILE.read)


@dataclass(frozen=True)
class Pipeline:
    """`[pipeline]`."""

    trigger: Annotated[float, number(0.1, 3600, "seconds")] = 10.0
    master: Annotated[str, SPARK_MASTER] = "local[*]"
    spark_conf: Annotated[Mapping[str, str], SPARK_CONF] = field(default_factory=dict)
    data_dir: Annotated[Path, _DIRECTORY] = Path("warren-data")
    buckets: Annotated[int, whole(1, 4096)] = 8
    max_records: Annotated[int, whole(1_000, 1_000_000_000)] = 5_000_000
    driver_memory: Annotated[str, JVM_SIZE] = "4g"
    history_days: Annotated[int, whole(0, 3650, "days")] = 30
    history_step: Annotated[float, number(1, 3600, "seconds")] = 10.0
