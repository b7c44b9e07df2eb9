"""How far a lake has been written: one file, replaced as a whole, that alone says what was written."""

import uuid
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from warren.domain.topic_ids import is_another_topic
from warren.durable import replace_file
from warren.sinks.lake.spool import Sample, SourcePosition

FILE = "progress.json"


class CommitRange(msgspec.Struct, frozen=True):
    """Records of one partition of an offsets topic, from start up to but without end."""

    cluster: str
    topic: str
    partition: int
    start: int
    end: int


class Job(msgspec.Struct, frozen=True, rename={"ranges": "stretches", "positions": "places"}):
    """What is written at once: some intervals, and the commits up to the last of them."""

    name: str
    intervals: tuple[int, ...]
    ranges: tuple[CommitRange, ...] = ()
    positions: tuple[SourcePosition, ...] = ()


class Progress(msgspec.Struct, frozen=True, rename={"positions": "places"}):
    """The job under way, the intervals that the job before it has written, and how far commits are written."""

    owner: str
    job: Job | None = None
    done: tuple[int, ...] = ()
    positions: tuple[SourcePosition, ...] = ()

    def with_job(self, samples: Sequence[Sample], *, has_commits: bool) -> "Progress":
        """With a new job for these samples."""
        newest = samples[-1]
        name = f"{samples[0].at_ms:015d}-{newest.at_ms:015d}-{uuid.uuid4().hex[:6]}"
        ranges = tuple(ranges_between(self.positions, newest.positions)) if has_commits else ()
        positions = newest.positions if has_commits else ()
        job = Job(name, tuple(sample.at_ms for sample in samples), ranges, positions)
        return msgspec.structs.replace(self, job=job, done=())

    def with_job_done(self) -> "Progress":
        """With its job done."""
        assert self.job is not None
        return Progress(self.owner, None, self.job.intervals, furthest(self.positions, self.job.positions))


def furthest(before: Iterable[SourcePosition], after: Iterable[SourcePosition]) -> tuple[SourcePosition, ...]:
    """The highest position of each partition, without those of topics that were created anew."""
    highest = {_partition(position): position for position in after}
    topic_ids = _topic_ids(highest.values())
    for position in before:
        topic_id = topic_ids.get(_topic(position), position.topic_id)
        newer = highest.get(_partition(position))
        is_higher = newer is None or newer.next_offset < position.next_offset
        if is_higher and not is_another_topic(position.topic_id, topic_id):
            highest[_partition(position)] = msgspec.structs.replace(position, topic_id=topic_id)
    return tuple(sorted(highest.values()))


def ranges_between(before: Iterable[SourcePosition], after: Iterable[SourcePosition]) -> Iterable[CommitRange]:
    """The records between two samples; a source that is new begins at its position in the second."""
    starts = {_partition(position): position for position in before}
    topic_ids = _topic_ids(starts.values())
    for position in after:
        was = topic_ids.get(_topic(position))
        if was is not None and not is_another_topic(was, position.topic_id):
            # A partition that was added to a known source is read from its start.
            known = starts.get(_partition(position))
            start = known.next_offset if known else 0
            if start < position.next_offset:
                yield CommitRange(position.cluster, position.topic, position.partition, start, position.next_offset)


def _topic_ids(positions: Iterable[SourcePosition]) -> dict[tuple[str, str], str]:
    return {_topic(position): position.topic_id for position in positions}


def _topic(position: SourcePosition) -> tuple[str, str]:
    return position.cluster, position.topic


def _partition(position: SourcePosition) -> tuple[str, str, int]:
    return position.cluster, position.topic, position.partition


def read_progress(folder: Path) -> Progress:
    """How far a lake has been written; a new lake gets a random owner."""
    try:
        return msgspec.json.decode((folder / FILE).read_bytes(), type=Progress)
    except FileNotFoundError:
        return Progress(uuid.uuid4().hex[:8])


def write_progress(folder: Path, progress: Progress) -> None:
    """Replace the progress durably."""
    replace_file(folder / FILE, msgspec.json.encode(progress))
