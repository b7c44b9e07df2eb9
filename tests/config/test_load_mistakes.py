import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.config.written import CLUSTER, SMALLEST, mistakes
from warren.config import Cluster, Consumer, Pipeline, load, read
from warren.config.kafka import ClientProfile
from warren.config.pipeline import Storage
from warren.config.section import keys_of
from warren.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ["burrow.toml: has no [cluster.NAME] section: at least one is required"]),
        (
            "[cluster.local]",
            [
                'burrow.toml:1: [cluster.local] class-name is missing: must be "kafka"',
                (
                    "burrow.toml:1: [cluster.local] servers is missing:"
                    ' must be a list of "host:port" strings, at least one'
                ),
            ],
        ),
        (
            CLUSTER + '[consumer.c]\nclass-name = "kafka"',
            [
                ("burrow.toml:5: [consumer.c] cluster is missing: must be the name of a [cluster.NAME] section"),
                ('burrow.toml:5: [consumer.c] servers is missing: must be a list of "host:port" strings, at least one'),
            ],
        ),
        (
            SMALLEST.replace('class-name = "kafka"\ncluster', 'class-name = "kafka2"\ncluster'),
            ['burrow.toml:7: [consumer.local] class-name = "kafka2": must be "kafka" or "kafka_zk" or "storm_zk"'],
        ),
        (
            SMALLEST.replace('cluster = "local"', 'cluster = "Local"'),
            [
                (
                    'burrow.toml:8: [consumer.local] cluster = "Local":'
                    " must be the name of a [cluster.NAME] section (local)"
                )
            ],
        ),
        (
            CLUSTER + 'client-profile = "x"',
            [
                (
                    'burrow.toml:5: [cluster.local] client-profile = "x":'
                    " must be the name of a [client-profile.NAME] section (there is none)"
                )
            ],
        ),
        (
            SMALLEST + '[storage.a]\nclass-name = "inmemory"\n[storage.b]\nclass-name = "inmemory"',
            ["burrow.toml:12: [storage.b] only one [storage.NAME] section is allowed"],
        ),
        (
            SMALLEST + '[evaluator.a]\nclass-name = "caching"\n[evaluator.b]\nclass-name = "caching"',
            ["burrow.toml:12: [evaluator.b] only one [evaluator.NAME] section is allowed"],
        ),
        (
            SMALLEST + 'group-whitelist = "a"\ngroup-allowlist = "a"',
            [
                (
                    "burrow.toml:11: [consumer.local] group-allowlist is another name for group-whitelist,"
                    " which is set too: keep one of them"
                )
            ],
        ),
        (
            SMALLEST + '[storage]\nclass-name = "inmemory"',
            [("burrow.toml:11: [storage] class-name must be in a section with a name, such as [storage.local]")],
        ),
        (
            SMALLEST + "[[evaluator.local]]",
            [("burrow.toml:10: [evaluator] local must be in a section with a name, such as [evaluator.local]")],
        ),
        ("storage = 1\n" + SMALLEST, ["burrow.toml:1: [storage] must be a section, not 1"]),
        (
            SMALLEST + '[storage.""]\nclass-name = "inmemory"',
            ['burrow.toml:10: [storage.""] must have a name of printable characters'],
        ),
        (
            SMALLEST + CLUSTER.replace("cluster", "Cluster"),
            ["burrow.toml:11: [Cluster.local] is defined twice, also as [cluster.local]"],
        ),
        (
            SMALLEST + "[logging]\nlevel = 'warn'\n[Logging]\nlevel = 'info'\n",
            ["burrow.toml:12: [Logging] is defined twice, also as [logging]"],
        ),
    ],
)
def test_a_mistake_in_the_shape_of_the_file_is_reported(tmp_path: Path, text: str, expected: list[str]) -> None:
    assert mistakes(tmp_path, text) == expected


def test_all_mistakes_are_reported_at_once_with_their_lines(tmp_path: Path) -> None:
    text = """
[client-profile.safe]
client-id = ""
tls = "certificates"
[tls.certs]

[cluster.local]
class-name = "kafkaa"
servers = [
    "localhost:9092", # [consumer.commits]
    "localhost"
]
client-profile = "safe"
topic-refresh = "often"

[consumer.commits]
class-name = "kafka"
cluster = "lokal"
group-denylist = "("
client-profile = "save"

[storage.default]
intervals = 0

[pipeline]
trigger = 0
"""
    places = [re.match(r"burrow\.toml:(\d+): (\[\S+\] \S+)", mistake) for mistake in mistakes(tmp_path, text)]
    assert {(int(place[1]), place[2]) for place in places if place} == {
        (3, "[client-profile.safe] client-id"),
        (4, "[client-profile.safe] tls"),
        (8, "[cluster.local] class-name"),
        (9, "[cluster.local] servers"),
        (14, "[cluster.local] topic-refresh"),
        (16, "[consumer.commits] servers"),
        (18, "[consumer.commits] cluster"),
        (19, "[consumer.commits] group-denylist"),
        (20, "[consumer.commits] client-profile"),
        (22, "[storage.default] class-name"),
        (23, "[storage.default] intervals"),
        (26, "[pipeline] trigger"),
    }
    assert len(places) == 12


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (None, "cannot be read: No such file or directory"),
        (b"[cluster.local\n", "must be TOML: "),
        (b"a = 1\na = 2\n", "must be TOML: "),
        (b"a = '\xff'", "must be UTF-8 text: "),
    ],
)
def test_a_file_that_cannot_be_read_is_a_mistake(tmp_path: Path, content: bytes | None, expected: str) -> None:
    if content is not None:
        (tmp_path / "burrow.toml").write_bytes(content)
    with pytest.raises(ConfigError) as refusal:
        load(tmp_path)
    (mistake,) = refusal.value.mistakes
    assert mistake.startswith(f"{tmp_path}/burrow.toml: {expected}")


TOML_VALUES = st.sampled_from(
    [
        '"x"',
        '""',
        "1",
        "-1",
        "0.5",
        "nan",
        "true",
        "[]",
        '["a:1"]',
        "[[1]]",
        "{}",
        "{a = 1}",
        "1979-05-27",
        '"""\n"""',
    ]
)
KEYS = st.sampled_from(
    sorted({name for section in (ClientProfile, Cluster, Consumer, Storage, Pipeline) for name in keys_of(section)})
)
HEADERS = st.sampled_from(
    ["cluster.local", "consumer.local", "storage.s", "evaluator.e", "client-profile.p", "pipeline", "cluster"]
)


@settings(deadline=None)  # a busy machine is no mistake
@given(file=st.dictionaries(HEADERS, st.dictionaries(KEYS, TOML_VALUES, max_size=6), max_size=5))
def test_no_file_is_more_than_mistakes(
    tmp_path_factory: pytest.TempPathFactory, file: dict[str, dict[str, str]]
) -> None:
    directory = tmp_path_factory.mktemp("config")
    tables = (
        f"[{header}]\n" + "".join(f"{key} = {value}\n" for key, value in table.items())
        for header, table in file.items()
    )
    (directory / "burrow.toml").write_text("".join(tables))
    config, findings = read(directory)
    assert (config is None) == bool(findings.mistakes)
    assert all("\n" not in finding for finding in findings.mistakes + findings.warnings + findings.notes)
