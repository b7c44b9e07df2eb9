"""`warren groups` and `warren group` on a published snapshot, as a table and as JSON."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.kit.plans import NOW, Commit, Rehearsal, cluster_state, plan
from warren import report
from warren.cli import main
from warren.domain.offsets_logs import OffsetsLog
from warren.pipeline.plan import PlannedCluster
from warren.report import PIPE_WIDTH, worst_first

TRIGGER = 10_000
FORMATS = Path(__file__).parent / "snapshot" / "data"
OWNER = {"topic": "clicks", "owner": "/10.0.0.7", "client_id": "billing[1]"}


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Stalled, slow and healthy groups on one cluster, and a group on another that is away."""
    root = tmp_path_factory.mktemp("report")
    clusters = (PlannedCluster("local", is_judged=True), PlannedCluster("other", is_judged=True))
    cycles = Rehearsal(root, plan(root, clusters=clusters, slots=(0, 1)))
    for n in range(4):
        at = NOW + n * TRIGGER
        cycles.sample(
            at, {"local": {"clicks": [1_000 + 10 * n, 0], "orders": [1_000, 1_000]}, "other": {"orders": [500]}}
        )
        offsets = {"healthy": 1_000, "[red]odd[/red]": 1_000, "stalled": 100, "slow": 1_000, "worse": 50}
        commits = [Commit(group, "orders", 0, offset, at - 10, n) for group, offset in offsets.items()]
        commits.append(Commit("slow", "clicks", 0, 400 + n, at - 10, n))
        commits.append(Commit("stalled", "orders", 0, 100, at - 10, n, cluster=1))
        owned = {"slow": 0, "idle": 1}
        owners = [{"cluster": 0, "group": group, "partition": owned[group], **OWNER} for group in owned]
        cycles.cycle(at, commits, owners)
    local, other = clusters
    at = NOW + 3 * TRIGGER
    held = OffsetsLog(1, NOW, at, NOW - 60_000, unknown_since_ms=NOW - 60_000)
    moved = Commit("worse", "orders", 0, 50, at - 5, 9, log=1)
    known = (("clicks", 0, 403, NOW + 5_000, 0, False),)
    cycles.cycle(at, [moved], clusters=(replace(local, logs=(held,), record_times=known), other))
    away = cluster_state(unknown_since_ms=NOW, error="no answer")
    cycles.store.publish(cycles.manifest(clusters={"local": cluster_state(), "other": away}))
    return root


@pytest.fixture
def run(data_dir: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("COLUMNS", "240")

    def run(*arguments: str) -> tuple[int, str, str]:
        code = main([*arguments, "--data-dir", str(data_dir)])
        return code, *capsys.readouterr()

    return run


def names(out: str) -> list[tuple[str, str]]:
    return [(row["cluster"], row["group"]) for row in json.loads(out)]


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        (
            "worst first, then by time lag and lag, then by name",
            [],
            [
                ("local", "worse"), ("local", "stalled"), ("other", "stalled"), ("local", "slow"),
                ("local", "[red]odd[/red]"), ("local", "healthy"), ("local", "idle"),
            ],
        ),
        ("one cluster", ["--cluster", "other"], [("other", "stalled")]),
        ("one status", ["--status", "WARN"], [("local", "slow")]),
        ("in small letters", ["--status", "warn"], [("local", "slow")]),
        (
            "a status of partitions",
            ["--status", "STALL", "--cluster", "local"],
            [("local", "worse"), ("local", "stalled")],
        ),
        ("both", ["--status", "ERR", "--cluster", "other"], [("other", "stalled")]),
        ("nothing of that kind", ["--status", "REWIND"], []),
        ("a cluster nobody knows", ["--cluster", "nowhere"], []),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_groups_as_json(run: Any, name: str, arguments: Sequence[str], expected: list[tuple[str, str]]) -> None:
    code, out, _ = run("groups", "--json", *arguments)
    assert (code, names(out)) == (0, expected), name


def test_a_group_as_json(run: Any) -> None:
    code, out, _ = run("group", "local", "slow", "--json")
    group = json.loads(out)
    assert code == 0
    assert (group["status"], group["worst_status"], group["totallag"], group["maxlag"]) == ("WARN", "WARN", 627, 627)
    assert (group["unknown_since_ms"], group["newest_commit_ms"]) == (None, NOW + 3 * TRIGGER - 10)
    slow, fine = group["partitions"]
    assert (slow["status"], slow["rule"], slow["owner"], slow["client_id"]) == (
        "WARN", "FALLING_BEHIND", "/10.0.0.7", "billing[1]",
    )  # fmt: skip
    assert slow["lags"] == [None, 609, 618, 627]
    assert slow["reason"] == "falling behind: lag rose from 609 to 627 and never went down; now 627"
    assert (fine["status"], fine["reason"], fine["current_lag"]) == ("OK", "caught up: lag is 0", 0)
    assert not {"bucket", "first_row", "worst_row", "maxlag_row", "behind_row", "catch_up_low_s"} & set(group)
    behind = {"seconds_behind": 30.0, "seconds_behind_method": "at_least", "is_falling_behind": True}
    assert group["time_lag"].items() >= behind.items()
    assert slow["time_lag"] == group["time_lag"]
    assert (slow["time_lag"]["oldest_unread_age_seconds"], fine["time_lag"]["oldest_unread_age_seconds"]) == (
        25.0,
        None,
    )
    assert not {"unread_record_ms", "oldest_unread_age_s"} & {*group, *slow}
    assert "25 s old" in run("group", "local", "slow")[1]
    assert (fine["time_lag"]["seconds_behind"], fine["time_lag"]["seconds_behind_method"]) == (0.0, "caught_up")
    assert "Infinity" not in out


def test_unknown_numbers_are_null(run: Any) -> None:
    [partition] = json.loads(run("group", "local", "idle", "--json")[1])["partitions"]
    assert partition["rule"] == "NO_COMMITS"
    for key in ("current_lag", "committed_offset", "start_offset", "end_ms", "end_lag", "trend_floor"):
        assert partition[key] is None, key
    assert partition["partition"] == 1
    assert partition["time_lag"]["seconds_behind"] is None


def test_groups_of_a_cluster_that_is_away_are_unknown(run: Any) -> None:
    assert json.loads(run("groups", "--json", "--cluster", "other")[1])[0]["unknown_since_ms"] == NOW
    _, out, _ = run("groups", "--cluster", "other")
    assert "unknown for 30 s (was ERR)" in out


def test_a_group_whose_offsets_partition_is_held_back_is_unknown(run: Any) -> None:
    assert json.loads(run("group", "local", "worse", "--json")[1])["unknown_since_ms"] == NOW - 60_000
    assert run("group", "local", "worse")[1].startswith("local / worse: unknown for 90 s (was ERR)")
    assert "unknown for 90 s (was ERR)" in run("groups", "--cluster", "local")[1]


def test_groups_as_a_table(run: Any) -> None:
    code, out, _ = run("groups")
    assert code == 0
    lines = [line for line in out.splitlines() if "│" in line or "┃" in line]
    assert "7 groups, snapshot " in out
    assert [line.split("│")[2].strip() for line in lines[1:]] == [
        "worse", "stalled", "stalled", "slow", "[red]odd[/red]", "healthy", "idle",
    ]  # fmt: skip
    assert "orders/0: 4 commits in 30 s, all at offset 100; lag 900" in out
    assert [[cell.strip() for cell in line.split("│")[6:8]] for line in lines[4:]] == [
        ["at least 30 s", "not catching up"], ["0 s", ""], ["0 s", ""], ["?", ""],
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [((1.0, 2.0, 3.0), "cba"), ((3.0, 2.0, 1.0), "abc"), ((-1.0, 0.0, -1.0), "bca"), ((5.0, 5.0, 5.0), "cba")],
)
def test_of_groups_with_one_status_those_furthest_behind_come_first(seconds: Sequence[float], expected: str) -> None:
    groups = pa.table({
        "cluster": ["c"] * 3, "group": ["a", "b", "c"], "status": [2] * 3, "worst_status": [2] * 3,
        "seconds_behind": seconds, "totallag": [1, 2, 3],
    })  # fmt: skip
    assert "".join(worst_first(groups)["group"].to_pylist()) == expected


@pytest.mark.parametrize("data", sorted(FORMATS.iterdir()), ids=lambda path: path.name)
def test_snapshots_from_before_there_was_a_time_lag(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["groups", "--json", "--data-dir", str(data)]) == 0
    assert {group["time_lag"]["seconds_behind"] for group in json.loads(capsys.readouterr().out)} == {None}
    assert main(["groups", "--data-dir", str(data)]) == 0
    assert main(["group", "c", "g", "--data-dir", str(data)]) == 0
    capsys.readouterr()
    assert main(["group", "c", "g", "--json", "--data-dir", str(data)]) == 0
    [partition] = json.loads(capsys.readouterr().out)["partitions"]
    assert (partition["time_lag"]["seconds_behind"], partition["time_lag"]["lost_messages"]) == (None, 0)


def test_a_long_table_shows_the_worst(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "MAX_ROWS", 2)
    out = run("groups")[1]
    assert "7 groups, snapshot" in out
    assert "(the first 2)" in out
    assert "slow" not in out


def test_a_group_as_a_table(run: Any) -> None:
    code, out, _ = run("group", "local", "slow")
    assert code == 0
    assert out.startswith("local / slow: WARN, at least 30 s behind, not catching up\n")
    for text in ("/10.0.0.7", "billing[1]", "0 s ago", "1,000", "627", "caught up: lag is 0"):
        assert text in out
    assert out.index("WARN", out.index("why")) < out.index("caught up: lag is 0"), "the worst partition is the first"
    assert "never" in run("group", "local", "idle")[1]


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("a group nobody knows", ["group", "local", "nobody"], "no group 'nobody' in cluster 'local'"),
        ("a cluster nobody knows", ["group", "nowhere", "slow"], "no group 'slow' in cluster 'nowhere'"),
        ("a status nobody knows", ["groups", "--status", "BAD"], "--status BAD: must be OK, WARN or ERR"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_mistakes_are_reported(run: Any, name: str, arguments: Sequence[str], message: str) -> None:
    code, out, errors = run(*arguments)
    assert (code, out) == (1, ""), name
    assert message in errors


def test_verdicts_of_windows_that_moved_on_still_have_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cycles = Rehearsal(tmp_path, plan(tmp_path))
    for n, offset in enumerate((500, 100)):
        cycles.sample(NOW + n * TRIGGER, {"local": {"t": [1_000]}})
        cycles.cycle(NOW + n * TRIGGER, [Commit("g", "t", 0, offset, NOW + n * TRIGGER, n)])
    # After a restart the cluster is read on, but not judged until all is read.
    waiting = (replace(cycles.plan.clusters[0], is_judged=False),)
    commits = [Commit("g", "t", 0, 600 + n, NOW + (n + 2) * TRIGGER, n + 2) for n in range(10)]
    cycles.cycle(NOW + 20 * TRIGGER, commits, clusters=waiting)
    cycles.store.publish(cycles.manifest())
    assert main(["groups", "--json", "--data-dir", str(tmp_path)]) == 0
    assert main(["group", "local", "g", "--data-dir", str(tmp_path), "--json"]) == 0
    [_, group] = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert group["partitions"][0]["reason"].startswith("had gone back when last judged")


def test_what_goes_into_a_pipe_is_not_folded(
    data_dir: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    assert main(["groups", "--data-dir", str(data_dir)]) == 0
    longest = max(map(len, capsys.readouterr().out.splitlines()))
    assert 80 < longest <= PIPE_WIDTH
