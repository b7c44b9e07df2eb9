from dataclasses import replace
from pathlib import Path

import pytest

from warren.config.changes import changed_sections, with_fixed_keys
from warren.config.general import General, Logging
from warren.config.kafka import ClientProfile, Cluster, Consumer
from warren.config.load import Config
from warren.config.notifiers import Notifier, NotifierLock, Route
from warren.config.pipeline import Pipeline, Storage
from warren.config.secrets import Secret
from warren.config.security import Iam, Sasl

SERVERS = ("127.0.0.1:1",)
LOCAL = Cluster("local", SERVERS)
BEFORE = Config(
    {"local": LOCAL}, {"local": Consumer("local", "local", SERVERS)}, sasl={"s": Sasl(password=Secret("old"))}
)


@pytest.mark.parametrize(
    ("after", "changes"),
    [
        (BEFORE, []),
        (replace(BEFORE, clusters={"local": LOCAL, "b": Cluster("b", SERVERS)}), ["[cluster.b] added"]),
        (replace(BEFORE, clusters={"local": replace(LOCAL, topic_refresh=1)}), ["[cluster.local] changed"]),
        (replace(BEFORE, consumers={}), ["[consumer.local] removed"]),
        (replace(BEFORE, storage=Storage(intervals=3)), ["[storage] changed"]),
        (replace(BEFORE, storage=Storage(name="memory")), ["[storage.memory] changed"]),
        (replace(BEFORE, routes=(Route("1", team="a"),)), ["[[route]] changed"]),
        (replace(BEFORE, notifier_lock=NotifierLock("kafka")), ["[notifier-lock] added"]),
        (replace(BEFORE, notifiers={"hook": Notifier("hook", "null")}), ["[notifier.hook] added"]),
        (replace(BEFORE, sasl={"s": Sasl(password=Secret("new"))}), ["[sasl.s] changed"]),
    ],
)
def test_changes_are_named_by_their_sections(after: Config, changes: list[str]) -> None:
    assert changed_sections(BEFORE, after) == changes


def test_keys_that_need_a_restart_keep_their_values_and_all_others_change() -> None:
    wanted = replace(
        BEFORE,
        general=General(pidfile=Path("other.pid"), external_url="https://warren"),
        logging=Logging(level="debug", maxsize=5),
        pipeline=Pipeline(data_dir=Path("/other"), buckets=99, trigger=1.0, spark_conf={"a": "b"}),
    )
    config, reasons = with_fixed_keys(BEFORE, wanted)
    assert config.general == General(external_url="https://warren")
    assert config.logging == Logging(level="debug")
    assert config.pipeline == Pipeline(trigger=1.0)
    restart = "needs a restart; the value from before stays in use"
    assert reasons == [
        f"[general] pidfile {restart}",
        f"[logging] maxsize {restart}",
        f"[pipeline] spark-conf {restart}",
        f"[pipeline] data-dir {restart}",
        "[pipeline] buckets is used only for a new data directory",
    ]
    assert with_fixed_keys(BEFORE, BEFORE) == (BEFORE, [])


def test_the_first_use_of_iam_needs_a_restart() -> None:
    iam = Iam(region="eu-west-1")
    profile = ClientProfile(iam="msk", name="msk")
    wanted = replace(
        BEFORE,
        clusters={"local": replace(LOCAL, client_profile="msk")},
        client_profiles={"msk": profile},
        iam={"msk": iam},
    )
    config, [reason] = with_fixed_keys(BEFORE, wanted)
    assert config == wanted
    assert "[iam.NAME] in use needs a restart" in reason
    assert with_fixed_keys(wanted, wanted) == (wanted, [])
