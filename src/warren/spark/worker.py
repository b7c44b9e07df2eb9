"""Spark's Python workers, prepared for many short tasks."""

import gc
import sys
from functools import cache
from importlib.machinery import ModuleSpec
from zipimport import zipimporter


class CachedArchive:
    """An archive on the import path that stays cached when Python invalidates its import caches."""

    def __init__(self, archive: zipimporter) -> None:
        self._archive = archive

    def find_spec(self, name: str, target: object = None) -> ModuleSpec | None:
        """Find a module in the archive."""
        return self._archive.find_spec(name)


def prepare_worker() -> None:
    """Make what Spark does between two tasks of a worker cheap.

    After each task Spark collects garbage, among it all objects that numpy and pyarrow have loaded. Before each task it
    invalidates the import caches, so that Python reads the directories of all jars and archives again, once for every
    package in them. Together that takes a tenth of a second, as long as a short task itself.
    """
    _freeze()
    for path, finder in list(sys.path_importer_cache.items()):
        if isinstance(finder, zipimporter):
            sys.path_importer_cache[path] = CachedArchive(finder)


@cache
def _freeze() -> None:
    gc.freeze()
