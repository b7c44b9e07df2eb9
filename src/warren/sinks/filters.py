"""Which rows of a table a sink wants, by the globs of its section."""

import numpy as np
import pyarrow as pa

from warren.config.sinks import SinkFilters
from warren.domain.arrays import Bools
from warren.domain.matching import matches_globs


def matches_filters(table: pa.Table, filters: SinkFilters) -> Bools:
    """Mark the rows that are wanted by all of their names."""
    is_wanted = np.ones(table.num_rows, np.bool_)
    for column, (include, exclude) in filters.items():
        if column in table.column_names:
            is_wanted &= matches_globs(table[column].combine_chunks(), include, exclude)
    return is_wanted
