"""Burrow's statuses of partitions and groups, in the order of their severity."""

from enum import IntEnum


class Status(IntEnum):
    """Burrow's status numbers; a partition is never NOTFOUND or ERR, a group never STOP, STALL or REWIND."""

    NOTFOUND = 0
    OK = 1
    WARN = 2
    ERR = 3
    STOP = 4
    STALL = 5
    REWIND = 6
