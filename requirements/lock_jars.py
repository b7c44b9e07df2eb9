"""Downloads all jars anew and writes their checksums to `src/warren/jars.sha256`; `make lock` runs it."""

import tempfile
from pathlib import Path

from warren.checksums import JARS_FILE, checksums_of
from warren.java import KAFKA_BROKER, MSK_LOGIN, SPARK_CONNECTOR, download_jars

HEADER = "# The SHA-256 of every jar that Warren downloads from Maven Central, written by `make lock`.\n"


def main() -> None:
    """Write the file."""
    lines = [HEADER]
    for jars in (SPARK_CONNECTOR, MSK_LOGIN, KAFKA_BROKER):
        with tempfile.TemporaryDirectory(prefix="warren-jars-") as scratch:
            download_jars(jars, Path(scratch))
            checksums = checksums_of(Path(scratch))
        lines += [f"{checksum}  {jars.name}/{file}\n" for file, checksum in checksums.items()]
    new = JARS_FILE.with_suffix(".new")
    new.write_text("".join(lines), encoding="utf-8")
    new.replace(JARS_FILE)


if __name__ == "__main__":
    main()
