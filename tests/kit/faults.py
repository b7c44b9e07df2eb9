"""Kills Warren with SIGKILL at named instants, by wrapping its methods from outside.

A file in the folder of faults that has the name of an instant asks for one kill there; if it says `self`, only of the
process that is there. The folder `fault_site` on the
PYTHONPATH of a process wraps the methods of `Store` in that process and in all that it starts, Spark's Python workers
included.
"""

import contextlib
import functools
import os
import signal
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from warren.snapshot.store import Store

FOLDER, DRIVER = "FAULTS_FOLDER", "FAULTS_DRIVER"
SITE = Path(__file__).with_name("fault_site")
_ROOT = Path(__file__).parents[2]


def environment(faults: Path) -> dict[str, str]:
    """The environment of a `warren run` that dies at the instants asked for in a folder."""
    paths = [str(SITE), str(_ROOT), os.environ.get("PYTHONPATH", "")]
    return {FOLDER: str(faults), "PYTHONPATH": os.pathsep.join(filter(None, paths))}


def reach(instant: str) -> None:
    """Kill Warren, and this process of it, if somebody asked for that at this instant."""
    with contextlib.suppress(FileNotFoundError):
        request = Path(os.environ[FOLDER]) / instant
        is_only_self = request.read_text() == "self"
        request.unlink()
        if not is_only_self:
            os.kill(int(os.environ[DRIVER]), signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)


def wrap(owner: Any, method: Callable[..., Any], wrapper: Callable[..., Any]) -> None:
    """Put a wrapper in the place of a method."""
    setattr(owner, method.__name__, functools.wraps(method)(wrapper))


def wrap_both(owner: type, method: Callable[..., Any], name: str | None = None) -> None:
    """Let a method reach `before-NAME` and `after-NAME`, where NAME is by default its first argument."""

    def wrapper(self: Any, *arguments: Any, **options: Any) -> Any:
        what = name or arguments[0]
        reach(f"before-{what}")
        result = method(self, *arguments, **options)
        reach(f"after-{what}")
        return result

    wrap(owner, method, wrapper)


def wrap_store() -> None:
    """Wrap the writes of snapshots; the first process that does so is the one that dies."""
    os.environ.setdefault(DRIVER, str(os.getpid()))
    remove, sweep, link = Store.remove, Store.sweep, os.link

    def remove_manifests(self: Store, sequences: Iterable[int]) -> None:
        reach("before-cleanup")
        remove(self, sequences)

    def sweep_files(self: Store, named: Iterable[str], above: int, up_to: int) -> int:
        reach("within-cleanup")
        removed = sweep(self, named, above, up_to)
        reach("after-cleanup")
        return removed

    def link_draft(draft: Any, target: Any, **options: Any) -> None:
        if Path(draft).suffix == ".draft":
            reach("after-draft")
        link(draft, target, **options)

    wrap(os, link, link_draft)
    wrap(Store, remove, remove_manifests)
    wrap(Store, sweep, sweep_files)
    wrap_both(Store, Store.publish, "manifest")
    wrap_both(Store, Store.write_table)
    wrap_both(Store, Store.write_arrow)
