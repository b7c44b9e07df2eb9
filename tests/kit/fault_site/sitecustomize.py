"""Python imports this at the start of every process whose PYTHONPATH names its folder."""

from tests.kit.faults import wrap_store

wrap_store()
