"""What is on disk for good: directories whose entries outlive a crash, and files that are replaced as a whole."""

import os
from pathlib import Path


def sync(path: Path) -> None:
    """Make what a directory or file holds durable."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_whole(path: Path, content: bytes) -> None:
    """Replace a file so that a reader, or a crash, sees the old one or the new one."""
    draft = path.with_suffix(".draft")
    with draft.open("wb") as out:
        out.write(content)
        out.flush()
        os.fsync(out.fileno())
    draft.replace(path)
    sync(path.parent)
