"""`[pipeline]`, `[storage.NAME]` and `[evaluator.NAME]`: when a cycle runs, what it keeps of a group, how it judges."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, ClassVar

from warren.config import values as v

_DIRECTORY = v.path_of("a directory; a relative path starts at the directory of burrow.toml")


@dataclass(frozen=True)
class Pipeline:
    """`[pipeline]`, Warren's own: when a cycle runs, on which Spark, and where its data is."""

    trigger: Annotated[float, v.number(0.1, 3600, "seconds")] = 10.0
    master: Annotated[str, v.SPARK_MASTER] = "local[*]"
    spark_conf: Annotated[Mapping[str, str], v.SPARK_CONF] = field(default_factory=dict)
    data_dir: Annotated[Path, _DIRECTORY] = Path("warren-data")
    buckets: Annotated[int, v.whole(1, 4096)] = 8
    max_records: Annotated[int, v.whole(1_000, 1_000_000_000)] = 5_000_000
    driver_memory: Annotated[str, v.JVM_SIZE] = "4g"
    history_days: Annotated[int, v.whole(0, 3650, "days")] = 30
    history_step: Annotated[float, v.number(1, 3600, "seconds")] = 10.0


@dataclass(frozen=True)
class Storage:
    """`[storage.NAME]`: how many commits a window holds, and how long a group without commits is kept."""

    class_name: ClassVar[str] = "inmemory"

    intervals: Annotated[int, v.whole(1, 10_000)] = 10
    expire_group: Annotated[int, v.SECONDS] = 604_800
    min_distance: Annotated[int, v.SECONDS_OR_0] = 0
    group_allowlist: v.Allowlist = None
    group_denylist: v.Denylist = None
    workers: Annotated[int, replace(v.whole(1, 1_000_000), no_effect="Spark distributes the work")] = 20
    queue_depth: Annotated[int, replace(v.whole(0, 1_000_000_000), no_effect="there is no queue")] = 1
    name: str = ""


@dataclass(frozen=True)
class Evaluator:
    """`[evaluator.NAME]`: how full a window must be, and how much lag is fine."""

    class_name: ClassVar[str] = "caching"

    minimum_complete: Annotated[float, v.number(0, 1)] = 0.0
    allowed_lag: Annotated[int, v.whole(0, 2**63 - 1)] = 0
    expire_cache: Annotated[int, replace(v.SECONDS_OR_0, no_effect="every cycle judges all groups again")] = 10
    name: str = ""
