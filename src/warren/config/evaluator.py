"""`[storage.NAME]` and `[evaluator.NAME]`: what is kept of a group, and how it is judged."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from warren.config.values import SECONDS, SECONDS_OR_0, Allowlist, Denylist, NoEffect, number, whole


@dataclass(frozen=True)
class Storage:
    """`[storage.NAME]`: how many commits a window holds, and how long a group without commits is kept."""

    class_name: ClassVar[str] = "inmemory"

    intervals: Annotated[int, whole(1, 10_000)] = 10
    expire_group: Annotated[int, SECONDS] = 604_800
    min_distance: Annotated[int, SECONDS_OR_0] = 0
    group_allowlist: Allowlist = None
    group_denylist: Denylist = None
    workers: Annotated[int, whole(1, 1_000_000), NoEffect("Spark distributes the work")] = 20
    queue_depth: Annotated[int, whole(0, 1_000_000_000), NoEffect("there is no queue")] = 1
    name: str = ""


@dataclass(frozen=True)
class Evaluator:
    """`[evaluator.NAME]`: how full a window must be, and how much lag is fine."""

    class_name: ClassVar[str] = "caching"

    minimum_complete: Annotated[float, number(0, 1)] = 0.0
    allowed_lag: Annotated[int, whole(0, 2**63 - 1)] = 0
    expire_cache: Annotated[int, SECONDS_OR_0, NoEffect("every cycle judges all groups again")] = 10
    name: str = ""
