"""Every answer that was observed of Burrow, against ours for the same groups: equal but for the documented deviations.

The windows, owners and heads of Burrow's answers are put into a snapshot of ours, which is then judged and served.
"""

import http.client
import json
import logging
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.kit.plans import Commit, Rehearsal, plan
from warren.config.general import General
from warren.config.http import HttpServer
from warren.config.kafka import ClientProfile, Cluster, Consumer
from warren.config.load import Config
from warren.config.pipeline import Evaluator, Pipeline
from warren.web.server import WebServer

GOLDEN = Path(__file__).parent / "golden"
SERVERS = ("127.0.0.1:19092",)
TIME_LAG = {"seconds_behind", "seconds_behind_method", "catch_up_seconds", "catch_up_seconds_at_most"} | {
    "is_falling_behind",
    "retention_left_seconds",
    "lost_messages",
    "oldest_unread_age_seconds",
}
"""The keys that our answers have beside Burrow's."""
DOCS = Path(__file__).parents[2] / "docs" / "burrow-compatibility.md"


class Observed:
    """One answer of Burrow's as it came over the wire."""

    def __init__(self, path: Path) -> None:
        head, _, self.body = path.read_bytes().partition(b"\r\n\r\n")
        lines = head.decode().split("\r\n")
        self.status = int(lines[0].split()[1])
        self.headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines[1:])}

    @property
    def json(self) -> Any:
        return json.loads(self.body)


ALL = {path.stem: Observed(path) for path in sorted(GOLDEN.glob("*.http"))}
HEADS = {
    "audit": ALL["065_topic_audit"].json["offsets"],
    "orders": ALL["067_topic_orders"].json["offsets"],
    "payments": [8566, 8566],
    "__consumer_offsets": [0] * 50,
    "__transaction_state": [0] * 50,
}
WINDOWS: dict[str, Mapping[str, Any]] = {
    name.partition("_consumer_")[2]: answer.json["topics"]
    for name, answer in ALL.items()
    if re.fullmatch(r"\d+_consumer_[a-z]+", name)
}
JUDGED_AT_MS = 1794768761600


def commits() -> Iterator[Commit]:
    """The commits in Burrow's windows, in the order of their times."""
    found = []
    for group, topics in WINDOWS.items():
        for topic, partitions in topics.items():
            for number, partition in enumerate(partitions):
                found += [(s["timestamp"], group, topic, number, s["offset"]) for s in partition["offsets"] if s]
    for partition in ALL["021_lag_idle_caught_up"].json["status"]["partitions"]:
        start, end = partition["start"], partition["end"]
        step = (end["timestamp"] - start["timestamp"]) // 9
        times = [start["timestamp"] + step * n for n in range(9)] + [end["timestamp"]]
        found += [(at, "idle-caught-up", partition["topic"], partition["partition"], start["offset"]) for at in times]
    # Of the others only their names and topics are known.
    windows = {*WINDOWS, "idle-caught-up"}
    of_orders = ALL["068_topic_consumers_orders"].json["consumers"]
    for group in set(ALL["005_consumers"].json["consumers"]) - windows:
        found.append((JUDGED_AT_MS - 5_000, group, "orders" if group in of_orders else "payments", 0, 8566))
    for order, (at, group, topic, partition, offset) in enumerate(sorted(found)):
        yield Commit(group, topic, partition, offset, at, order)


def owners() -> list[dict[str, Any]]:
    """Who owns what, by Burrow's answers."""
    answers = [
        answer.json["status"]["partitions"] for name, answer in ALL.items() if "_lag_" in name and "err" not in name
    ]
    groups = [answer.json["status"]["group"] for name, answer in ALL.items() if "_lag_" in name and "err" not in name]
    return [
        {
            "cluster": 0, "group": group, "topic": one["topic"], "partition": one["partition"],
            "owner": one["owner"], "client_id": one["client_id"],
        }
        for group, partitions in zip(groups, answers, strict=True)
        for one in partitions
        if one["owner"]
    ]  # fmt: skip


def heads_at(at_ms: int) -> dict[str, list[int]]:
    """Heads that grew by twenty messages a second until they were what Burrow saw last."""
    missing = max(JUDGED_AT_MS - at_ms, 0) * 20 // 1000
    return {
        topic: [head - missing if topic in ("orders", "payments") else head for head in heads]
        for topic, heads in HEADS.items()
    }


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server on a snapshot of what Burrow saw."""
    root = tmp_path_factory.mktemp("golden")
    cycles = Rehearsal(root, plan(root, slots=(0, 1)))
    for at_ms in range(JUDGED_AT_MS - 120_000, JUDGED_AT_MS + 1, 2_000):
        cycles.sample(at_ms, {"local": heads_at(at_ms)})
    known = replace(
        cycles.plan.clusters[0], verified_tails=tuple((t, p, 10**9) for t in HEADS for p in range(len(HEADS[t])))
    )
    cycles.cycle(JUDGED_AT_MS, commits(), owners(), clusters=(known,))
    cycles.store.publish(cycles.manifest(trigger_ms=10**15))
    config = Config(
        clusters={"local": Cluster("local", SERVERS, "lab", topic_refresh=10, offset_refresh=2)},
        consumers={"local": Consumer("local", "local", SERVERS, "lab")},
        evaluator=Evaluator(expire_cache=1, name="default"),
        client_profiles={"lab": ClientProfile("burrow-lab", kafka_version="4.1.0", name="lab")},
        general=General(pidfile=Path("run/burrow-main.pid")),
        http_servers={"default": HttpServer("127.0.0.1:0", name="default")},
        pipeline=Pipeline(data_dir=root),
    )
    level = logging.getLogger().level
    logging.getLogger().setLevel(logging.INFO)
    server = WebServer(config)
    logging.getLogger().setLevel(level)
    yield server.urls()[0]
    server.close()


def ask(url: str, method: str, path: str, body: bytes | None = None) -> tuple[int, dict[str, str], bytes]:
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=10)
    try:
        connection.request(method, path, body)
        answer = connection.getresponse()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
    finally:
        connection.close()


# What may differ, made equal. Each takes the name of a value and the value, whose own parts are equal already.


def sort_lists(key: str, value: Any) -> Any:
    if key in ("clusters", "consumers", "topics", "modules", "partitions") and isinstance(value, list):
        return sorted(value, key=json.dumps)
    return value


def forget_which_is_first(key: str, value: Any) -> Any:
    return value | {"topic": "any", "partition": "any"} if key == "maxlag" and value else value


def forget_lag_of_commit(key: str, value: Any) -> Any:
    return "a lag" if key == "lag" and isinstance(value, int | None) else value


def drop_time_lag(key: str, value: Any) -> Any:
    return {name: held for name, held in value.items() if name not in TIME_LAG} if isinstance(value, dict) else value


def resolve_path(key: str, value: Any) -> Any:
    return value.removeprefix("./") if key == "pidfile" else value


def forget_length(key: str, value: Any) -> Any:
    """A header: the length of a body differs with what is in it, and chunks need none."""
    return ("length", "known") if value[0] in ("content-length", "transfer-encoding") else value


@dataclass(frozen=True)
class Deviation:
    """A difference that is intended: the words of the docs that say so, and what makes such values equal."""

    documented: str
    make_equal: Callable[[str, Any], Any]


DEVIATIONS = (
    Deviation("| lists are in random order |", sort_lists),
    Deviation("| of several partitions with the same lag, a random one is `maxlag` |", forget_which_is_first),
    Deviation("- The lag of a commit is measured against the head at that time.", forget_lag_of_commit),
    Deviation("| lag is counted in messages only |", drop_time_lag),
    Deviation("| paths of files are shown as written |", resolve_path),
)
OF_HEADERS = (Deviation("| long answers are sent in chunks |", forget_length),)
OF_METRICS = (
    Deviation("Their `HELP` is in Warren's words.", lambda _, lines: [x for x in lines if not x.startswith("# HELP")]),
    Deviation(
        "of the Go runtime (`go_`, `process_`, `promhttp_`) do not exist",
        lambda _, lines: [x for x in lines if not re.match(r"# TYPE (go|process|promhttp)_", x)],
    ),
)


@pytest.mark.parametrize("deviation", DEVIATIONS + OF_HEADERS + OF_METRICS, ids=lambda deviation: deviation.documented)
def test_every_deviation_is_documented(deviation: Deviation) -> None:
    assert deviation.documented in DOCS.read_text(encoding="utf-8")


def normal(value: Any, key: str = "") -> Any:
    """A value of JSON without intended deviations, and without where and on which port it was observed."""
    if isinstance(value, dict):
        value = {name: normal(held, name) for name, held in value.items()}
    elif isinstance(value, list):
        value = [normal(one) for one in value]
    for deviation in DEVIATIONS:
        value = deviation.make_equal(key, value)
    if key == "host":
        return "a host"
    return re.sub(r":\d+$", ":port", value) if key == "address" else value


def normal_headers(headers: Mapping[str, str]) -> dict[str, str]:
    found = {name: value for name, value in headers.items() if name != "date"}
    return dict(forget_length("", item) for item in found.items())


def normal_body(name: str, body: bytes) -> Any:
    # As text, so that the order of keys counts too.
    return body if name in TEXTS else json.dumps(normal(json.loads(body)), indent=1)


TEXTS = {"001_admin": "/burrow/admin", "002_ready": "/burrow/admin/ready", "108_err_nosuch": "/nosuch"}
"""The paths of answers that do not name them."""
BODIES = {"150_loglevel_post_debug": b'{"level": "debug"}'}
"""The bodies of requests that are no GET."""


@pytest.mark.parametrize("name", [name for name in ALL if name != "090_metrics"])
def test_every_answer_is_burrows(url: str, name: str) -> None:
    burrow, body = ALL[name], BODIES.get(name)
    path = TEXTS.get(name) or burrow.json["request"]["url"]
    status, headers, answer = ask(url, "POST" if body else "GET", path, body)
    assert status == burrow.status
    assert normal_headers(headers) == normal_headers(burrow.headers)
    assert normal_body(name, answer) == normal_body(name, burrow.body)


def test_the_log_level_that_was_set_is_shown(url: str) -> None:
    ask(url, "POST", "/v3/admin/loglevel", BODIES["150_loglevel_post_debug"])
    assert json.loads(ask(url, "GET", "/v3/admin/loglevel")[2])["level"] == "debug"
    ask(url, "POST", "/v3/admin/loglevel", b'{"level": "info"}')


def test_keys_beside_burrows_are_only_those_of_time_lag(url: str) -> None:
    burrow = ALL["021_lag_idle_caught_up"].json["status"]
    status = json.loads(ask(url, "GET", "/v3/kafka/local/consumer/idle-caught-up/lag")[2])["status"]
    assert status.keys() - burrow.keys() == TIME_LAG
    of_partitions = {"seconds_behind", "oldest_unread_age_seconds", "catch_up_seconds", "retention_left_seconds"}
    for partition in (*status["partitions"], status["maxlag"]):
        assert partition.keys() - burrow["partitions"][0].keys() == of_partitions
    assert not [name for name, answer in ALL.items() if b"seconds_behind" in answer.body]


def samples(text: bytes) -> dict[str, float]:
    lines = (line.rpartition(" ") for line in text.decode().splitlines() if line.startswith("burrow_"))
    return {name: float(value) for name, _, value in lines}


def test_metrics_are_burrows(url: str) -> None:
    status, headers, body = ask(url, "GET", "/metrics")
    burrow = ALL["090_metrics"]
    assert (status, headers["content-type"]) == (burrow.status, burrow.headers["content-type"])
    described = [line for line in burrow.body.decode().splitlines() if line.startswith("#")]
    for deviation in OF_METRICS:
        described = deviation.make_equal("", described)
    assert set(described) <= set(body.decode().splitlines())
    groups = "|".join([*WINDOWS, "idle-caught-up"])
    about_them = re.compile(rf'consumer_group="({groups})"|topic_partition_offset\{{.*topic="(audit|orders|payments)"')
    expected = {name: value for name, value in samples(burrow.body).items() if about_them.search(name)}
    ours = {name: value for name, value in samples(body).items() if about_them.search(name)}
    assert ours.keys() == expected.keys()
    # Burrow's metrics were taken a moment after its other answers: what moves has moved on by a second's messages.
    for name, value in expected.items():
        assert ours[name] == pytest.approx(value, abs=100 * (4 if "total" in name else 1)), name
        if "status" in name:
            assert ours[name] == value, name
