"""Two Warrens on one data directory: the later one takes over, the earlier one stops and says why, nothing breaks."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.kit.reference import Reference, assert_windows_equal, read_topic
from tests.kit.warrens import Recorder, Seen, WarrenRun, sections_for
from warren.demo.broker import Kafka
from warren.demo.workload.consuming_groups import Healthy
from warren.demo.workload.producer import Producer
from warren.demo.workload.topics import create_topics

pytestmark = pytest.mark.timeout(600)

TOPIC = "second-writer"


@dataclass
class Ended:
    """How the first of two writers ended, and what both published."""

    exit_code: int
    last_words: str
    first_epoch: int
    snapshots: list[Seen]
    reference: Reference
    drafts: list[Path]
    is_whole: bool


@pytest.fixture(scope="module")
def ended(kafka: Kafka, tmp_path_factory: pytest.TempPathFactory) -> Ended:
    bootstrap = kafka.bootstrap
    create_topics(bootstrap, {TOPIC: 2})
    home = tmp_path_factory.mktemp("second-writer")
    sections = sections_for({"local": bootstrap}, trigger=0.5)
    first, second = WarrenRun(home, sections), WarrenRun(home, sections)
    with (
        Producer(bootstrap, TOPIC, 50.0),
        Healthy(bootstrap, TOPIC, "second-writer-group", commit_every_s=0.2),
        Recorder(first.data) as record,
    ):
        with first:
            group = "local", "second-writer-group"
            epoch = first.wait_for(lambda s: s.group(*group) and s.manifest.epoch, "the first one judges")
            with second:
                code = first.wait_exit()
                second.wait_for(lambda s: s.manifest.epoch > epoch and s.manifest.cycle_ms, "the second one judges")
                second.wait_for_cycles(5)
        reference = Reference(read_topic(bootstrap, "__consumer_offsets"))
    manifest, troubles = first.store.newest_whole()
    drafts = list((first.data / "manifests").glob("*.draft"))
    whole = manifest is not None and not troubles
    return Ended(code, first.log, epoch, record.seen, reference, drafts, whole)


def test_the_first_writer_stops_and_says_why(ended: Ended) -> None:
    assert ended.exit_code == 1
    last = ended.last_words.strip().splitlines()[-1]
    assert "another Warren has published manifest" in last
    assert "run only one `warren run` on a data directory" in last


def test_only_one_writer_publishes_from_the_takeover_on(ended: Ended) -> None:
    epochs = [seen.manifest.epoch for seen in ended.snapshots]
    assert epochs == sorted(epochs)
    assert set(epochs) == {ended.first_epoch, ended.first_epoch + 1}


def test_the_snapshot_stays_whole(ended: Ended) -> None:
    assert ended.is_whole
    assert ended.drafts == []
    assert_windows_equal(ended.snapshots, "local", ended.reference)
