"""The metrics of lag in time: a sample for what is known, and none for what is not."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from warren.domain.time_lag import TimeLagMethod
from warren.snapshot.reader import newest_snapshot
from warren.snapshot.schemas import GROUPS
from warren.snapshot.time_lag import to_time_lags
from warren.web.index import build_index
from warren.web.lag_metrics import group_families, partition_families, time_lag_families

FORMATS = Path(__file__).parents[1] / "snapshot" / "data"
LABELS = '{cluster="one",consumer_group="g"} '
OTHER_LABELS = '{cluster_name="one",group="g"} '
UNKNOWN_LAG = dict.fromkeys(GROUPS.names, -1)
CAUGHT_UP = {"behind_method": TimeLagMethod.CAUGHT_UP, "seconds_behind": 0.0, "catch_up_low_s": 0.0, "lost": 0}
BEHIND = {"behind_method": TimeLagMethod.HEAD_HISTORY, "seconds_behind": 61.5, "lost": 0}


def samples(row: dict[str, Any]) -> dict[str, str]:
    """The samples of one group, by the name of the metric."""
    values = {name: value for name, value in (UNKNOWN_LAG | row).items() if name not in ("cluster", "group")}
    table = pa.table({name: pa.array([value], GROUPS.field(name).type) for name, value in values.items()})
    families = list(time_lag_families(to_time_lags(table), pa.array([LABELS]), pa.array([OTHER_LABELS])))
    lines = [bytes(part).decode().strip() for family in families for part in family.samples]
    return {line.partition("{")[0]: line.partition("} ")[2] for line in lines}


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({}, {}),
        (
            CAUGHT_UP,
            {
                "kafka_consumergroup_group_max_lag_seconds": "0",
                "warren_group_catch_up_seconds": "0",
                "warren_group_lost_messages": "0",
            },
        ),
        (
            {**BEHIND, "catch_up_low_s": np.inf, "retention_left_s": 7200.0, "lost": 5, "oldest_unread_age_s": 1e6},
            {
                "warren_group_oldest_unread_age_seconds": "1000000",
                "kafka_consumergroup_group_max_lag_seconds": "61.5",
                "warren_group_catch_up_seconds": "+Inf",
                "warren_group_retention_left_seconds": "7200",
                "warren_group_lost_messages": "5",
            },
        ),
        (
            {**BEHIND, "retention_left_s": np.inf, "produced_1m": 12.5, "consumed_1m": 0.0},
            {
                "kafka_consumergroup_group_max_lag_seconds": "61.5",
                "warren_group_lost_messages": "0",
                "warren_group_produced_per_second": "12.5",
                "warren_group_consumed_per_second": "0",
            },
        ),
        ({**BEHIND, "seconds_behind": 1e9, "catch_up_low_s": 1e30}, {
            "kafka_consumergroup_group_max_lag_seconds": "1000000000",
            "warren_group_catch_up_seconds": str(float(np.float32(1e30))),
            "warren_group_lost_messages": "0",
        }),
    ],
)  # fmt: skip
def test_only_what_is_known_has_a_sample(row: dict[str, Any], expected: dict[str, str]) -> None:
    assert samples(row) == expected


@pytest.mark.parametrize("data", sorted(FORMATS.iterdir()), ids=lambda path: path.name)
def test_snapshots_from_before_there_was_a_time_lag_have_no_samples_of_it(data: Path) -> None:
    index = build_index(newest_snapshot(data))
    families = [*partition_families(index), *group_families(index)]
    found = {family.name: b"".join(family.samples) for family in families}
    of_time = {name for name in found if name.startswith("warren_group_") or name.endswith("_seconds")}
    assert len(of_time) == 8
    assert {found[name] for name in of_time} == {b""}
    assert found["kafka_consumergroup_group_sum_lag"]
