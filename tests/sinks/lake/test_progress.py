"""How far a lake has been written: kept as a whole, and what is between two samples."""

import json
from pathlib import Path

import msgspec
import pytest

from warren.sinks.lake.progress import (
    CommitRange,
    Job,
    Progress,
    furthest,
    ranges_between,
    read_progress,
    write_progress,
)
from warren.sinks.lake.spool import Sample, SourcePosition

BEFORE = (SourcePosition("one", "offsets", "id", 0, 10), SourcePosition("one", "offsets", "id", 1, 20))


@pytest.mark.parametrize(
    ("after", "ranges"),
    [
        ([SourcePosition("one", "offsets", "id", 0, 15), SourcePosition("one", "offsets", "id", 1, 20)], [(0, 10, 15)]),
        ([SourcePosition("one", "offsets", "id", 0, 10), SourcePosition("one", "offsets", "id", 2, 7)], [(2, 0, 7)]),
        ([SourcePosition("one", "offsets", "another", 0, 15)], []),
        ([SourcePosition("two", "offsets", "id", 0, 15)], []),
        ([SourcePosition("one", "offsets", "id", 0, 3)], []),
        ([], []),
    ],
    ids=["went on", "a partition more", "created anew", "a new cluster", "went back", "gone"],
)
def test_what_was_committed_between_two_samples(
    after: list[SourcePosition], ranges: list[tuple[int, int, int]]
) -> None:
    assert list(ranges_between(BEFORE, after)) == [CommitRange("one", "offsets", *each) for each in ranges]


@pytest.mark.parametrize(
    ("was", "now", "start"),
    [("", "", 10), ("", "id", 10), ("~5", "id", 10), ("id", "", 10), ("", "~5", None), ("~5", "~9", None)],
    ids=["no ids", "upgraded", "created again, upgraded", "downgraded", "created again", "created again twice"],
)
def test_over_an_upgrade_of_brokers_to_ids_no_commit_is_lost_or_written_twice(
    was: str, now: str, start: int | None
) -> None:
    """Brokers have ids of topics since Kafka 2.8; the first id of a topic does not make it another one."""
    before, after = SourcePosition("one", "offsets", was, 0, 10), SourcePosition("one", "offsets", now, 0, 15)
    ranges = list(ranges_between([before], [after]))
    assert ranges == ([] if start is None else [CommitRange("one", "offsets", 0, start, 15)])
    positions = furthest([before], [after])
    assert positions == (after,)
    assert list(ranges_between(positions, [after])) == []
    behind = msgspec.structs.replace(after, next_offset=12)
    assert furthest(positions, [behind]) == (after,), "an earlier snapshot writes nothing twice"


def test_progress_is_read_as_it_was_written(tmp_path: Path) -> None:
    fresh = read_progress(tmp_path)
    assert (fresh.job, fresh.done, fresh.positions) == (None, (), ())
    samples = [Sample(1000, ("one",), BEFORE), Sample(2000, ("one",), (SourcePosition("one", "offsets", "id", 0, 12),))]
    started = Progress("me", positions=BEFORE).with_job(samples, has_commits=True)
    write_progress(tmp_path, started)
    assert read_progress(tmp_path) == started
    assert started.job is not None
    assert started.job.ranges == (CommitRange("one", "offsets", 0, 10, 12),)
    write_progress(tmp_path, started.with_job_done())
    ended = read_progress(tmp_path)
    assert (ended.owner, ended.job, ended.done, ended.positions) == (
        "me",
        None,
        (1000, 2000),
        (samples[1].positions[0], BEFORE[1]),
    )


@pytest.mark.parametrize(
    ("after", "kept"),
    [
        ([("id", 0, 15), ("id", 1, 5)], [("id", 0, 15), ("id", 1, 20)]),
        ([("id", 0, 15)], [("id", 0, 15), ("id", 1, 20)]),
        ([("another", 0, 1)], [("another", 0, 1)]),
        ([], [("id", 0, 10), ("id", 1, 20)]),
    ],
    ids=["never back", "one that does not answer stays", "created anew", "unavailable"],
)
def test_positions_only_go_forward(after: list[tuple[str, int, int]], kept: list[tuple[str, int, int]]) -> None:
    positions = furthest(BEFORE, [SourcePosition("one", "offsets", *each) for each in after])
    assert list(positions) == [SourcePosition("one", "offsets", *each) for each in kept]


def test_without_commits_no_positions_are_stored() -> None:
    started = Progress("me").with_job([Sample(1000, ("one",), BEFORE)], has_commits=False)
    assert started.job is not None
    assert (started.job.ranges, started.job.positions) == ((), ())


def test_progress_of_an_earlier_version_is_read(tmp_path: Path) -> None:
    place = {"cluster": "one", "topic": "offsets", "topic_id": "id", "partition": 0, "next_offset": 10}
    stretch = {"cluster": "one", "topic": "offsets", "partition": 0, "start": 3, "end": 10}
    job = {"name": "n", "intervals": [1, 2], "stretches": [stretch], "places": [place]}
    written = {"owner": "me", "job": job, "done": [0], "places": [place]}
    (tmp_path / "progress.json").write_text(json.dumps(written))
    progress = read_progress(tmp_path)
    position = SourcePosition("one", "offsets", "id", 0, 10)
    assert progress == Progress(
        "me", Job("n", (1, 2), (CommitRange("one", "offsets", 0, 3, 10),), (position,)), (0,), (position,)
    )
    write_progress(tmp_path, progress)
    assert json.loads((tmp_path / "progress.json").read_bytes()) == written
