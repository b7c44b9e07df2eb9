"""One cycle on Spark, from the records of the offsets topics to the files of the next snapshot.

    plan ─► map steps ─► shuffle by bucket ─► bucket steps ─► files, and one result per bucket

The driver makes the plan (`planner.py`) and turns the results into a manifest (`next_manifest.py`); `cycle.py` decides
when this runs and commits it exactly once. Map steps are pure functions of records and plan. Every bucket step has the
signature `(bucket, inputs) -> bucket`: it updates the working bucket in place, returns it, and does no I/O. Files are
read (state, head samples) before the first bucket step and written after the last one.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

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
    drop_unwanted_groups,
)
from warren.pipeline.judge_partitions import judge_partitions
from warren.pipeline.plan import CyclePlan
from warren.pipeline.roll_up_groups import roll_up_groups
from warren.pipeline.schemas import ADDRESSED, RESULTS, TableKind
from warren.pipeline.shuffle import address_tables, gather_tables
from warren.pipeline.wanted import keep_wanted
from warren.pipeline.working_bucket import BucketInputs, BucketStep, WorkingBucket, sort_partitions
from warren.snapshot.store import Store
from warren.spark.worker import prepare_worker

Batches = Iterable[pa.RecordBatch]

BUCKET_STEPS: tuple[BucketStep, ...] = (
    drop_restarted_clusters,
    drop_unwanted_groups,
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
    judge_partitions,
    roll_up_groups,
)


def flow(spark: SparkSession, scans: Sequence[DataFrame], driver_tables: pa.Table, plan: CyclePlan) -> DataFrame:
    """A whole cycle: the records of every source, and the driver's own tables, to one result per bucket."""
    addressed, results = from_arrow_schema(ADDRESSED), from_arrow_schema(RESULTS)
    tables = spark.createDataFrame(driver_tables, schema=addressed)
    if scans:
        tables = tables.unionByName(read_tables(scans, plan))
    return tables.repartition(plan.buckets, "slot").mapInArrow(judge_buckets(plan), results)


def read_tables(scans: Sequence[DataFrame], plan: CyclePlan) -> DataFrame:
    """The first half of a cycle: the records of some sources to tables addressed to buckets."""
    records = reduce(DataFrame.unionByName, scans)
    records = records.coalesce(2 * records.sparkSession.sparkContext.defaultParallelism)
    return records.mapInArrow(map_records(plan), from_arrow_schema(ADDRESSED))


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
    bucket = load_bucket(store, plan, number)
    if cluster is not None:
        bucket.keep(bucket.rows.cluster == cluster)
        tables = {kind: table.filter(pc.equal(table["cluster"], cluster)) for kind, table in tables.items()}
    inputs = load_inputs(store, plan, number, tables)
    for step in BUCKET_STEPS:
        bucket = step(bucket, inputs)
    return bucket, inputs


def find_failing_clusters(
    store: Store, plan: CyclePlan, number: int, tables: Mapping[TableKind, pa.Table]
) -> dict[str, str]:
    """The clusters with which a bucket cannot be judged, each with its error; none if its files cannot be read."""
    failures = {}
    for index, cluster in enumerate(plan.clusters):
        try:
            judge_bucket(store, plan, number, tables, index)
        except (OSError, pa.ArrowException):
            return {}
        except Exception as error:  # noqa: BLE001 - whatever it is, it must not stop the other clusters
            failures[cluster.name] = f"{type(error).__name__}: {error}"
    return failures
