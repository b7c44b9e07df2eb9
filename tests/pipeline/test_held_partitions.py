"""Transactions that hold back offsets partitions: when brokers are asked for their ids, and where the ids are kept."""

import logging
import threading
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.kit.plans import NOW
from tests.pipeline.test_cycle import Stage
from warren.domain.offsets_logs import UNSEEN_MS
from warren.kafka.samples import Partition
from warren.pipeline.held_partitions import ASK_EVERY_MS, HeldPartitions
from warren.snapshot.manifest import Position

TOPIC = "__consumer_offsets"
STUCK = NOW + 1_000
"""When the partition is first seen to be held back."""
LATE = STUCK + UNSEEN_MS + 1
HOSTILE = "tx\n2026-01-01 ERROR forged"


class Brokers:
    """Brokers that may know the transaction on the only offsets partition."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.transactional_id: str | None = None
        self.error: Exception | None = None
        self.asked: list[Mapping[Partition, int]] = []
        self.go_on = threading.Event()
        self.go_on.set()
        self.restart()

    def restart(self) -> None:
        self.stage.held_partitions = HeldPartitions(self._find)
        self.stage.start()

    def _find(self, cluster: str, stable_ends: Mapping[Partition, int]) -> Mapping[Partition, str]:
        assert cluster == "c"
        self.asked.append(stable_ends)
        self.go_on.wait(30)
        if self.error:
            raise self.error
        return {} if self.transactional_id is None else dict.fromkeys(stable_ends, self.transactional_id)

    def cycle(self, now_ms: int, *commits: tuple[str, int], held: int = 1) -> Position:
        """One cycle; the answer to what it asks is there before the next one, unless brokers are slow."""
        self.stage.held_records = held
        manifest = self.stage.cycle(now_ms, *commits)
        for thread in threading.enumerate():
            if thread.name == "search for open transactions" and self.go_on.is_set():
                thread.join()
        return manifest.clusters["c"].sources[TOPIC].positions[0]


@pytest.fixture
def brokers(tmp_path: Path) -> Brokers:
    brokers = Brokers(Stage(tmp_path))
    brokers.cycle(NOW, ("g", NOW), held=0)
    brokers.cycle(STUCK)
    return brokers


def test_the_id_is_found_after_a_minute_logged_once_and_kept_while_the_partition_is_held_back(
    brokers: Brokers, caplog: pytest.LogCaptureFixture
) -> None:
    brokers.transactional_id = HOSTILE
    caplog.set_level(logging.WARNING, "warren")
    assert (brokers.cycle(STUCK + UNSEEN_MS).held_by, brokers.asked) == (None, []), "most transactions end soon"
    assert brokers.cycle(LATE).held_by is None
    assert brokers.asked == [{(TOPIC, 0): 1}]
    assert brokers.cycle(LATE + 1).held_by == HOSTILE
    assert brokers.cycle(LATE + 2 * ASK_EVERY_MS).held_by == HOSTILE
    brokers.restart()
    assert brokers.cycle(LATE + 4 * ASK_EVERY_MS).held_by == HOSTILE
    assert len(brokers.asked) == 1, "the answer is in the manifest"
    assert caplog.messages == [f"c/{TOPIC}/0 is held back by transaction {HOSTILE!r}"]
    assert brokers.cycle(LATE + 5 * ASK_EVERY_MS, held=0).held_by is None, "it has ended"


def test_brokers_that_tell_nothing_are_asked_once_a_minute(brokers: Brokers, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "warren")
    for n in range(25):
        assert brokers.cycle(LATE + n * 5_000).held_by is None
    assert len(brokers.asked) == 3
    [unnamed] = caplog.messages
    assert unnamed.startswith(f"c/{TOPIC}/0: held back by an open transaction that the brokers do not name")
    brokers.transactional_id = "tx"
    brokers.cycle(LATE + 200_000)
    assert brokers.cycle(LATE + 200_001).held_by == "tx"


def test_an_answer_about_a_transaction_that_has_ended_meanwhile_does_not_count(brokers: Brokers) -> None:
    brokers.transactional_id = "first"
    brokers.cycle(LATE)
    # The partition moves on, to the next open transaction.
    brokers.cycle(LATE + 1, ("g", LATE))
    brokers.cycle(LATE + 2)
    brokers.transactional_id = "second"
    late = LATE + 2 + ASK_EVERY_MS + UNSEEN_MS
    assert brokers.cycle(late).held_by is None
    assert brokers.asked == [{(TOPIC, 0): 1}, {(TOPIC, 0): 2}]
    assert brokers.cycle(late + 1).held_by == "second"


def test_a_cycle_does_not_wait_for_the_answer(brokers: Brokers) -> None:
    brokers.go_on.clear()
    brokers.transactional_id = "tx"
    for n in range(5):
        assert brokers.cycle(LATE + n * ASK_EVERY_MS).held_by is None
    assert len(brokers.asked) == 1, "one question at a time"
    brokers.go_on.set()
    brokers.cycle(LATE + 5 * ASK_EVERY_MS)
    assert brokers.cycle(LATE + 5 * ASK_EVERY_MS + 1).held_by == "tx"


def test_a_search_that_fails_is_logged_and_repeated(brokers: Brokers, caplog: pytest.LogCaptureFixture) -> None:
    brokers.error = ValueError("unexpected")
    brokers.cycle(LATE)
    brokers.error, brokers.transactional_id = None, "tx"
    brokers.cycle(LATE + ASK_EVERY_MS)
    assert brokers.cycle(LATE + ASK_EVERY_MS + 1).held_by == "tx"
    assert "c: a search for open transactions" in caplog.messages
