"""What tests of hostile names share."""

import time
from pathlib import Path

import pytest

from tests.kit.plans import Commit, Rehearsal, plan
from tests.kit.servers import CLUSTERS
from tests.security.names import NAMES
from warren.pipeline.plan import PlannedCluster

TURNS = 4
"""How many commits a window has."""


@pytest.fixture(scope="session")
def hostile_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A published snapshot: each name is a group that has stalled on the topic `orders` and on one of its own name."""
    root = tmp_path_factory.mktemp("hostile")
    clusters = tuple(PlannedCluster(name, is_judged=True, max_gap_ms=86_400_000) for name in CLUSTERS)
    cycles = Rehearsal(root, plan(root, clusters=clusters, slots=(0, 1, 0), intervals=TURNS))
    now_ms = time.time_ns() // 1_000_000 - TURNS * 1000
    topics = {name: [1000] for name in ("orders", *NAMES.values())}
    owners = [
        {"cluster": 0, "group": name, "topic": "orders", "partition": 0, "owner": name, "client_id": name}
        for name in NAMES.values()
    ]
    for turn in range(TURNS):
        now_ms += 1000
        cycles.sample(now_ms, {"one": topics, "two": {"orders": [1000]}})
        commits = [
            Commit(name, topic, 0, 500, now_ms - 10, turn)
            for name in NAMES.values()
            for topic in ("orders", name)
        ]  # fmt: skip
        cycles.cycle(now_ms, commits, owners)
    cycles.store.publish(cycles.manifest(now_ms=now_ms))
    return root
