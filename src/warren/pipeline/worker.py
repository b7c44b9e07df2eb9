"""A Python worker of Spark, made fit for many short tasks."""

import gc
import sys
from functools import cache
from importlib.machinery import PathFinder


@cache
def settle() -> None:
    """Done once in a worker: spare every later task what Spark does between two of them.

    Spark collects garbage after each task, over all that numpy and pyarrow have loaded, and tells the import system to
    forget what it knows before each, which makes it read the directories of Spark's own archives again: a fifth of a
    second for a task that takes a tenth.
    """
    gc.freeze()
    archives = [path for path in sys.path if path.endswith((".jar", ".zip"))]
    others = [path for path in sys.path if path not in archives]
    if PathFinder.find_spec("pyspark", others) is None:
        # On a cluster whose nodes have pyspark in Spark's archive only, that one has to stay.
        archives = [path for path in archives if path.endswith(".jar")]
    sys.path[:] = [path for path in sys.path if path not in archives]
    for path in archives:
        sys.path_importer_cache.pop(path, None)
