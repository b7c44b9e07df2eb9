"""The readers of all consumer sections that commit to ZooKeeper, in one supervised process."""

import itertools
import threading
from collections.abc import Mapping, Sequence
from typing import Self

from warren.config import Config
from warren.config.kafka import StormConsumer, ZooKeeperConsumer
from warren.domain.matching import GroupFilter
from warren.processes import SupervisedProcess
from warren.sources.zookeeper.layouts import ConsumersLayout, Layout, StormLayout
from warren.sources.zookeeper.reader_process import ReadRequest, ReadResponse, main
from warren.sources.zookeeper.samples import Ack, ReadTarget, ZooKeeperSample

NO_ANSWER = "its reader does not answer"


class ZooKeeperReaders:
    """Gives the cycle what has changed; a change is given again until a manifest has taken it up."""

    def __init__(self, targets: Sequence[ReadTarget]) -> None:
        self._targets: tuple[ReadTarget, ...] = ()
        self._process: SupervisedProcess | None = None
        self._request_ids = itertools.count(1)
        self._arrived = threading.Condition()
        self._request_id = 0
        self._samples: dict[str, ZooKeeperSample] = {}
        self._acks: dict[str, Ack] = {}
        self.change(targets)

    def change(self, targets: Sequence[ReadTarget]) -> None:
        """Read these sections from now on; those that have not changed go on."""
        if tuple(targets) == self._targets:
            return
        self._targets = tuple(targets)
        if not targets:
            self.close()
            self._process = None
        elif self._process is None:
            self._process = SupervisedProcess("ZooKeeper reader", main, self._targets, self._receive)
        else:
            self._process.change_argument(self._targets)

    def take(self, timeout_s: float = 2.0) -> dict[str, ZooKeeperSample]:
        """A sample of every section; one that does not answer in time has an error."""
        if self._process is None:
            return {}
        with self._arrived:
            self._request_id, self._samples = next(self._request_ids), {}
            acks = dict(self._acks)
        self._process.send(ReadRequest(self._request_id, acks))
        with self._arrived:
            self._arrived.wait_for(lambda: len(self._samples) == len(self._targets), timeout_s)
            samples = dict(self._samples)
        sections = [target.section for target in self._targets]
        return {name: samples.get(name) or ZooKeeperSample(name, error=NO_ANSWER) for name in sections}

    def published(self, acks: Mapping[str, Ack]) -> None:
        """A manifest has taken up the changes of these sections up to these versions."""
        self._acks.update(acks)

    def forget(self) -> None:
        """Give everything again: the next manifest may follow an older one than the last."""
        self._acks.clear()

    def close(self) -> None:
        """Stop the process."""
        if self._process is not None:
            self._process.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _receive(self, response: object) -> None:
        assert isinstance(response, ReadResponse)
        with self._arrived:
            if response.request_id == self._request_id:
                self._samples[response.sample.section] = response.sample
                self._arrived.notify_all()


def read_targets(config: Config) -> list[ReadTarget]:
    """Every consumer section that commits to ZooKeeper."""
    storage = config.storage
    return [
        ReadTarget(
            name,
            section.cluster,
            section.servers,
            _layout(section),
            section.zookeeper_timeout,
            section.zookeeper_rate,
            config.tls[section.tls] if section.tls is not None else None,
            section.username,
            section.password,
            GroupFilter(section.group_allowlist, section.group_denylist),
            GroupFilter(storage.group_allowlist, storage.group_denylist),
            storage.intervals,
            storage.min_distance * 1000,
        )
        for name, section in config.zookeeper_consumers.items()
    ]


def _layout(section: ZooKeeperConsumer) -> Layout:
    path = section.zookeeper_path.rstrip("/")
    return StormLayout(path or "/") if isinstance(section, StormConsumer) else ConsumersLayout(f"{path}/consumers")
