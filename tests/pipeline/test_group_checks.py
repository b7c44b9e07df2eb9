"""Groups that were deleted while nobody read their tombstones: which go, which stay, and when brokers are asked."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.kit.plans import NOW, Commit, Rehearsal, plan
from tests.pipeline.test_cycle import Stage
from warren.config import Cluster, Config, Consumer
from warren.domain.offsets_logs import OffsetsLog
from warren.errors import ClusterError
from warren.kafka.samples import COMMITTED, to_table
from warren.pipeline import drop
from warren.pipeline.group_checks import LONG_GAP_MS, RETRY_MS, GroupChecks, checked_clusters
from warren.pipeline.plan import PlannedCluster

HOUR = 3_600_000
SECOND = 1_000


class Brokers:
    """What the brokers of the stage's cluster say of groups, and what they were asked."""

    def __init__(self, stage: Stage, refresh_s: int = 0) -> None:
        self.stage = stage
        self.listed: list[str] = []
        self.committed: list[str] = []
        self.hidden: list[str] = []
        self.error = ""
        self.lists = 0
        self.asked: list[str] = []
        self._refresh_s = refresh_s
        self.restart()

    def restart(self) -> None:
        self.stage.group_checks = GroupChecks({"c": self._refresh_s}, self._list, self._find_without_offsets)
        self.stage.start()

    def _list(self, _: str) -> Sequence[str]:
        self.lists += 1
        if self.error:
            raise ClusterError(self.error)
        return self.listed

    def _find_without_offsets(self, _: str, groups: Sequence[str]) -> Sequence[str]:
        self.asked += groups
        return [group for group in groups if group not in self.committed + self.hidden]

    def run(self, from_ms: int, cycles: int = 6, *commits: tuple[str, int]) -> dict[str, list[int]]:
        """Some cycles, a second apart, in which every question is answered."""
        for n in range(cycles):
            self.stage.cycle(from_ms + n * SECOND, *(commits if n == 0 else ()))
            for thread in threading.enumerate():
                if thread.name == "check for deleted groups":
                    thread.join()
        return self.stage.windows()


@pytest.fixture
def brokers(tmp_path: Path) -> Brokers:
    stage = Stage(tmp_path)
    brokers = Brokers(stage)
    stage.cycle(NOW, *((group, NOW) for group in ("gone", "quiet", "streams", "hidden", "back")))
    return brokers


def test_after_a_long_gap_the_groups_that_no_broker_knows_go_and_no_others(brokers: Brokers) -> None:
    brokers.listed, brokers.committed, brokers.hidden = ["quiet", "another"], ["streams"], ["hidden"]
    brokers.restart()
    late = NOW + LONG_GAP_MS + SECOND
    brokers.run(late, 2)
    windows = brokers.run(late + 2 * SECOND, 6, ("back", late + 2 * SECOND))
    assert set(windows) == {"quiet", "streams", "hidden", "back"}
    assert sorted(brokers.asked) == ["gone", "hidden", "streams"], "those that are not listed, once each"
    assert brokers.lists == 1
    assert not brokers.stage.cycles.manifest.clusters["c"].has_unseen_deletions
    brokers.run(late + HOUR)
    assert brokers.lists == 1, "once after a gap"


def test_a_list_from_before_a_gap_does_not_count_after_it(brokers: Brokers) -> None:
    brokers.listed = ["gone", "quiet", "streams", "hidden", "back"]
    late = NOW + 2 * HOUR
    brokers.run(late, 2)
    brokers.listed.remove("gone")
    assert "gone" not in brokers.run(late + 2 * HOUR)
    assert brokers.lists == 2


def test_a_short_gap_asks_nothing(brokers: Brokers) -> None:
    brokers.run(NOW + LONG_GAP_MS)
    brokers.restart()
    brokers.run(NOW + 2 * LONG_GAP_MS)
    assert (brokers.lists, len(brokers.stage.windows())) == (0, 5)


def test_a_list_without_rights_removes_nothing(brokers: Brokers) -> None:
    brokers.hidden = ["gone", "quiet", "streams", "hidden", "back"]
    assert len(brokers.run(NOW + 2 * HOUR)) == 5
    assert brokers.lists == 1


def test_a_check_that_fails_is_repeated_after_an_hour_and_after_a_restart(brokers: Brokers) -> None:
    brokers.error = "no broker answered"
    late = NOW + 2 * HOUR
    brokers.run(late)
    assert brokers.lists == 1
    brokers.run(late + RETRY_MS - 10 * SECOND)
    assert brokers.lists == 1
    brokers.run(late + RETRY_MS + 10 * SECOND)
    assert brokers.lists == 2
    brokers.error = ""
    brokers.restart()
    assert brokers.run(late + RETRY_MS + 20 * SECOND) == {}, "what is due outlives a restart"


def test_groups_reaper_refresh_is_how_often_brokers_are_asked(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    brokers = Brokers(stage, refresh_s=60)
    stage.cycle(NOW, ("g", NOW), ("h", NOW))
    brokers.listed = ["g", "h"]
    for n in range(1, 13):
        brokers.run(NOW + n * 40 * SECOND)
    assert (brokers.lists, set(stage.windows())) == (6, {"g", "h"}), "every second time"
    brokers.listed = ["g"]
    assert set(brokers.run(NOW + 600 * SECOND)) == {"g"}


def test_many_deleted_groups_go_in_several_rounds(brokers: Brokers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drop, "MAX_UNLISTED", 1)
    brokers.committed = ["streams"]
    assert set(brokers.run(NOW + 2 * HOUR, 20)) == {"streams"}
    assert len(brokers.asked) == 5


def test_only_groups_of_the_brokers_own_offsets_topic_are_checked() -> None:
    clusters = {name: Cluster(name, ("a:1",), groups_reaper_refresh=n) for n, name in enumerate("ab")}
    consumers = [Consumer("x", "a", ("a:1",)), Consumer("y", "b", ("a:1",))]
    mirrored = Consumer("z", "b", ("a:1",), offsets_topic="offsets-of-another-cluster")
    config: Callable[..., Config] = lambda *own: Config(clusters, {c.name: c for c in own})  # noqa: E731
    assert checked_clusters(config(*consumers)) == {"a": 0, "b": 1}
    assert checked_clusters(config(*consumers, mirrored)) == {"a": 0}


def test_seeds_and_owned_partitions_go_with_their_group(tmp_path: Path) -> None:
    cluster = PlannedCluster("local", is_judged=True, logs=(OffsetsLog(0, 0, NOW + 9_000, NOW, skew_ms=3_000),))
    cycles = Rehearsal(tmp_path, plan(tmp_path, clusters=(cluster,)))

    def row(group: str, **more: Any) -> dict[str, Any]:
        return {"cluster": 0, "group": group, "topic": "t", "partition": 0, **more}

    cycles.cycle(
        NOW,
        [Commit("old", "t", 0, 5, NOW, 1), Commit("skewed", "t", 0, 5, NOW + 5_000, 2)],
        owners=[row("owned", owner="/a", client_id="a")],
        seeds=[row("seeded", offset=5)],
    )
    checked = replace(cluster, listed_at_ms=NOW + SECOND)
    cycles.cycle(NOW + 2 * SECOND, owners=[row("new", owner="/a", client_id="a")], clusters=(checked,))
    names = ["old", "owned", "seeded"]
    assert sorted(cycles.results[0].unlisted_groups) == [("local", name) for name in names]
    deleted = [{"cluster": 0, "group": name, "is_deleted": True} for name in [*names, "new", "skewed", "unheard of"]]
    rows = cycles.cycle(NOW + 3 * SECOND, listed=deleted, clusters=(checked,))
    assert [key[1] for key in rows] == ["new", "skewed"], "those seen since the list stay"
    assert cycles.results[0].unlisted_groups == ()


def test_a_silent_group_that_is_known_by_its_seed_goes(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.config = replace(stage.config, consumers={"c": Consumer("c", "c", ("a:1",), start_latest=True)})
    stage.seeds = to_table(COMMITTED, [("g", "t", 0, 5), ("h", "t", 0, 5)])
    brokers = Brokers(stage)
    brokers.listed = ["h"]
    stage.cycle(NOW)
    assert set(stage.windows()) == {"g", "h"}
    assert set(brokers.run(NOW + 2 * HOUR)) == {"h"}
