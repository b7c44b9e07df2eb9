"""How far a lake has been written: kept as a whole, and what is between two samples."""

from pathlib import Path

import pytest

from warren.sinks.lake.progress import Progress, Stretch, furthest, read_progress, stretches_between, write_progress
from warren.sinks.lake.samples import Place, Sample

BEFORE = (Place("one", "offsets", "id", 0, 10), Place("one", "offsets", "id", 1, 20))


@pytest.mark.parametrize(
    ("after", "stretches"),
    [
        ([Place("one", "offsets", "id", 0, 15), Place("one", "offsets", "id", 1, 20)], [(0, 10, 15)]),
        ([Place("one", "offsets", "id", 0, 10), Place("one", "offsets", "id", 2, 7)], [(2, 0, 7)]),
        ([Place("one", "offsets", "another", 0, 15)], []),
        ([Place("two", "offsets", "id", 0, 15)], []),
        ([Place("one", "offsets", "id", 0, 3)], []),
        ([], []),
    ],
    ids=["went on", "a partition more", "made again", "a new cluster", "went back", "gone"],
)
def test_what_was_committed_between_two_samples(after: list[Place], stretches: list[tuple[int, int, int]]) -> None:
    assert list(stretches_between(BEFORE, after)) == [Stretch("one", "offsets", *each) for each in stretches]


def test_progress_is_read_as_it_was_written(tmp_path: Path) -> None:
    fresh = read_progress(tmp_path)
    assert (fresh.job, fresh.done, fresh.places) == (None, (), ())
    samples = [Sample(1000, ("one",), BEFORE), Sample(2000, ("one",), (Place("one", "offsets", "id", 0, 12),))]
    begun = Progress("me", places=BEFORE).begun(samples, with_commits=True)
    write_progress(tmp_path, begun)
    assert read_progress(tmp_path) == begun
    assert begun.job is not None
    assert begun.job.stretches == (Stretch("one", "offsets", 0, 10, 12),)
    write_progress(tmp_path, begun.ended())
    ended = read_progress(tmp_path)
    assert (ended.owner, ended.job, ended.done, ended.places) == (
        "me",
        None,
        (1000, 2000),
        (samples[1].places[0], BEFORE[1]),
    )


@pytest.mark.parametrize(
    ("after", "kept"),
    [
        ([("id", 0, 15), ("id", 1, 5)], [("id", 0, 15), ("id", 1, 20)]),
        ([("id", 0, 15)], [("id", 0, 15), ("id", 1, 20)]),
        ([("another", 0, 1)], [("another", 0, 1)]),
        ([], [("id", 0, 10), ("id", 1, 20)]),
    ],
    ids=["never back", "one that does not answer stays", "made again", "away"],
)
def test_places_only_go_forward(after: list[tuple[str, int, int]], kept: list[tuple[str, int, int]]) -> None:
    found = furthest(BEFORE, [Place("one", "offsets", *each) for each in after])
    assert list(found) == [Place("one", "offsets", *each) for each in kept]


def test_without_commits_no_places_are_kept() -> None:
    begun = Progress("me").begun([Sample(1000, ("one",), BEFORE)], with_commits=False)
    assert begun.job is not None
    assert (begun.job.stretches, begun.job.places) == ((), ())
