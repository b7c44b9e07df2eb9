"""`[sink.NAME]`: by our names for keys and by telegraf's."""

from pathlib import Path

import pytest

from tests.config.written import SMALLEST, loaded, mistakes, notes
from warren.config.secrets import Secret
from warren.config.sinks import ElasticsearchSink, InfluxSink, KafkaSink, LakeSink, OpenSearchSink
from warren.config.summary import summary

TELEGRAF = """
[sink.es]
class-name = "elasticsearch"
urls = [ "http://localhost:9200" ]
timeout = "5s"
enable_sniffer = false
health_check_interval = "10s"
index_name = "burrow-%Y.%m.%d"
manage_template = false
topics_exclude = [ "__consumer_offsets" ]
groups_exclude = ["console-*"]
username = "telegraf"
password = "mypassword"
tags = { usage = "logstash", project_id = "logis" }
"""


def test_what_stood_in_telegraf_conf_is_understood(tmp_path: Path) -> None:
    sink = loaded(tmp_path, SMALLEST + TELEGRAF).sinks["es"]
    assert sink == ElasticsearchSink(
        "es", urls=("http://localhost:9200",), timeout=5.0, index_name="burrow-%Y.%m.%d", manage_template=False,
        topics_exclude=("__consumer_offsets",), groups_exclude=("console-*",), username="telegraf",
        password=Secret("mypassword"), tags={"usage": "logstash", "project_id": "logis"},
    )  # fmt: skip
    assert [note.split("] ")[1].split(" ")[0] for note in notes(tmp_path, SMALLEST + TELEGRAF)] == [
        "enable_sniffer", "health_check_interval",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('class-name = "opensearch"\nurls = ["http://a"]', OpenSearchSink("s", urls=("http://a",))),
        (
            'class-name = "influxdb"\nurls = ["http://a", "http://b"]\ninterval = 30\ndetail = "group"',
            InfluxSink("s", urls=("http://a", "http://b"), interval=30.0, detail="group"),
        ),
        (
            'class-name = "influxdb"\nurls = ["http://a"]\norganization = "o"\nbucket = "b"\ntoken = "t"',
            InfluxSink("s", urls=("http://a",), organization="o", bucket="b", token=Secret("t")),
        ),
        ('class-name = "kafka"\ntopic = "lag"\ncluster = "local"', KafkaSink("s", cluster="local", topic="lag")),
        (
            'class-name = "lake"\npath = "s3a://b/lake"\nformat = "delta"\npackages = ["a:b:1"]\ncommits = true',
            LakeSink("s", path="s3a://b/lake", format="delta", packages=("a:b:1",), commits=True),
        ),
        ('class-name = "kafka"\nchanges_topic = "verdicts"', KafkaSink("s", changes_topic="verdicts")),
    ],
)
def test_sinks_of_each_class(tmp_path: Path, text: str, expected: object) -> None:
    assert loaded(tmp_path, f"{SMALLEST}[sink.s]\n{text}").sinks == {"s": expected}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            'class-name = "splunk"\nurls = ["http://a"]',
            'class-name = "splunk": must be "elasticsearch" or "opensearch" or',
        ),
        ('class-name = "influxdb"', "urls is missing: a sink of class influxdb needs it"),
        ('class-name = "lake"', "path is missing: a sink of class lake needs it"),
        ('class-name = "lake"\npath = "lake"', 'path = "lake": must be an absolute path, or a URI'),
        ('class-name = "lake"\ndatabase = "a.b"', "path is missing: Parquet files are written below a path"),
        ('class-name = "lake"\npath = "/x"\ndatabase = "a.b"', "has both a path and a database"),
        ('class-name = "lake"\npath = "/x"\nformat = "orc"', 'format = "orc": has no transactions'),
        ('class-name = "lake"\nformat = "iceberg"\ndatabase = "a"', 'database = "a": must be of a catalog'),
        ('class-name = "lake"\npath = "/x"\npackages = ["a:b"]', 'must be a list of "organisation:module:version"'),
        ('class-name = "kafka"', "topic is missing: a sink of class kafka needs it, or changes-topic"),
        ('class-name = "kafka"\nchanges-topic = "a b"', 'changes-topic = "a b": must be a topic name'),
        (
            'class-name = "kafka"\ntopic = "a"\nchanges-topic = "a"',
            'changes-topic = "a": must be another topic than that of the key topic',
        ),
        (
            'class-name = "kafka"\ntopic = "t"\ncluster = "x"',
            'cluster = "x": must be the name of a [cluster.NAME] section',
        ),
        (
            'class-name = "kafka"\ntopic = "t"\ngroups_exclude = ["[a"]',
            "must be a list of globs as in telegraf ('[a' has a [",
        ),
        (
            'class-name = "kafka"\ntopic = "t"\ninterval = "soon"',
            'interval = "soon": must be seconds, or a text such as "10s"',
        ),
        (
            'class-name = "elasticsearch"\nurls = ["http://a"]\ndata_stream = true',
            "data_stream is true: then index-name must be the name of the stream, without a date",
        ),
        ('class-name = "elasticsearch"\nurls = ["http://a"]\nindex_name = "Big"', "must be a name of indices in lower"),
    ],
)
def test_a_mistake_in_them_is_reported(tmp_path: Path, text: str, expected: str) -> None:
    [mistake] = mistakes(tmp_path, f"{SMALLEST}[sink.s]\n{text}")
    assert expected in mistake


@pytest.mark.parametrize(
    ("topics", "expected"),
    [
        ('topic = "a"', "down to each group, every 60 s"),
        ('changes-topic = "b"', "changes of verdicts to b"),
        ('topic = "a"\nchanges-topic = "b"', "down to each group, every 60 s, and changes of verdicts to b"),
    ],
)
def test_the_summary_names_them(tmp_path: Path, topics: str, expected: str) -> None:
    text = f'{SMALLEST}[sink.s]\nclass-name = "kafka"\ninterval = "1m"\ndetail = "group"\n{topics}'
    *_, last = summary(loaded(tmp_path, text))
    assert last == f"sink s: kafka, {expected}"
