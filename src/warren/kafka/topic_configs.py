"""How topics are configured, as far as lag in time depends on it: whose clock stamps records, when they are deleted.

Answers to DescribeConfigs are long, and only topics with unread messages matter. So the cycle names them, and they are
described beside the samples: a batch per sample, and each topic again after some minutes. It takes a right that Warren
can do without.
"""

import logging
import threading
import time
from collections.abc import Mapping, Sequence

import pyarrow as pa

from warren.errors import ClusterError
from warren.kafka.admin import AdminOf
from warren.kafka.samples import TOPIC_CONFIGS, to_table
from warren.kafka.topics import PartitionLayout

_log = logging.getLogger(__name__)

MAX_BATCH = 100
"""How many topics are described at once."""
REFRESH_S = 600.0
"""After how long a topic is described again."""
RETRY_S = 60.0
"""How long no topic is described after the brokers refused, or did not answer."""
_REFUSED = "the brokers tell none: grant DescribeConfigs on topics to Warren's user"
_MAX_KEPT = 20_000
_TIMEOUT_S = 10.0

_TopicKey = tuple[str, str]
"""A topic's id, "" if the brokers have none, and its name."""
_Config = tuple[int, int, int, int]
"""The columns of TOPIC_CONFIGS after the name."""


class TopicConfigs:
    """The configurations of topics of one cluster."""

    def __init__(self, cluster: str, client: AdminOf) -> None:
        self._cluster, self._client = cluster, client
        self._lock = threading.Lock()
        self._kept: dict[_TopicKey, tuple[float, _Config | None]] = {}
        """When each topic was described, and its configuration if Warren may see it; the last described come last."""
        self._batch = MAX_BATCH
        self.is_busy = False
        """Whether topics are being described."""
        self._resume_at = 0.0
        self._refused = ""
        """Why the brokers refuse; it is logged once."""

    def known(self, topics: Sequence[str], layout: PartitionLayout) -> pa.Table:
        """The configurations of those of the topics that are known; the others are described for later samples."""
        if not topics:
            return TOPIC_CONFIGS.empty_table()
        ids = {topic.name: topic.id for topic in layout.topics}
        wanted = [(ids[name], name) for name in topics if name in ids]
        with self._lock:
            kept = {key: self._kept[key] for key in wanted if key in self._kept}
        self._describe([key for key in wanted if key not in kept] + _due(kept))
        rows = [(name, *config) for (_, name), (_, config) in kept.items() if config is not None]
        return to_table(TOPIC_CONFIGS, rows)

    def _describe(self, due: Sequence[_TopicKey]) -> None:
        """Describe some of the topics in a thread, unless one is at it or the brokers have refused a moment ago."""
        if due and not self.is_busy and time.monotonic() >= self._resume_at:
            self.is_busy = True
            threading.Thread(target=self._describe_batch, args=(due[: self._batch],), daemon=True).start()

    def _describe_batch(self, batch: Sequence[_TopicKey]) -> None:
        try:
            deadline = time.monotonic() + _TIMEOUT_S
            self._keep(batch, self._client.admin().describe_configs([name for _, name in batch], deadline))
        except ClusterError as error:
            self._pause(str(error))
        except Exception:  # noqa: BLE001 - samples go on without configurations
            _log.exception("cluster %s: configurations of topics", self._cluster)
            self._pause(self._refused)
        finally:
            self.is_busy = False

    def _keep(self, batch: Sequence[_TopicKey], described: Mapping[str, Mapping[str, str] | None]) -> None:
        now, is_any_seen = time.monotonic(), any(described.values())
        with self._lock:
            for key in batch:
                self._kept.pop(key, None)
                self._kept[key] = now, to_config(described.get(key[1]) or {})
            for oldest in list(self._kept)[: max(len(self._kept) - _MAX_KEPT, 0)]:
                del self._kept[oldest]
        if is_any_seen:
            self._batch, self._refused = MAX_BATCH, ""
        else:
            # Brokers log what they refuse. One topic is enough to see whether they still do.
            self._batch = 1
            self._pause(_REFUSED)

    def _pause(self, why: str) -> None:
        self._resume_at = time.monotonic() + RETRY_S
        if why != self._refused:
            self._refused = why
            _log.debug("cluster %s: lag in time goes on without configurations of topics: %s", self._cluster, why)


def _due(kept: Mapping[_TopicKey, tuple[float, _Config | None]]) -> list[_TopicKey]:
    """The topics that were described long ago, the longest first."""
    due_before = time.monotonic() - REFRESH_S
    return sorted((key for key, (at, _) in kept.items() if at <= due_before), key=lambda key: kept[key][0])


def to_config(entries: Mapping[str, str]) -> _Config | None:
    """What matters of a configuration; None if it is not all there."""
    try:
        return (
            int(entries["message.timestamp.type"] == "LogAppendTime"),
            int("delete" in entries["cleanup.policy"].split(",")),
            int(entries["retention.ms"]),
            int(entries["retention.bytes"]),
        )
    except (KeyError, ValueError, AttributeError):
        return None
