from dataclasses import fields
from pathlib import Path

import pytest

from warren.config import Cluster, Consumer, Pipeline, read
from warren.config.kafka import ClientProfile
from warren.config.pipeline import Evaluator, Storage
from warren.config.section import keys_of

REST_OF_THE_FILE = """
[cluster.local]
class-name = "kafka"
servers = ["localhost:9092"]
"""

BAD_VALUES = [
    ("cluster", 'servers = "a:1"', 'a list of "host:port" strings, at least one'),
    ("cluster", "servers = []", 'a list of "host:port" strings, at least one'),
    ("cluster", 'servers = ["a"]', """a list of "host:port" strings, at least one ('a' is not host:port)"""),
    (
        "cluster",
        'servers = ["a:1", "b:65536"]',
        """a list of "host:port" strings, at least one ('b:65536' is not host:port)""",
    ),
    ("cluster", 'servers = ["a:0"]', """a list of "host:port" strings, at least one ('a:0' is not host:port)"""),
    (
        "cluster",
        'servers = ["a:1,b:1"]',
        """a list of "host:port" strings, at least one ('a:1,b:1' is not host:port)""",
    ),
    ("cluster", "servers = [1]", 'a list of "host:port" strings, at least one (1 is not a string)'),
    ("cluster", "topic-refresh = 0", "a whole number of seconds from 1 to 1000000000"),
    ("cluster", "offset-refresh = true", "a whole number of seconds from 1 to 1000000000"),
    ("cluster", "offset-refresh = 1.5", "a whole number of seconds from 1 to 1000000000"),
    ("cluster", 'client-profile = ""', "the name of a [client-profile.NAME] section (there is none)"),
    ("cluster", 'read-records = "orders"', "a list of globs as in telegraf"),
    ("cluster", 'read-records = ["a", "b["]', "a list of globs as in telegraf ('b[' has a [ without a ])"),
    ("consumer", 'start-latest = "yes"', "true or false"),
    ("consumer", "backfill-earliest = 1", "true or false"),
    ("consumer", 'offsets-topic = "a b"', "a topic name (letters, digits, '.', '_' and '-')"),
    ("consumer", "group-allowlist = 1", 'a regular expression in RE2 syntax ("" for none)'),
    (
        "consumer",
        'group-denylist = "("',
        'a regular expression in RE2 syntax ("" for none) (Invalid regular expression: missing ): ()',
    ),
    (
        "storage",
        'group-whitelist = "[z-a]"',
        (
            'a regular expression in RE2 syntax ("" for none)'
            " (Invalid regular expression: invalid character class range: z-a)"
        ),
    ),
    ("storage", "intervals = 0", "a whole number from 1 to 10000"),
    ("storage", 'intervals = "10"', "a whole number from 1 to 10000"),
    ("storage", "expire-group = -1", "a whole number of seconds from 1 to 1000000000"),
    ("storage", "min-distance = -1", "a whole number of seconds from 0 to 1000000000"),
    ("evaluator", "minimum-complete = 1.1", "a number from 0 to 1"),
    ("evaluator", "minimum-complete = nan", "a number from 0 to 1"),
    ("evaluator", "minimum-complete = true", "a number from 0 to 1"),
    ("evaluator", "allowed-lag = -1", "a whole number from 0 to 9223372036854775807"),
    ("client-profile", 'client-id = ""', "a string that is not empty"),
    ("client-profile", "dial-timeout = 301", "a whole number of seconds from 1 to 300"),
    ("client-profile", "read-timeout = 0", "a whole number of seconds from 1 to 300"),
    ("pipeline", "trigger = 0", "a number of seconds from 0.1 to 3600"),
    ("pipeline", "trigger = inf", "a number of seconds from 0.1 to 3600"),
    (
        "pipeline",
        'master = "local[0]"',
        "a Spark master such as local[*], yarn, spark://HOST:PORT or k8s://URL",
    ),
    ("pipeline", 'data-dir = ""', "a directory; a relative path starts at the directory of burrow.toml"),
    ("pipeline", "buckets = 0", "a whole number from 1 to 4096"),
    ("pipeline", "max-records = 10", "a whole number from 1000 to 1000000000"),
    ("pipeline", 'driver-memory = "4"', 'a size for the JVM such as "4g"'),
    ("pipeline", "history-days = -1", "a whole number of days from 0 to 3650"),
    ("pipeline", "history-step = 0.9", "a number of seconds from 1 to 3600"),
    ("pipeline", "spark-conf = 1", "a table of Spark settings, spark.NAME = VALUE"),
    (
        "pipeline",
        'spark-conf = {"sparky.x" = 1}',
        "a table of Spark settings, spark.NAME = VALUE (sparky.x is not a Spark setting)",
    ),
    (
        "pipeline",
        "spark-conf = {spark.x = [1]}",
        "a table of Spark settings, spark.NAME = VALUE (spark.x is neither a string, a number nor a boolean)",
    ),
    (
        "pipeline",
        'spark-conf = {spark.x = 1, "spark.x" = 1}',
        "a table of Spark settings, spark.NAME = VALUE (spark.x is given twice)",
    ),
    (
        "pipeline",
        'spark-conf = {spark.master = "yarn"}',
        "a table of Spark settings, spark.NAME = VALUE (spark.master is set by the key master)",
    ),
]

CLASS_NAMES = {"cluster": "kafka", "consumer": "kafka", "storage": "inmemory", "evaluator": "caching"}


@pytest.mark.parametrize(("kind", "line", "allowed"), BAD_VALUES)
def test_a_bad_value_is_reported_with_place_value_and_what_is_allowed(
    tmp_path: Path, kind: str, line: str, allowed: str
) -> None:
    key = line.partition(" ")[0]
    required = {"cluster": 'cluster = "local"', "servers": 'servers = ["a:1"]'}
    needs = {"cluster": ["servers"], "consumer": ["cluster", "servers"]}.get(kind, [])
    section = [
        "[pipeline]" if kind == "pipeline" else f"[{kind}.bad]",
        line,
        *([f'class-name = "{CLASS_NAMES[kind]}"'] if kind in CLASS_NAMES else []),
        *(required[need] for need in needs if need != key),
    ]
    (tmp_path / "burrow.toml").write_text("\n".join([*section, REST_OF_THE_FILE]))
    (mistake,) = read(tmp_path)[1].mistakes
    assert mistake.startswith(f"{tmp_path}/burrow.toml:2: {section[0]} {key} = ")
    assert mistake.endswith(f": must be {allowed}")


@pytest.mark.parametrize("section", [ClientProfile, Cluster, Consumer, Storage, Evaluator, Pipeline])
def test_every_attribute_but_the_name_is_a_key_with_a_check(section: type) -> None:
    attributes = {key.attribute for key in keys_of(section).values()}
    assert attributes == {field.name for field in fields(section)} - {"name"}


def test_a_mistake_shows_nothing_of_what_a_table_holds(tmp_path: Path) -> None:
    lines = ["[pipeline]", 'spark-conf = {spark.password = "geheim", "sparky.x" = {deep = "geheim"}}', REST_OF_THE_FILE]
    (tmp_path / "burrow.toml").write_text("\n".join(lines))
    (mistake,) = read(tmp_path)[1].mistakes
    assert "sparky.x.deep is not a Spark setting" in mistake
    assert "geheim" not in mistake
