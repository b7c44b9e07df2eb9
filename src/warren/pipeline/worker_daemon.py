"""The process from which Spark forks its Python workers, with all that their tasks import already in its memory.

So a new worker works at once, and workers share that memory. Spark starts this module instead of its own
(`spark.python.daemon.module`).
"""

import gc

import pandas as pd  # noqa: F401 - Spark's workers import it
import pyarrow.parquet  # noqa: F401
from pyspark.daemon import manager

import warren.pipeline.flow  # noqa: F401

if __name__ == "__main__":
    # What is here before a fork is never garbage; collecting it would copy its pages in every worker.
    gc.freeze()
    manager()  # type: ignore[no-untyped-call]
