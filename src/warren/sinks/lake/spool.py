"""The spool of a lake: hard links to the files of snapshots, so that a waiting snapshot costs almost nothing."""

import os
import shutil
from collections.abc import Iterable
from pathlib import Path

import msgspec

from warren.config.sinks import LakeSink
from warren.durable import sync, write_new
from warren.sinks.spool import IntervalSpool
from warren.snapshot.manifest import File, Manifest
from warren.snapshot.reader import Snapshot
from warren.snapshot.store import Store

LAYOUT, HEADS, SAMPLE = "layout.arrow", "heads.arrow", "sample.json"


class SourcePosition(msgspec.Struct, frozen=True, order=True):
    """How far Warren had read one partition of an offsets topic."""

    cluster: str
    topic: str
    topic_id: str
    partition: int
    next_offset: int


class Sample(msgspec.Struct, frozen=True, rename={"positions": "places"}):
    """What is known of a snapshot beside its files: the clusters that were judged, and how far commits were read."""

    at_ms: int
    clusters: tuple[str, ...]
    positions: tuple[SourcePosition, ...]


class SnapshotSpool(IntervalSpool):
    """The snapshots that wait, one per interval."""

    written: frozenset[int] = frozenset()
    """The intervals of the last job: a clock that is set back reaches them again."""

    def has(self, at_ms: int) -> bool:
        """Whether an interval waits or was just written."""
        return at_ms in self.written or super().has(at_ms)

    def put(self, snapshot: Snapshot, sink: LakeSink, at_ms: int) -> int:
        """Keep what a sink needs of a snapshot; returns how many older intervals were dropped for it."""

        def write_files(folder: Path) -> None:
            for name, file in _needed_files(snapshot.manifest, sink):
                _link(snapshot.store, file, folder / name)
            write_new(folder / SAMPLE, msgspec.json.encode(_sample(snapshot.manifest, at_ms)))

        return self.add(at_ms, write_files)

    def read(self, at_ms: int) -> Sample | None:
        """The sample of an interval; None if it was dropped."""
        try:
            return msgspec.json.decode((self.path(at_ms) / SAMPLE).read_bytes(), type=Sample)
        except FileNotFoundError:
            return None


def _needed_files(manifest: Manifest, sink: LakeSink) -> Iterable[tuple[str, File]]:
    for index, bucket in enumerate(manifest.buckets):
        if bucket.group_rows:
            yield f"groups-{index:04d}.parquet", bucket.groups
        if bucket.partition_rows and sink.detail == "partition":
            yield f"partitions-{index:04d}.parquet", bucket.partitions
    if manifest.heads and sink.detail != "group":
        yield LAYOUT, manifest.heads[-1].layout
        yield HEADS, manifest.heads[-1].heads


def _link(store: Store, file: File, target: Path) -> None:
    # Files of a snapshot are durable and never change, so a link is as good as a copy.
    try:
        os.link(store.path(file), target)
    except OSError:
        shutil.copy(store.path(file), target)
        sync(target)


def _sample(manifest: Manifest, at_ms: int) -> Sample:
    judged = tuple(name for name, state in sorted(manifest.clusters.items()) if state.is_judged)
    positions = tuple(
        SourcePosition(cluster, topic, source.topic_id, partition, position.next_offset)
        for cluster, state in sorted(manifest.clusters.items())
        for topic, source in sorted(state.sources.items())
        for partition, position in sorted(source.positions.items())
    )
    return Sample(at_ms, judged, positions)
