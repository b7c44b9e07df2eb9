"""A Warren that was never there before, on a Kafka whose groups have been at work for minutes."""

import time
from pathlib import Path

import pytest

from tests.kit.warrens import WarrenRun, recorded, sections_for, wait_for
from tests.kit.workloads import expected_status, settles_after_s
from warren.demo.broker import Kafka
from warren.demo.run import ORDERS_BACKLOG, PARTITIONS, demo_workload
from warren.demo.workload.thread import stop_all
from warren.demo.workload.topics import create_topics, fill_topic
from warren.domain.status import Status
from warren.domain.time_lag import TimeLagMethod

pytestmark = [pytest.mark.timeout(900), pytest.mark.long]

TRIGGER_S = 5.0
SLOW_BY_ONE_PERCENT = "ledger-1-percent-slow"
"""Too little to be told from ten commits alone: OK at first, WARN later."""


def test_the_first_verdicts_of_a_cold_start_are_right(tmp_path: Path) -> None:
    with Kafka() as kafka:
        create_topics(kafka.bootstrap, PARTITIONS)
        fill_topic(kafka.bootstrap, "orders", ORDERS_BACKLOG)
        producers, groups = demo_workload(kafka.bootstrap)
        threads = [*producers, *groups]
        for thread in threads:
            thread.start()
        try:
            time.sleep(max(settles_after_s(group, trigger_s=TRIGGER_S) for group in groups) + 30)
            sections = sections_for({"local": kafka.bootstrap}, trigger=TRIGGER_S, offset_refresh=5)
            with recorded(WarrenRun(tmp_path, sections)) as record:
                first = wait_for(lambda: next(iter(record.seen), None), "verdicts")
        finally:
            stop_all(threads)
    rows = {group: row for (_, group), row in first.groups.items()}
    expected = {group.group: expected_status(group) for group in groups if group.group != SLOW_BY_ONE_PERCENT}
    wrong = {name: first.why("local", name) for name in expected if Status(rows[name]["status"]).name != expected[name]}
    assert wrong == {}
    assert {row["behind_method"] for row in rows.values()} <= {
        TimeLagMethod.CAUGHT_UP,
        TimeLagMethod.HEAD_HISTORY,
        TimeLagMethod.RECORD_TIME,
        TimeLagMethod.AT_LEAST,
    }
