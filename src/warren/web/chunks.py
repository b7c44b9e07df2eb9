"""Chunks of what is computed of a snapshot when it is requested, within a bound on their bytes."""

import threading
import time
from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Chunk = TypeVar("Chunk")

RECENT_S = 120.0
"""For how long after a request a chunk is also made for the next snapshots."""


class Chunks(Generic[Key, Chunk]):
    """Chunks by key with the time of their last use; the bound may be exceeded by one chunk."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._chunks: OrderedDict[Key, tuple[Chunk, int]] = OrderedDict()
        self._used_s: dict[Key, float] = {}
        self._bytes = 0
        self._lock = threading.Lock()

    @property
    def is_full(self) -> bool:
        """Whether there is no room for another chunk."""
        return self._bytes >= self._max_bytes

    def get(self, key: Key) -> Chunk | None:
        """A chunk, which is in use from now on; None if it is not there."""
        with self._lock:
            found = self._chunks.get(key)
            if found is None:
                return None
            self._chunks.move_to_end(key)
            self._used_s[key] = time.monotonic()
            return found[0]

    def __contains__(self, key: Key) -> bool:
        return key in self._chunks

    def put(self, key: Key, chunk: Chunk, size: int, used_s: float | None = None) -> None:
        """Keep a chunk, which was used at a time or is now."""
        with self._lock:
            self._bytes += size - self._chunks.pop(key, (None, 0))[1]
            self._chunks[key] = chunk, size
            self._used_s[key] = time.monotonic() if used_s is None else used_s

    def drop_oldest(self) -> None:
        """Drop the chunks that were not used for longest until there is room for another one."""
        with self._lock:
            while self._bytes >= self._max_bytes and len(self._chunks) > 1:
                key, (_, size) = self._chunks.popitem(last=False)
                self._bytes -= size
                del self._used_s[key]

    def recently_used(self) -> dict[Key, float]:
        """The keys of the chunks that were requested of late, the last one first, and when that was."""
        with self._lock:
            used = sorted(self._used_s.items(), key=lambda item: -item[1])
        return {key: used_s for key, used_s in used if used_s > time.monotonic() - RECENT_S}
