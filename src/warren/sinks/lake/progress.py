"""How far a lake has been written, in one file that is replaced as a whole: the only word on what was written."""

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import orjson

from warren.durable import replace_file
from warren.sinks.lake.samples import Place, Sample

FILE = "progress.json"


@dataclass(frozen=True, slots=True)
class Stretch:
    """Records of one partition of an offsets topic: start included, end not."""

    cluster: str
    topic: str
    partition: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Job:
    """What is written at once: some intervals, and the commits up to the last of them."""

    name: str
    intervals: tuple[int, ...]
    stretches: tuple[Stretch, ...] = ()
    places: tuple[Place, ...] = ()


@dataclass(frozen=True, slots=True)
class Progress:
    """The job under way, if there is one, the intervals that the one before has written, and how far commits came."""

    owner: str
    job: Job | None = None
    done: tuple[int, ...] = ()
    places: tuple[Place, ...] = ()

    def begun(self, samples: Sequence[Sample], *, with_commits: bool) -> "Progress":
        """With a job for these samples."""
        newest = samples[-1]
        name = f"{samples[0].at_ms:015d}-{newest.at_ms:015d}-{uuid.uuid4().hex[:6]}"
        stretches = tuple(stretches_between(self.places, newest.places)) if with_commits else ()
        places = newest.places if with_commits else ()
        return replace(self, job=Job(name, tuple(sample.at_ms for sample in samples), stretches, places), done=())

    def ended(self) -> "Progress":
        """With the job done."""
        assert self.job is not None
        return Progress(self.owner, None, self.job.intervals, furthest(self.places, self.job.places))


def furthest(before: Iterable[Place], after: Iterable[Place]) -> tuple[Place, ...]:
    """How far commits have come: never back, as what was written is there, and of topics that are still the same."""
    found = {(place.cluster, place.topic, place.topic_id, place.partition): place for place in after}
    made_again = {(place.cluster, place.topic): place.topic_id for place in found.values()}
    for place in before:
        key = place.cluster, place.topic, place.topic_id, place.partition
        is_same = made_again.get((place.cluster, place.topic), place.topic_id) == place.topic_id
        if is_same and (key not in found or found[key].next_offset < place.next_offset):
            found[key] = place
    return tuple(sorted(found.values()))


def stretches_between(before: Iterable[Place], after: Iterable[Place]) -> Iterable[Stretch]:
    """What was committed between two samples; a source that was not there before begins where it is met."""
    starts: Mapping[tuple[str, str, str, int], int] = {
        (place.cluster, place.topic, place.topic_id, place.partition): place.next_offset for place in before
    }
    sources = {(cluster, topic, topic_id) for cluster, topic, topic_id, _ in starts}
    for place in after:
        source = place.cluster, place.topic, place.topic_id
        # A partition that came later to a source that was known is read from its start.
        start = starts.get((*source, place.partition), 0 if source in sources else place.next_offset)
        if start < place.next_offset:
            yield Stretch(place.cluster, place.topic, place.partition, start, place.next_offset)


def read_progress(folder: Path) -> Progress:
    """How far a lake has been written; one that nobody has written to yet has an owner made up now."""
    try:
        raw = orjson.loads((folder / FILE).read_bytes())
    except FileNotFoundError:
        return Progress(uuid.uuid4().hex[:8])
    job = raw["job"]
    return Progress(
        raw["owner"],
        job
        and Job(
            job["name"],
            tuple(job["intervals"]),
            tuple(Stretch(**stretch) for stretch in job["stretches"]),
            tuple(Place(**place) for place in job["places"]),
        ),
        tuple(raw["done"]),
        tuple(Place(**place) for place in raw["places"]),
    )


def write_progress(folder: Path, progress: Progress) -> None:
    """Put down how far it is, durably."""
    replace_file(folder / FILE, orjson.dumps(asdict(progress)))
