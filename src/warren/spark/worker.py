"""A Python worker of Spark, made fit for many short tasks."""

import gc
import sys
from functools import cache
from importlib.machinery import ModuleSpec
from zipimport import zipimporter


class SettledArchive:
    """An archive on the import path that is not read again when the import system is told to forget what it knows."""

    def __init__(self, archive: zipimporter) -> None:
        self._archive = archive

    def find_spec(self, name: str, target: object = None) -> ModuleSpec | None:
        """What the archive itself answers."""
        return self._archive.find_spec(name)


def prepare_worker() -> None:
    """Spare the next tasks of this worker what Spark does between two of them.

    Spark collects garbage after each task, over all that numpy and pyarrow have loaded, and tells the import system to
    forget what it knows before each, which makes it read the directories of all jars and archives it has met again,
    once for every package in them: a tenth of a second, as long as a short task itself.
    """
    _freeze()
    for path, finder in list(sys.path_importer_cache.items()):
        if isinstance(finder, zipimporter):
            sys.path_importer_cache[path] = SettledArchive(finder)


@cache
def _freeze() -> None:
    gc.freeze()
