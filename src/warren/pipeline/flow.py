"""One cycle on Spark, from the records of the offsets topics to the files of the next snapshot.

    records ─► map steps ─► shuffle by bucket ─► bucket steps ─► files, and one result per bucket
               decode_tables                     judge_tables

The driver makes the plan (`planner.py`) and turns the results into a manifest (`next_manifest.py`); `cycle.py` decides
when this runs and commits it exactly once. Map steps are pure functions of records and plan. Every bucket step has the
signature `(bucket, inputs) -> bucket`: it updates the working bucket in place, returns it, and does no I/O. Files are
read (state, head samples) before the first bucket step and written after the last one.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema

from warren.domain.arrays import to_ints
from warren.pipeline.add_commits import (
    add_seeds,
    append_commits,
    follow_offsets_logs,
    locate_commits,
    replace_owners,
)
from warren.pipeline.bucket_files import load_bucket, load_inputs, write_bucket
from warren.pipeline.bucket_result import failed_result, to_result
from warren.pipeline.decode import compact_records, decode_records
from warren.pipeline.drop import (
    drop_deleted_commits,
    drop_deleted_partitions,
    drop_expired,
    drop_restarted_clusters,
    drop_unlisted_groups,
    drop_unlisted_partitions,
    drop_unwanted_groups,
)
from warren.pipeline.judge_partitions import judge_partitions
from warren.pipeline.measure_time_lag import measure_time_lag
from warren.pipeline.plan import CyclePlan
from warren.pipeline.roll_up_groups import roll_up_groups
from warren.pipeline.schemas import ADDRESSED, RAW_RECORDS, RESULTS, TASK_RECORDS, TableKind
from warren.pipeline.shuffle import address_tables, gather_tables, join_batches
from warren.pipeline.update_heads import update_heads
from warren.pipeline.wanted import keep_wanted
from warren.pipeline.working_bucket import BucketInputs, BucketStep, WorkingBucket, sort_partitions
from warren.snapshot.store import Store
from warren.spark.worker import prepare_worker

Batches = Iterable[pa.RecordBatch]


class UnreadableFiles(Exception):  # noqa: N818 - says what happened
    """Files of the state or of the head history cannot be read, whichever cluster they are of."""


BUCKET_STEPS: tuple[BucketStep, ...] = (
    drop_restarted_clusters,
    drop_unwanted_groups,
    drop_unlisted_partitions,
    locate_commits,
    follow_offsets_logs,
    drop_deleted_commits,
    append_commits,
    add_seeds,
    replace_owners,
    sort_partitions,
    drop_deleted_partitions,
    drop_unlisted_groups,
    drop_expired,
    update_heads,
    judge_partitions,
    measure_time_lag,
    roll_up_groups,
)


def decode_tables(batches: DataFrame, source_of_task: Sequence[int], plan: CyclePlan) -> DataFrame:
    """The map half of a cycle: batches of records of offsets topics, as they were read, to addressed tables."""
    return batches.mapInArrow(map_batches(source_of_task, plan), from_arrow_schema(ADDRESSED))


def judge_tables(tables: DataFrame, plan: CyclePlan, tasks: int) -> DataFrame:
    """The other half: all tables of a cycle to one result per bucket, in at most so many tasks."""
    by_bucket = tables.repartition(plan.buckets, "slot").coalesce(tasks)
    return by_bucket.mapInArrow(judge_buckets(plan), from_arrow_schema(RESULTS))


def map_batches(source_of_task: Sequence[int], plan: CyclePlan) -> Callable[[Batches], Batches]:
    """The map task on values that are batches of records, which have the number of their task, not their source."""
    sources = tuple(source_of_task)

    def with_source(batch: pa.RecordBatch) -> pa.RecordBatch:
        source = np.array(sources, np.int32)[to_ints(batch["task"])]
        return pa.RecordBatch.from_arrays([pa.array(source), *batch.columns[1:]], names=RAW_RECORDS.names)

    return lambda batches: map_records(plan)(map(with_source, join_batches(batches, TASK_RECORDS)))


def map_records(plan: CyclePlan) -> Callable[[Batches], Batches]:
    """The map task: raw records in, tables addressed to buckets out."""

    def run(batches: Batches) -> Batches:
        prepare_worker()
        records = compact_records((decode_records(batch, plan) for batch in batches), plan)
        yield from address_tables(keep_wanted(records, plan), plan)

    return run


def judge_buckets(plan: CyclePlan) -> Callable[[Batches], Batches]:
    """The bucket task: each bucket that is addressed in a Spark partition is loaded, judged and written."""

    def run(batches: Batches) -> Batches:
        prepare_worker()
        store = Store(Path(plan.root))
        for number, tables in gather_tables(batches).items():
            try:
                bucket, inputs = judge_bucket(store, plan, number, tables)
            except UnreadableFiles:
                raise
            except Exception:
                failures = find_failing_clusters(store, plan, number, tables)
                if not failures:
                    raise
                result = failed_result(failures)
            else:
                result = to_result(write_bucket(store, plan, number, bucket), bucket, inputs)
            row = {"bucket": number, "result": msgspec.msgpack.encode(result)}
            yield pa.RecordBatch.from_pylist([row], schema=RESULTS)

    return run


def judge_bucket(
    store: Store, plan: CyclePlan, number: int, tables: Mapping[TableKind, pa.Table], cluster: int | None = None
) -> tuple[WorkingBucket, BucketInputs]:
    """Load one bucket, or only the rows of one cluster in it, and run all steps."""
    if cluster is not None:
        tables = {kind: table.filter(pc.equal(table["cluster"], cluster)) for kind, table in tables.items()}
    try:
        bucket = load_bucket(store, plan, number)
        inputs = load_inputs(store, plan, number, tables)
    except Exception as error:
        raise UnreadableFiles(f"{type(error).__name__}: {error}") from error
    if cluster is not None:
        bucket.keep(bucket.rows.cluster == cluster)
    for step in BUCKET_STEPS:
        bucket = step(bucket, inputs)
    return bucket, inputs


def find_failing_clusters(
    store: Store, plan: CyclePlan, number: int, tables: Mapping[TableKind, pa.Table]
) -> dict[str, str]:
    """The clusters with which a bucket cannot be judged, each with its error."""
    failures = {}
    for index, cluster in enumerate(plan.clusters):
        try:
            judge_bucket(store, plan, number, tables, index)
        except UnreadableFiles:
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, it must not stop the other clusters
            failures[cluster.name] = f"{type(error).__name__}: {error}"
    return failures
