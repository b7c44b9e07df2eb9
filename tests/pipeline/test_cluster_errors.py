import itertools
import logging
from pathlib import Path

import pytest

from tests.kit.plans import cluster_state, manifest, plan
from warren.pipeline.cluster_errors import log_cluster_errors
from warren.snapshot.manifest import Manifest, Position, ZooKeeperSource


def test_an_error_of_a_cluster_is_logged_once_and_so_is_its_end(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def having(error: str | None) -> Manifest:
        return manifest(plan(tmp_path), clusters={"a": cluster_state(error=error), "b": cluster_state()})

    errors = [None, "password refused", "password refused", "certificate expired", None, None]
    with caplog.at_level(logging.INFO, "warren.pipeline.cluster_errors"):
        for before, after in itertools.pairwise(errors):
            log_cluster_errors(having(before), having(after))
    assert [record.getMessage() for record in caplog.records] == [
        "a is unknown: password refused",
        "a is unknown: certificate expired",
        "a answers again",
    ]


def test_an_error_of_an_ensemble_is_logged_too(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def having(error: str | None) -> Manifest:
        section = ZooKeeperSource("id", Position(0, 0, 0), error)
        return manifest(plan(tmp_path), clusters={"a": cluster_state(zookeeper={"zk": section})})

    with caplog.at_level(logging.INFO, "warren.pipeline.cluster_errors"):
        for before, after in itertools.pairwise([None, "it cannot be reached", "it cannot be reached", None]):
            log_cluster_errors(having(before), having(after))
    assert [record.getMessage() for record in caplog.records] == [
        "a, consumer zk is unknown: it cannot be reached",
        "a, consumer zk answers again",
    ]


def test_an_offsets_topic_that_does_not_exist_is_logged_once_until_it_does(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def having(*absent: str) -> Manifest:
        return manifest(plan(tmp_path), clusters={"a": cluster_state(absent_offsets_topics=absent)})

    with caplog.at_level(logging.INFO, "warren.pipeline.cluster_errors"):
        for before, after in itertools.pairwise([having(), having("offsets"), having("offsets"), having()]):
            log_cluster_errors(before, after)
    assert [record.getMessage() for record in caplog.records] == [
        "a: its offsets topic offsets does not exist: waiting for the first commit",
        "a: its offsets topic offsets exists now",
    ]
