"""Snapshots that wait to be written to the lake: their files, linked, so that keeping one costs nothing."""

import os
import shutil
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

import orjson

from warren.config.sinks import LakeSink
from warren.durable import sync, write_new
from warren.sinks.intervals import Intervals
from warren.snapshot.manifest import File, Manifest
from warren.snapshot.reader import Snapshot
from warren.snapshot.store import Store

GROUPS, PARTITIONS, LAYOUT, HEADS, NOTE = "groups", "partitions", "layout.arrow", "heads.arrow", "sample.json"


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """How far one partition of an offsets topic had been read."""

    cluster: str
    topic: str
    topic_id: str
    partition: int
    next_offset: int


@dataclass(frozen=True, slots=True)
class Sample:
    """What is known of a snapshot beside its files: which clusters could be judged, how far commits were read."""

    at_ms: int
    clusters: tuple[str, ...]
    places: tuple[Place, ...]


class Samples(Intervals):
    """The snapshots that wait, one an interval."""

    written: frozenset[int] = frozenset()
    """Those that were written last: a clock that was set back comes by them again."""

    def has(self, at_ms: int) -> bool:
        """Whether an interval waits or was just written."""
        return at_ms in self.written or super().has(at_ms)

    def keep(self, snapshot: Snapshot, sink: LakeSink, at_ms: int) -> int:
        """Keep what a sink needs of a snapshot; gives how many older ones had to make room."""

        def fill(folder: Path) -> None:
            for name, file in _needed(snapshot.manifest, sink):
                _link(snapshot.store, file, folder / name)
            write_new(folder / NOTE, orjson.dumps(asdict(_sample(snapshot.manifest, at_ms))))

        return self.add(at_ms, fill)

    def read(self, at_ms: int) -> Sample | None:
        """What is known of a snapshot; None if it had to make room."""
        try:
            raw = orjson.loads((self.path(at_ms) / NOTE).read_bytes())
        except FileNotFoundError:
            return None
        return Sample(raw["at_ms"], tuple(raw["clusters"]), tuple(Place(**place) for place in raw["places"]))


def _needed(manifest: Manifest, sink: LakeSink) -> Iterable[tuple[str, File]]:
    for number, bucket in enumerate(manifest.buckets):
        if bucket.group_rows:
            yield f"{GROUPS}-{number:04d}.parquet", bucket.groups
        if bucket.partition_rows and sink.detail == "partition":
            yield f"{PARTITIONS}-{number:04d}.parquet", bucket.partitions
    if manifest.heads and sink.detail != "group":
        yield LAYOUT, manifest.heads[-1].layout
        yield HEADS, manifest.heads[-1].heads


def _link(store: Store, file: File, target: Path) -> None:
    # Files of a snapshot are durable and never written again, so another name for one is as good as a copy.
    try:
        os.link(store.path(file), target)
    except FileNotFoundError:
        raise
    except OSError:
        shutil.copy(store.path(file), target)
        sync(target)


def _sample(manifest: Manifest, at_ms: int) -> Sample:
    known = tuple(name for name, state in sorted(manifest.clusters.items()) if state.is_judged)
    places = tuple(
        Place(cluster, topic, source.topic_id, partition, position.next_offset)
        for cluster, state in sorted(manifest.clusters.items())
        for topic, source in sorted(state.sources.items())
        for partition, position in sorted(source.positions.items())
    )
    return Sample(at_ms, known, places)
