"""Files that survive a crash: written and synced before anybody can see them, under their names as a whole."""

import os
import uuid
from collections.abc import Callable
from pathlib import Path


def sync(path: Path) -> None:
    """Make the content of a file, or the entries of a directory, durable."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_new(path: Path, content: bytes | memoryview) -> None:
    """Write a file that does not exist yet and sync its content; only a crash may leave a part of it."""
    try:
        with path.open("xb") as out:
            out.write(content)
            out.flush()
            os.fsync(out.fileno())
    except FileExistsError:
        raise
    except OSError as error:
        path.unlink(missing_ok=True)
        # The error of a full disk does not name the file.
        raise OSError(error.errno, error.strerror, str(path)) from None


def replace_file(path: Path, content: bytes | memoryview, *, is_durable: bool = True) -> None:
    """Write or replace a file as a whole: readers, and if durable a restart, see the old content or the new."""
    draft = path.with_name(f"{path.name}.draft")
    # A crash may have left it.
    draft.unlink(missing_ok=True)
    try:
        if is_durable:
            write_new(draft, content)
        else:
            draft.write_bytes(content)
        draft.rename(path)
    finally:
        draft.unlink(missing_ok=True)
    if is_durable:
        sync(path.parent)


def create_exclusively(path: Path, content: bytes | memoryview, check: Callable[[], None] = lambda: None) -> None:
    """Create a file as a whole; FileExistsError when another process was first, FileNotFoundError without its draft.

    `check` is called between the draft and the file, and raises if the file must not be created.
    """
    draft = path.with_name(f"{path.name}.{uuid.uuid4().hex[:12]}.draft")
    try:
        write_new(draft, content)
        check()
        os.link(draft, path)
    finally:
        draft.unlink(missing_ok=True)
    sync(path.parent)
