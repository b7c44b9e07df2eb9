"""What snapshots change: each verdict that differs from the last one sent is sent once, with its numbers."""

import json
import math
import random
from pathlib import Path
from typing import Any

import pytest

from tests.kit.verdicts import Partitions, Verdicts
from tests.sinks.test_encode import ODD
from warren.config.sinks import Sink
from warren.domain.status import Status
from warren.domain.windows import UNKNOWN
from warren.sinks.verdict_changes import VERDICTS, changes_in, to_records
from warren.snapshot.reader import Snapshot

OK: Partitions = [(Status.OK, 0), (Status.OK, 3)]
WARN: Partitions = [(Status.OK, 90), (Status.WARN, 40), (Status.WARN, 50)]
STALL: Partitions = [(Status.STALL, 7), (Status.WARN, 9)]
TAGS = {"host": 'a "host"'}


class Feed:
    """Remembers the verdicts it has sent, as a sink does."""

    def __init__(self, sink: Sink | None = None) -> None:
        self.sink = sink or Sink("s")
        self.sent = VERDICTS.empty_table()

    def send(self, snapshot: Snapshot) -> list[dict[str, Any]]:
        """The changes of a snapshot, as JSON."""
        changes, self.sent = changes_in(snapshot, self.sent, self.sink)
        if not changes.num_rows:
            return []
        lines = to_records(changes, snapshot, TAGS).to_pylist()
        assert all(line.count("\n") == 1 and line.endswith("\n") for line in lines)
        records = [json.loads(line.partition("\t")[2]) for line in lines]
        keys = [json.loads(line.partition("\t")[0]) for line in lines]
        assert keys == [[one["cluster"], *([one["group"]] if "group" in one else [])] for one in records]
        return records

    def summaries(self, snapshot: Snapshot) -> set[str]:
        """The changes of a snapshot, each in short."""
        changes = self.send(snapshot)
        short = {f"{each['cluster']}/{each.get('group', '')} {each['from']}>{each['to']}" for each in changes}
        assert len(short) == len(changes)
        return short


@pytest.fixture
def verdicts(tmp_path: Path) -> Verdicts:
    return Verdicts(tmp_path)


def test_what_was_never_told_is_told_whole_and_then_only_what_changes(verdicts: Verdicts) -> None:
    feed = Feed()
    first = feed.summaries(verdicts.publish({"one": {"a": OK, "b": STALL}, "two": {"a": WARN}}))
    assert first == {"one/ >JUDGED", "two/ >JUDGED", "one/a >OK", "one/b >ERR", "two/a >WARN"}
    assert feed.summaries(verdicts.publish({"one": {"a": OK, "b": STALL}, "two": {"a": WARN}})) == set()
    assert feed.summaries(verdicts.publish({"one": {"a": WARN, "b": STALL}, "two": {"a": OK}})) == {
        "one/a OK>WARN",
        "two/a WARN>OK",
    }


def test_a_change_has_the_numbers_of_its_group_and_of_the_worst_partition(verdicts: Verdicts) -> None:
    feed = Feed()
    feed.send(verdicts.publish({"one": {"x": OK, "a": OK}, "two": {"b": OK, "a": OK}}))
    [told] = feed.send(verdicts.publish({"one": {"x": OK, "a": OK}, "two": {"b": OK, "a": WARN}}))
    assert told == {
        "cluster": "two",
        "group": "a",
        "from": "OK",
        "to": "WARN",
        "since": verdicts.now_ms,
        "sequence": 2,
        "time": verdicts.now_ms,
        "total_lag": 180,
        "max_lag": 90,
        "partition_count": 3,
        "lost_messages": 0,
        "worst": {"topic": "t", "partition": 2, "status": "WARN", "lag": 50, "reason": "falling_behind"},
        "tags": TAGS,
    }


def test_a_change_has_the_lag_in_time_that_is_known(verdicts: Verdicts) -> None:
    lags = {"a": {"seconds_behind": 2460.5, "catch_up_low_s": math.inf, "retention_left_s": 600, "lost": 1234,
                  "oldest_unread_age_s": 86_400.5}}  # fmt: skip
    _, told = Feed().send(verdicts.publish({"one": {"a": STALL}}, time_lags=lags))
    assert (told["seconds_behind"], told["retention_left_seconds"], told["lost_messages"]) == (2460.5, 600.0, 1234)
    assert told["oldest_unread_age_seconds"] == 86_400.5
    assert "catch_up_seconds" not in told


def test_a_lag_that_nobody_knows_is_left_out(verdicts: Verdicts) -> None:
    told = Feed().send(verdicts.publish({"one": {"a": [(Status.OK, UNKNOWN)]}}))
    assert told[1]["worst"] == {"topic": "t", "partition": 0, "status": "OK", "reason": "lag_fell"}


def test_a_group_that_goes_is_not_found_and_new_when_it_is_back(verdicts: Verdicts) -> None:
    feed = Feed()
    feed.send(verdicts.publish({"one": {"a": STALL, "b": OK}}))
    [gone] = feed.send(verdicts.publish({"one": {"b": OK}}))
    assert gone == {
        "cluster": "one", "group": "a", "from": "ERR", "to": "NOTFOUND", "since": verdicts.now_ms,
        "sequence": 2, "time": verdicts.now_ms, "tags": TAGS,
    }  # fmt: skip
    assert feed.summaries(verdicts.publish({"one": {"b": OK}})) == set()
    assert feed.summaries(verdicts.publish({"one": {"a": OK, "b": OK}})) == {"one/a >OK"}


def test_a_cluster_that_is_away_is_told_and_its_groups_only_after_it(verdicts: Verdicts) -> None:
    feed = Feed()
    feed.send(verdicts.publish({"one": {"a": OK, "b": OK}, "two": {"a": OK}}))
    [away] = feed.send(verdicts.publish({"one": {"a": WARN}, "two": {"a": OK}}, away={"one": 'no "broker"'}))
    assert away == {
        "cluster": "one", "from": "JUDGED", "to": "UNKNOWN", "since": verdicts.now_ms - 5, "error": 'no "broker"',
        "sequence": 2, "time": verdicts.now_ms, "tags": TAGS,
    }  # fmt: skip
    assert feed.summaries(verdicts.publish({"one": {"a": STALL}, "two": {"a": WARN}}, away={"one": ""})) == {
        "two/a OK>WARN"
    }
    back = feed.summaries(verdicts.publish({"one": {"a": STALL, "c": OK}, "two": {"a": WARN}}))
    assert back == {"one/ UNKNOWN>JUDGED", "one/a OK>ERR", "one/b OK>NOTFOUND", "one/c >OK"}


def test_a_cluster_that_is_away_from_the_beginning_has_no_groups_yet(verdicts: Verdicts) -> None:
    assert Feed().summaries(verdicts.publish({"one": {"a": OK}}, away={"one": ""})) == {"one/ >UNKNOWN"}


def test_a_cluster_that_is_not_configured_any_more_goes_with_its_groups(verdicts: Verdicts) -> None:
    feed = Feed()
    feed.send(verdicts.publish({"one": {"a": OK}, "two": {"a": OK}}))
    assert feed.summaries(verdicts.publish({"two": {"a": OK}})) == {"one/ JUDGED>NOTFOUND", "one/a OK>NOTFOUND"}


def test_filters_say_of_whom_is_told(verdicts: Verdicts) -> None:
    everyone = {"one": {"a": OK, "console-1": OK}, "two": {"a": OK}}
    feed = Feed(Sink("s", clusters_include=("o*",), groups_exclude=("console-*",)))
    assert feed.summaries(verdicts.publish(everyone)) == {"one/ >JUDGED", "one/a >OK"}
    feed.sink = Sink("s")
    assert feed.summaries(verdicts.publish(everyone)) == {"one/console-1 >OK", "two/ >JUDGED", "two/a >OK"}
    feed.sink = Sink("s", clusters_exclude=("two",), groups_include=("a",))
    assert feed.summaries(verdicts.publish(everyone)) == set(), "who is not asked for is not gone"


def test_a_group_that_is_unknown_changes_only_after_it(verdicts: Verdicts) -> None:
    feed = Feed()
    feed.send(verdicts.publish({"one": {"a": OK, "b": OK}}))
    assert feed.summaries(verdicts.publish({"one": {"a": STALL, "b": WARN}}, unknown=["a"])) == {"one/b OK>WARN"}
    assert feed.summaries(verdicts.publish({"one": {"a": OK, "b": WARN}}, unknown=["a"])) == set()
    assert feed.summaries(verdicts.publish({"one": {"a": WARN, "b": WARN}})) == {"one/a OK>WARN"}
    assert feed.summaries(verdicts.publish({"one": {"b": WARN}}, unknown=["a"])) == {"one/a WARN>NOTFOUND"}


def test_every_name_is_read_back(verdicts: Verdicts) -> None:
    feed = Feed()
    assert {one.get("group") for one in feed.send(verdicts.publish({"one": dict.fromkeys(ODD, OK)}))} == {None, *ODD}
    assert {one["group"] for one in feed.send(verdicts.publish({"one": dict.fromkeys(ODD, WARN)}))} == {*ODD}
    assert {one["group"] for one in feed.send(verdicts.publish({"one": {}}))} == {*ODD}


def test_whoever_hears_all_changes_knows_every_verdict(verdicts: Verdicts) -> None:
    chance = random.Random(7)
    feed = Feed()
    known: dict[tuple[str, str], str] = {}
    for _ in range(30):
        clusters = {
            cluster: {f"g{n}": chance.choice([OK, WARN, STALL]) for n in range(12) if chance.random() < 0.8}
            for cluster in ("one", "two")
        }
        for one in feed.send(verdicts.publish(clusters)):
            if "group" in one:
                name = one["cluster"], one["group"]
                assert known.pop(name, "") == one["from"] != one["to"]
                if one["to"] != "NOTFOUND":
                    known[name] = one["to"]
        words = {id(OK): "OK", id(WARN): "WARN", id(STALL): "ERR"}
        assert known == {(c, g): words[id(held)] for c, groups in clusters.items() for g, held in groups.items()}
