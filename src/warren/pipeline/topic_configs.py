"""How the topics of a bucket's rows are configured, and which topics are to be described for the next cycle."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from warren.domain.arrays import Bools, Floats, to_array, to_ints
from warren.domain.rates import NEVER_S
from warren.domain.time_lag import TimeLagMethod
from warren.domain.windows import UNKNOWN
from warren.pipeline.plan import CyclePlan
from warren.pipeline.working_bucket import WorkingBucket

MAX_DESCRIBED = 5_000
"""How many topics all buckets together name per cycle, each bucket those of the largest time lags first."""

LaggingTopic = tuple[str, str]
"""A cluster, and a topic of it that has unread messages."""


@dataclass(slots=True)
class RowConfigs:
    """The configuration of each row's topic, as far as it is known.

    `max_age_s` is for how long messages are kept: NEVER_S if for ever, NaN if unknown. If `is_limited_by_size` they may
    be deleted earlier.
    """

    is_append_time: Bools
    max_age_s: Floats
    is_limited_by_size: Bools


def row_configs(bucket: WorkingBucket, plan: CyclePlan) -> RowConfigs:
    """The configurations of all rows of a bucket."""
    rows = bucket.rows
    configs = RowConfigs(
        np.zeros(len(rows), dtype=np.bool_), np.full(len(rows), np.nan), np.ones(len(rows), dtype=np.bool_)
    )
    for index, cluster in enumerate(plan.clusters):
        table = cluster.topic_configs
        if not table.num_rows:
            continue
        own = np.flatnonzero(rows.cluster == index)
        of_topic = np.full(len(bucket.topics) + 1, -1, dtype=np.int64)
        # A topic that no row of the bucket has is found at -1, the last element, which no row looks up.
        of_topic[bucket.topics.find(to_array(table["topic"]))] = np.arange(table.num_rows)
        line = of_topic[rows.topic[own]]
        own, line = own[line >= 0], line[line >= 0]
        column = {name: to_ints(table[name])[line] for name in table.column_names[1:]}
        is_deleting, retention_ms = column["is_deleting"] == 1, column["retention_ms"]
        configs.is_append_time[own] = column["is_append_time"] == 1
        configs.max_age_s[own] = np.where(is_deleting & (retention_ms >= 0), retention_ms / 1000, NEVER_S)
        configs.is_limited_by_size[own] = is_deleting & (column["retention_bytes"] >= 0)
    return configs


def label_append_times(bucket: WorkingBucket, is_append_time: Bools) -> None:
    """Tell times of records that brokers have stamped from those that producers have."""
    method = bucket.rows.behind_method
    method[is_append_time & (method == TimeLagMethod.RECORD_TIME)] = TimeLagMethod.APPEND_TIME


def topics_to_describe(bucket: WorkingBucket, plan: CyclePlan) -> tuple[LaggingTopic, ...]:
    """The topics of groups that are behind and do not just keep up, those of the largest time lags first."""
    rows = bucket.rows
    lagging = np.flatnonzero((rows.current_lag > 0) & (rows.catch_up_high_s != 0))
    pairs, pair_of_row = np.unique(
        rows.cluster[lagging].astype(np.int64) << 32 | rows.topic[lagging], return_inverse=True
    )
    longest_s = np.full(pairs.size, float(UNKNOWN))
    np.maximum.at(longest_s, pair_of_row, rows.seconds_behind[lagging])
    worst = pairs[np.argsort(-longest_s, kind="stable")[: MAX_DESCRIBED // plan.buckets + 1]]
    clusters = [plan.clusters[index].name for index in (worst >> 32).tolist()]
    return tuple(zip(clusters, bucket.topics.values.take(pa.array(worst & 0xFFFFFFFF)).to_pylist(), strict=True))
