"""Which clusters, groups and topics a sink wants, by the globs of its section."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from warren.config.sinks import Sink
from warren.domain.matching import matches_globs

Mask = NDArray[np.bool_]
Globs = tuple[tuple[str, ...], tuple[str, ...]]
"""What is included, and what is excluded."""


@dataclass(frozen=True, slots=True)
class SinkFilter:
    """The filters of a sink by the column they apply to, without its secrets, so that Spark's tasks can have them."""

    cluster: Globs
    group: Globs
    topic: Globs

    @classmethod
    def of(cls, sink: Sink) -> "SinkFilter":
        """The filters of a section."""
        return cls(
            (sink.clusters_include, sink.clusters_exclude),
            (sink.groups_include, sink.groups_exclude),
            (sink.topics_include, sink.topics_exclude),
        )

    def globs_of(self, columns: Sequence[str]) -> Iterator[tuple[str, tuple[str, ...], tuple[str, ...]]]:
        """The filters that apply to a table with these columns: the column, what is included, what is excluded."""
        return ((name, *getattr(self, name)) for name in ("cluster", "group", "topic") if name in columns)

    def matches(self, table: pa.Table) -> Mask:
        """Mark the rows that are wanted by all of their names."""
        is_wanted = np.ones(table.num_rows, np.bool_)
        for column, include, exclude in self.globs_of(table.column_names):
            is_wanted &= matches_globs(table[column].combine_chunks(), include, exclude)
        return is_wanted
