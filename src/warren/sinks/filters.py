"""Which clusters, groups and topics a sink wants, by the globs of its section."""

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
    """The filters of a sink, without its secrets, so that Spark's tasks can have them."""

    clusters: Globs
    groups: Globs
    topics: Globs

    @classmethod
    def of(cls, sink: Sink) -> "SinkFilter":
        """The filters of a section."""
        return cls(
            (sink.clusters_include, sink.clusters_exclude),
            (sink.groups_include, sink.groups_exclude),
            (sink.topics_include, sink.topics_exclude),
        )

    def matches(self, clusters: pa.Array, groups: pa.Array | None = None, topics: pa.Array | None = None) -> Mask:
        """Mark the rows that are wanted by all of their names."""
        is_wanted = matches_globs(clusters, *self.clusters)
        if groups is not None:
            is_wanted &= matches_globs(groups, *self.groups)
        if topics is not None:
            is_wanted &= matches_globs(topics, *self.topics)
        return is_wanted
