"""The halves of a cycle without Spark."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from tests.kit.plans import judge_in_process
from warren.pipeline.bucket_result import BucketResult
from warren.pipeline.engine import ClusterRead
from warren.pipeline.plan import CyclePlan


@dataclass(eq=False)
class TestRead:
    """A read that has ended, or ends when it is told to."""

    __test__ = False

    table: pa.Table | None
    error: str | None = None
    is_done: bool = True
    is_released: bool = False

    def wait(self, timeout_s: float) -> bool:
        return self.is_done

    def release(self) -> None:
        self.is_released = True


class InProcess:
    """Judges buckets in-process, from the tables of `TestRead`s."""

    def wait(self, waiting: Callable[[], None]) -> None:
        waiting()

    def judge(self, reads: Sequence[ClusterRead], tables: pa.Table, plan: CyclePlan) -> list[BucketResult]:
        own = [read.table for read in reads if isinstance(read, TestRead) and read.table is not None]
        return judge_in_process(plan, pa.concat_tables([tables, *own]).to_batches())
