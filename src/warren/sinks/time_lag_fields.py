"""Lag in time as fields of points and records, by whole columns of the groups or partitions of a snapshot."""

import numpy as np
import pyarrow as pa

from warren.domain.arrays import Floats, Ints, to_array
from warren.domain.windows import UNKNOWN
from warren.snapshot.schemas import RATES
from warren.snapshot.time_lag import known_values

_FORECASTS = {
    "seconds_behind": "seconds_behind",
    "oldest_unread_age_seconds": "oldest_unread_age_s",
    "catch_up_seconds": "catch_up_low_s",
    "retention_left_seconds": "retention_left_s",
}
TIME_LAG_COLUMNS = (*_FORECASTS.values(), "lost")
"""The columns that these fields are made of, beside the rates of groups."""


def forecasts(rows: pa.Table) -> dict[str, Floats]:
    """How far each row is behind in time, and how that goes on; NaN where it is unknown or never happens."""
    return {name: _decimals(rows, column) for name, column in _FORECASTS.items()}


def rates(groups: pa.Table) -> dict[str, Floats]:
    """The messages that are produced to and consumed by each group per second, averaged over one and ten minutes."""
    return {name: _decimals(groups, name) for name in RATES}


def falling_behind(rows: pa.Table) -> Ints:
    """1 where a row does not catch up at present rates, 0 where it does, UNKNOWN where that is unknown."""
    catch_up = _values(rows, "catch_up_low_s")
    return np.where(catch_up == UNKNOWN, UNKNOWN, np.isinf(catch_up)).astype(np.int64)


def _decimals(rows: pa.Table, column: str) -> Floats:
    return known_values(_values(rows, column))


def _values(rows: pa.Table, column: str) -> Floats:
    return np.asarray(to_array(rows[column]), dtype=np.float64)
