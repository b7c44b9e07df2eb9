"""When the configuration is read again, what becomes of it, and what is left for the API to read."""

import logging
from dataclasses import replace
from pathlib import Path

import pytest

from tests.kit.servers import server_config
from warren.config import Cluster, Config, Pipeline
from warren.config.findings import Findings
from warren.errors import ConfigError, WarrenError
from warren.reload import Reloads
from warren.snapshot.reloads import ReloadOutcome, read_outcome, request_reload
from warren.snapshot.requests import RequestKind, RequestQueue


class Scene:
    """A configuration that the test changes, and what is applied of it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.queue = RequestQueue(root)
        self.wanted = server_config(root)
        self.findings = Findings(Path())
        self.error: Exception | None = None
        self.can_undo = False
        self.before = self.wanted
        self.reads = 0
        self.applied: list[Config] = []
        self.reloads = Reloads(self.wanted, self._read, self._apply)

    def _read(self) -> tuple[Config | None, Findings]:
        self.reads += 1
        return None if self.findings.mistakes else self.wanted, self.findings

    def _apply(self, config: Config) -> None:
        if self.error and (config != self.before or not self.can_undo):
            raise self.error
        self.applied.append(config)

    def reload(self) -> ReloadOutcome:
        self.reloads.signal()
        is_successful = self.reloads.run_if_asked()
        outcome = read_outcome(self.root)
        assert outcome is not None
        assert outcome.is_successful == is_successful
        return outcome


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def test_nothing_is_read_until_somebody_asks_and_the_start_counts_as_a_reload(scene: Scene) -> None:
    assert (scene.reloads.run_if_asked(), scene.reads) == (False, 0)
    outcome = read_outcome(scene.root)
    assert outcome is not None
    assert outcome.is_successful
    assert outcome.applied_ms == outcome.at_ms


def test_one_reload_answers_a_signal_and_all_requests(scene: Scene) -> None:
    for _ in range(2):
        scene.queue.ask(RequestKind.RELOAD, 1)
    other = scene.queue.ask(RequestKind.DELETE, 1, cluster="one", group="g")
    scene.reload()
    assert (scene.reads, scene.queue.pending()) == (1, [other])
    assert not scene.reloads.run_if_asked()


def test_requests_from_before_the_start_are_done(tmp_path: Path) -> None:
    RequestQueue(tmp_path).ask(RequestKind.RELOAD, 1)
    scene = Scene(tmp_path)
    assert (scene.queue.pending(), scene.reloads.run_if_asked(), scene.reads) == ([], False, 0)


def test_what_changed_and_what_needs_a_restart_is_reported(scene: Scene, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    data_dir = scene.wanted.pipeline.data_dir
    three = Cluster("three", ("127.0.0.1:1",))
    scene.wanted = replace(
        scene.wanted, clusters={**scene.wanted.clusters, "three": three}, pipeline=Pipeline(data_dir=Path("/other"))
    )
    scene.findings.warnings.append("burrow.toml:3: tiger is not a key")
    for changed in (["[cluster.three] added"], []):
        outcome = scene.reload()
        assert outcome.changed == changed
        assert [key.partition(";")[0] for key in outcome.needs_restart] == ["[pipeline] data-dir needs a restart"]
        assert outcome.warnings == ["burrow.toml:3: tiger is not a key"]
    assert [config.pipeline.data_dir for config in scene.applied] == [data_dir] * 2
    assert "the configuration was reloaded: [cluster.three] added" in caplog.text
    assert "[pipeline] data-dir needs a restart; the value from before stays in use" in caplog.text


@pytest.mark.parametrize(
    ("error", "mistakes"),
    [
        (ConfigError(["burrow.toml:1: a", "burrow.toml:2: b"]), ["burrow.toml:1: a", "burrow.toml:2: b"]),
        (WarrenError("[httpserver.a] cannot listen"), ["[httpserver.a] cannot listen"]),
        (
            ZeroDivisionError("a bug"),
            [
                "ZeroDivisionError: a bug",
                "some parts use the new configuration and others the one from before: restart Warren",
            ],
        ),
    ],
)
def test_what_cannot_be_applied_is_refused_and_said(
    scene: Scene, caplog: pytest.LogCaptureFixture, error: Exception, mistakes: list[str]
) -> None:
    before = read_outcome(scene.root)
    assert before is not None
    scene.error = error
    outcome = scene.reload()
    assert outcome.mistakes == mistakes
    assert outcome.applied_ms == before.applied_ms <= outcome.at_ms
    assert all(mistake in caplog.text for mistake in mistakes)
    scene.error = None
    scene.findings.mistakes.append("burrow.toml:7: no")
    assert scene.reload().mistakes == ["burrow.toml:7: no"]
    assert scene.applied == []
    scene.findings.mistakes.clear()
    assert scene.reload().mistakes == []
    assert scene.applied == [scene.wanted]


def test_a_reload_that_fails_halfway_is_undone(scene: Scene, caplog: pytest.LogCaptureFixture) -> None:
    scene.wanted = replace(scene.wanted, clusters={})
    scene.error, scene.can_undo = OSError("no more processes"), True
    outcome = scene.reload()
    assert outcome.mistakes == ["OSError: no more processes"]
    assert scene.applied == [scene.before]
    assert "the one from before stays in use" in caplog.text


def test_whoever_asks_in_vain_is_told_in_time(tmp_path: Path) -> None:
    assert request_reload(tmp_path, 1, wait_s=0.2) is None
    assert len(RequestQueue(tmp_path).pending()) == 1
