"""The class-data archive of Spark's JVM: used where it fits, ignored where it does not."""

import subprocess
import sys
from pathlib import Path

import pytest

from warren.java import class_archive_options, java_home, store_class_archive
from warren.spark.session import spark_archive

SCRIPT = """
from pathlib import Path
from warren.java import SPARK_CONNECTOR, fetch_jars, java_home
from warren.spark.session import spark_archive, start_session

conf = {"spark.driver.extraJavaOptions": "-Dours=ours"}
spark = start_session("local[1]", fetch_jars(SPARK_CONNECTOR), java_home(), "512m", conf)
assert spark._jvm.System.getProperty("ours") == "ours"
maps = Path(f"/proc/{spark.sparkContext._gateway.proc.pid}/maps").read_text()
assert str(spark_archive()) in maps, maps
print("all is well")
"""


def run_java(*options: str) -> str:
    ended = subprocess.run([java_home() / "bin" / "java", *options, "-version"], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout + ended.stderr


@pytest.fixture(scope="module")
def archive() -> Path:
    # In a process of its own, as the JVM of a session stays with the process that has started it.
    subprocess.run([sys.executable, "-c", "from warren.spark.class_archive import make_archive as m; m()"], check=True)
    return spark_archive()


@pytest.mark.usefixtures("archive")
def test_a_session_uses_the_archive_beside_options_of_the_user() -> None:
    ended = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=280)
    assert ended.stdout.strip().endswith("all is well"), ended.stderr


def test_an_archive_of_other_jars_is_ignored_without_a_word(archive: Path) -> None:
    *options, silenced = class_archive_options(archive)
    assert "Unable to use shared archive" in run_java(*options)
    assert "archive" not in run_java(*options, silenced)


def test_a_java_that_makes_no_archive_is_not_asked_again(tmp_path: Path) -> None:
    store_class_archive(tmp_path / "new", tmp_path / "archive")
    assert (tmp_path / "archive").exists()
    assert class_archive_options(tmp_path / "archive") == []
    assert class_archive_options(tmp_path / "none") == []
