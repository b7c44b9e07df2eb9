"""The book of incidents: what snapshots open, change and close, over restarts and crashes."""

import logging
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from tests.kit.plans import cluster_state, manifest, plan
from warren.domain.status import Status
from warren.domain.windows import UNKNOWN
from warren.errors import WarrenError
from warren.incidents.model import Incident
from warren.incidents.pipeline import DAY_MS, MAX_PARTITIONS, IncidentPipeline
from warren.incidents.store.database import FILE
from warren.incidents.store.reader import IncidentQuery, read_incidents
from warren.incidents.store.store import IncidentStore
from warren.snapshot.manifest import Bucket, Manifest
from warren.snapshot.schemas import GROUPS, PARTITIONS
from warren.snapshot.store import Store

OK, WARN, ERR, STOP, STALL = Status.OK, Status.WARN, Status.ERR, Status.STOP, Status.STALL
SECOND, START = 1_000, 1_700_000_000_000
Groups = Mapping[tuple[str, str], Sequence[tuple[Status, int]]]
"""Of each group its partitions: how they are and how far behind."""


def of_group(partitions: Sequence[tuple[Status, int]]) -> Status:
    worst = max(status for status, _ in partitions)
    return min(worst, ERR)


class Scene:
    """Snapshots as somebody wants them, and a keeper that takes them up."""

    def __init__(self, root: Path, keep_days: int = 30) -> None:
        self.root = root
        self.store = Store(root)
        self.store.create()
        self.keep_days = keep_days
        self._sequence = 0
        self.start()

    def start(self) -> None:
        self.book = IncidentStore(self.root)
        self.keeper = IncidentPipeline(self.book, self.store, self.keep_days)

    def see(
        self, now_ms: int, groups: Groups, away: Sequence[str] = (), clusters: Sequence[str] = ("one", "two")
    ) -> None:
        self.keeper.process(self.made(now_ms, groups, away, clusters))

    def made(
        self, now_ms: int, groups: Groups, away: Sequence[str] = (), clusters: Sequence[str] = ("one", "two")
    ) -> Manifest:
        self._sequence += 1
        buckets = tuple(
            self._bucket(number, {name: held for name, held in groups.items() if (name[0] == "two") == bool(number)})
            for number in range(2)
        )
        states = {name: cluster_state(unknown_since_ms=now_ms if name in away else None) for name in clusters}
        made = manifest(plan(self.root), now_ms=now_ms, clusters=states, sequence=self._sequence)
        return replace(made, buckets=buckets)

    def _bucket(self, number: int, groups: Groups) -> Bucket:
        partitions: list[dict[str, object]] = []
        rows: list[dict[str, object]] = []
        for (cluster, group), held in sorted(groups.items()):
            rows.append({
                "cluster": cluster, "group": group, "status": int(of_group(held)), "first_row": len(partitions),
                "partitions": len(held), "complete": 1.0, "totallag": sum(max(lag, 0) for _, lag in held),
                "maxlag_row": len(partitions) + max(range(len(held)), key=lambda n: held[n][1]),
            })  # fmt: skip
            partitions += [
                {
                    "cluster": cluster,
                    "group": group,
                    "topic": "t",
                    "partition": n,
                    "status": int(s),
                    "current_lag": lag,
                    "complete": 1.0,
                    "owner": "/a",
                    "start_offset": 1,
                    "start_ms": 1_001,
                    "start_lag": UNKNOWN,
                    "end_offset": 9,
                    "end_ms": 2_002,
                    "end_lag": lag,
                }
                for n, (s, lag) in enumerate(held)
            ]
        stem = f"{self._sequence}-{number}"
        return Bucket(
            self.store.write_table("partitions", stem, pa.Table.from_pylist(partitions, schema=PARTITIONS)),
            self.store.write_table("groups", stem, pa.Table.from_pylist(rows, schema=GROUPS)),
            len(partitions),
            len(rows),
        )

    def listed(self, **wanted: object) -> list[Incident]:
        return read_incidents(self.root, IncidentQuery(**wanted))  # type: ignore[arg-type]

    def told(self) -> list[str]:
        """Every incident: its group, when it opened and closed, in seconds, and its course."""
        return [
            f"{one.cluster}/{one.group} {(one.opened_ms - START) // SECOND}"
            f"-{'' if one.closed_ms is None else (one.closed_ms - START) // SECOND}"
            f" {' '.join(change.status.name for change in one.changes)}"
            for one in reversed(self.listed())
        ]


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def test_an_incident_from_its_beginning_to_its_end(scene: Scene) -> None:
    group = ("one", "g")
    course = [[(OK, 0)], [(WARN, 5)], [(WARN, 7)], [(STALL, 9)], [(WARN, 9)], [(OK, 0)], [(OK, 0)], [(STOP, 1)]]
    for second, partitions in enumerate(course):
        scene.see(START + second * SECOND, {group: partitions, ("two", "g"): [(OK, 0)]})
    assert scene.told() == ["one/g 1-5 WARN ERR WARN OK", "one/g 7- ERR"]
    ids = [entry.id for entry in scene.listed()]
    assert len(set(ids)) == 2


def test_the_worst_partitions_are_put_down_by_name(scene: Scene) -> None:
    held = [(OK, 0), (WARN, 50), (STOP, 1), (STALL, -1), (STALL, 9), *[(WARN, n) for n in range(30)]]
    scene.see(START, {("one", "a"): [(OK, 0)], ("one", "g"): held, ("two", "g"): [(STALL, 4)]})
    [entry] = scene.listed(cluster="one")
    assert [(one.partition, one.status.name, one.lag) for one in entry.partitions[:5]] == [
        (4, "STALL", 9), (3, "STALL", None), (2, "STOP", 1), (1, "WARN", 50), (34, "WARN", 29),
    ]  # fmt: skip
    assert (len(entry.partitions), entry.partition_count) == (MAX_PARTITIONS, 34)
    [other] = scene.listed(cluster="two")
    assert [(one.topic, one.partition) for one in other.partitions] == [("t", 0)]
    scene.see(START + SECOND, {("one", "g"): [(OK, 0)], ("two", "g"): [(STALL, 4)]})
    assert scene.listed(cluster="one")[0].partition_count == 34, "what it was about stays known after its end"


def test_a_restart_opens_nothing_twice_and_loses_no_end(scene: Scene) -> None:
    bad: Groups = {("one", "g"): [(STOP, 5)], ("one", "h"): [(STOP, 5)]}
    scene.see(START, bad)
    before = {entry.id for entry in scene.listed()}
    scene.start()
    scene.see(START + 9 * SECOND, {**bad, ("one", "h"): [(OK, 0)]})
    assert sorted(scene.told()) == ["one/g 0- ERR", "one/h 0-9 ERR OK"]
    assert {entry.id for entry in scene.listed()} == before


def test_while_a_cluster_is_away_nothing_opens_or_closes(scene: Scene) -> None:
    scene.see(START, {("one", "g"): [(STOP, 5)], ("two", "h"): [(OK, 0)]})
    for second in (1, 2):
        at = START + second * SECOND
        scene.see(at, {("one", "g"): [(OK, 0)], ("one", "new"): [(STOP, 1)], ("two", "h"): [(WARN, 3)]}, away=["one"])
    assert scene.told() == ["one/g 0- ERR", "two/h 1- WARN"]
    scene.see(START + 3 * SECOND, {("two", "h"): [(WARN, 3)]}, away=["one"])
    assert scene.told()[0] == "one/g 0- ERR", "nor when its groups are not even known"
    scene.see(START + 4 * SECOND, {("one", "g"): [(OK, 0)], ("two", "h"): [(OK, 3)]})
    assert scene.told() == ["one/g 0-4 ERR OK", "two/h 1-4 WARN OK"]


def test_a_group_or_a_cluster_that_is_gone_ends_its_incident(scene: Scene) -> None:
    scene.see(START, {("one", "g"): [(STOP, 5)], ("two", "g"): [(STOP, 5)]})
    scene.see(START + SECOND, {("two", "g"): [(STOP, 5)]})
    assert sorted(scene.told()) == ["one/g 0-1 ERR NOTFOUND", "two/g 0- ERR"]
    scene.see(START + 2 * SECOND, {}, clusters=["one"])
    assert sorted(scene.told()) == ["one/g 0-1 ERR NOTFOUND", "two/g 0-2 ERR NOTFOUND"]


def test_names_that_are_hard_on_keys_and_queries(scene: Scene) -> None:
    names = ["", "a'b\"c", "%", "g\u0308", "消費", "drop table incidents; --"]
    scene.see(START, {("one", name): [(STOP, 1)] for name in names})
    scene.see(START + SECOND, {("one", name): [(OK, 0)] for name in names[1:]})
    for name in names:
        [entry] = scene.listed(group=name)
        assert entry.status == (OK if name else Status.NOTFOUND)


def test_lists_are_filtered_paged_and_newest_first(scene: Scene) -> None:
    for second in range(6):
        scene.see(START + second * SECOND, {("one", f"g{n}"): [(STOP, 1)] for n in range(second + 1)})
    scene.see(START + 9 * SECOND, {("one", f"g{n}"): [(STOP, 1) if n < 4 else (OK, 0)] for n in range(6)})

    def names(**wanted: object) -> list[str]:
        return [entry.group for entry in scene.listed(**wanted)]

    assert names() == ["g5", "g4", "g3", "g2", "g1", "g0"]
    assert names(is_open=True) == ["g3", "g2", "g1", "g0"]
    assert names(is_open=False) == ["g5", "g4"]
    assert names(cluster="two") == []
    assert names(limit=2) == ["g5", "g4"]
    assert names(limit=2, before_ms=START + 4 * SECOND) == ["g3", "g2"]


def test_what_ended_long_ago_is_forgotten_and_what_is_open_never(tmp_path: Path) -> None:
    scene = Scene(tmp_path, keep_days=2)
    scene.see(START, {("one", "short"): [(STOP, 1)], ("one", "long"): [(STOP, 1)]})
    scene.see(START + SECOND, {("one", "short"): [(OK, 1)], ("one", "long"): [(STOP, 1)]})
    scene.see(START + 3 * DAY_MS, {("one", "long"): [(STOP, 1)], ("one", "new"): [(WARN, 1)]})
    assert [entry.group for entry in scene.listed()] == ["new", "long"]


def test_a_snapshot_that_changes_nothing_writes_nothing(scene: Scene) -> None:
    scene.see(START, {("one", "g"): [(STOP, 1)]})
    with closing(sqlite3.connect(scene.root / FILE)) as other:
        seen = other.execute("PRAGMA data_version").fetchone()
        for second in range(3):
            scene.see(START + second * SECOND, {("one", "g"): [(STOP, 1 + second)], ("two", "h"): [(OK, 0)]})
        assert other.execute("PRAGMA data_version").fetchone() == seen


def test_what_could_not_be_written_is_decided_again(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(IncidentStore, "write", full)
        with pytest.raises(sqlite3.OperationalError):
            scene.see(START, {("one", "g"): [(STOP, 1)]})
    assert scene.listed() == []
    scene.see(START + SECOND, {("one", "g"): [(STOP, 1)]})
    assert scene.told() == ["one/g 1- ERR"]


def test_a_book_that_is_no_book_is_put_aside(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / FILE).write_bytes(b"this is no database, but long enough to be looked at as one" * 20)
    with caplog.at_level(logging.ERROR):
        scene = Scene(tmp_path)
    assert "renamed to incidents.broken" in caplog.text
    scene.see(START, {("one", "g"): [(STOP, 1)]})
    assert scene.told() == ["one/g 0- ERR"]


def test_a_place_where_nothing_can_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / FILE).mkdir()
    with pytest.raises(WarrenError, match=r"incidents\.db cannot be opened"):
        IncidentStore(tmp_path)


def test_before_there_is_a_book_there_are_no_incidents(tmp_path: Path) -> None:
    assert read_incidents(tmp_path, IncidentQuery()) == []
    (tmp_path / FILE).touch()
    assert read_incidents(tmp_path, IncidentQuery()) == []
