"""The process that reads ZooKeeper: one thread per consumer section, and requests through a pipe."""

import contextlib
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from typing import TypeAlias

from warren.sources.zookeeper.reader import ZooKeeperReader
from warren.sources.zookeeper.samples import Ack, ReadTarget, ZooKeeperSample

Targets: TypeAlias = Sequence[ReadTarget]
"""The sections to read from now on."""


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """Ask every section for what is newer than was acknowledged."""

    id: int
    acks: Mapping[str, Ack]


@dataclass(frozen=True, slots=True)
class ReadResponse:
    """The answer of one section to the request of that id."""

    request_id: int
    sample: ZooKeeperSample


def main(connection: Connection, send: Callable[[object], None], targets: Targets) -> None:
    """Serve requests until the parent process is gone, even if it was killed."""
    # It warns of every attempt to connect; what matters is in the samples.
    logging.getLogger("kazoo").setLevel(logging.ERROR)
    readers = _change({}, targets, send)
    with contextlib.suppress(EOFError, OSError):
        while True:
            request: ReadRequest | Targets = connection.recv()
            if isinstance(request, ReadRequest):
                for target, reader in readers.items():
                    reader.request(request.id, request.acks.get(target.section))
            else:
                readers = _change(readers, request, send)


def _change(
    readers: Mapping[ReadTarget, ZooKeeperReader], targets: Targets, send: Callable[[object], None]
) -> dict[ReadTarget, ZooKeeperReader]:
    """Those of the readers whose target is the same, and new ones for the other targets."""
    for target in readers.keys() - set(targets):
        readers[target].close()
    return {target: readers.get(target) or ZooKeeperReader(target, partial(_respond, send)) for target in targets}


def _respond(send: Callable[[object], None], request_id: int, sample: ZooKeeperSample) -> None:
    with contextlib.suppress(OSError):  # the parent process is gone
        send(ReadResponse(request_id, sample))
