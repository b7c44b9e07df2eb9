"""The class-data archive of Spark's JVM: used where it fits, ignored where it does not."""

import contextlib
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit.warrens import wait_for
from warren.java import SPARK_CONNECTOR, class_archive_options, fetch_jars, java_home, store_class_archive
from warren.spark.class_archive import archive_made_in_background
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


@pytest.fixture
def new_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache directory with the jars of the real one and without archives."""
    (tmp_path / "jars").symlink_to(fetch_jars(SPARK_CONNECTOR)[0].parents[1])
    monkeypatch.setenv("WARREN_CACHE", str(tmp_path))
    return tmp_path


def test_nothing_is_left_of_a_maker_that_is_stopped(new_cache: Path) -> None:
    def makers() -> list[str]:
        lines = []
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                lines.append((process / "cmdline").read_text())
        return [line for line in lines if f"{new_cache}/java/spark" in line]

    with archive_made_in_background(delay_s=0.0):
        wait_for(makers, "a JVM makes the archive")
    wait_for(lambda: not makers(), "the JVM is killed", 10)
    assert not spark_archive().exists()


@pytest.mark.long
def test_an_archive_is_made_in_the_background(new_cache: Path) -> None:
    with archive_made_in_background(delay_s=0.0):
        # At the lowest priority it may take long beside other tests.
        wait_for(spark_archive().exists, "the archive is made", 1800)
    assert class_archive_options(spark_archive())
    assert [path.name for path in (new_cache / "java").iterdir()] == [spark_archive().name]
