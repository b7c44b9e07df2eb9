"""Reads the offsets of one consumer section from ZooKeeper, and follows their changes by watches.

Each read sets a watch that fires once. A znode that has changed is read again when its turn comes, and only then its
watch is set again. So however often a znode changes, the ensemble is never asked for more than `max_rate` a second.

    watch fires ─► queue ─► read, at most max_rate per second ─► change ─► sample of the next cycle

One thread does everything; the client's threads only put into its inbox what they hear of.
"""

import logging
import queue
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from time import monotonic
from typing import Any

import pyarrow as pa
from kazoo.exceptions import (
    AuthFailedError,
    ConnectionClosedError,
    ConnectionLoss,
    NoAuthError,
    NoNodeError,
    SessionExpiredError,
)
from kazoo.protocol.states import Callback, KazooState, WatchedEvent, ZnodeStat

from warren.clock import steady_ms
from warren.config.secrets import revealed
from warren.domain.matching import is_wanted
from warren.errors import WarrenError
from warren.kafka.samples import to_table
from warren.sources.zookeeper.layouts import NodeKind, ZnodeReject
from warren.sources.zookeeper.request_rate import RequestRate
from warren.sources.zookeeper.samples import NOTHING_SEEN, Ack, ReadTarget, Seen, ZooKeeperSample
from warren.sources.zookeeper.session import new_client
from warren.sources.zookeeper.tree import Tree

log = logging.getLogger(__name__)

PROBE_S = 1.0
MAX_IN_FLIGHT = 200
_RETRY_S = 5.0
_CONNECTION_ERRORS = (AuthFailedError, ConnectionClosedError, ConnectionLoss, SessionExpiredError)
_NAMES = pa.schema([("name", pa.string())])


class ZooKeeperReader:
    """Follows the offsets of one section until it is closed."""

    def __init__(self, target: ReadTarget, send: Callable[[int, ZooKeeperSample], None]) -> None:
        self._target = target
        self._send = send
        self._root = target.layout.root
        self._inbox: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._is_closed = False
        self._error: str | None = self._unreachable
        self._denied: str | None = None
        self._connections = 0
        self._in_flight = 0
        self._rate = RequestRate(target.max_rate)
        self._next_probe = self._connect_at = 0.0
        self._start_over("")
        self._client: Any = None
        self._thread = threading.Thread(target=self._run, name=f"zookeeper {target.section}", daemon=True)
        self._thread.start()

    @property
    def _unreachable(self) -> str:
        return f"ZooKeeper at {', '.join(self._target.servers)} cannot be reached"

    def request(self, request_id: int, ack: Ack | None) -> None:
        """Send a sample of all that is newer than what was acknowledged."""
        self._inbox.put(partial(self._sample, request_id, ack))

    def close(self) -> None:
        """End the session; the thread ends by itself."""
        self._is_closed = True
        self._inbox.put(lambda: None)

    def _start_over(self, tree_id: str) -> None:
        """Forget everything: nothing has been read yet, or another root is in the place of the one that was read."""
        keep = self._keep_groups
        self._tree = Tree(self._target.layout, keep, self._target.intervals, self._target.min_distance_ms)
        self._tree_id = tree_id
        self._seen = self._marked = NOTHING_SEEN
        self._pending: dict[str, Seen] = {}
        """The znodes that have to be read, each with what had been seen for certain before it changed."""
        self._queues: tuple[deque[str], deque[str]] = (deque(), deque())
        self._queued: set[str] = set()
        self._unscanned: set[str] = set()
        """The znodes that have to be read because nothing is watched after a new connection."""

    def _keep_groups(self, names: Sequence[str]) -> list[str]:
        groups = to_table(_NAMES, [(name,) for name in names])["name"].combine_chunks()
        wanted = is_wanted(groups, (self._target.filter,), self._target.storage_filter)
        return [name for name, is_kept in zip(names, wanted.tolist(), strict=True) if is_kept]

    def _run(self) -> None:
        while not self._is_closed:
            try:
                if self._client is None and self._connect_at <= monotonic():
                    self._connect()
                self._send_requests()
                self._inbox.get(timeout=self._wait_s())()
                for _ in range(self._inbox.qsize()):
                    self._inbox.get_nowait()()
            except queue.Empty:
                pass
            except WarrenError as error:  # a secret that cannot be read
                self._error, self._connect_at = str(error), monotonic() + _RETRY_S
            except Exception:
                log.exception("%s: reading ZooKeeper", self._target.section)
        if self._client is not None:
            self._client.stop()
            self._client.close()

    def _connect(self) -> None:
        target = self._target
        credentials = f"{target.username}:{revealed(target.password)}" if target.username else None
        self._client = new_client(target.servers, target.timeout_s, target.tls, credentials)
        self._client.add_listener(lambda state: self._inbox.put(partial(self._state_changed, state)))
        self._client.start_async()

    def _state_changed(self, state: str) -> None:
        self._in_flight = 0
        self._connections += 1
        if state != KazooState.CONNECTED:
            self._error = self._unreachable
            return
        self._error = None
        # No watch outlives a connection: everything is read again.
        for paths in self._queues:
            paths.clear()
        self._queued.clear()
        self._pending = {}
        self._scan([self._root], self._seen)

    def _scan(self, paths: Sequence[str], before: Seen) -> None:
        self._unscanned.update(paths)
        for path in paths:
            self._enqueue(path, before)

    # Reading, at a bounded rate

    def _wait_s(self) -> float:
        has_work = any(self._queues) and self._in_flight < MAX_IN_FLIGHT and self._error is None
        until_probe_s = max(self._next_probe - monotonic(), 0.001)
        return min(self._rate.wait_s(), until_probe_s) if has_work else until_probe_s

    def _send_requests(self) -> None:
        if self._next_probe <= monotonic():
            self._next_probe = monotonic() + PROBE_S
            if self._error is None:
                self._probe()
                if self._denied:
                    self._enqueue(self._root)
        directories, values = self._queues
        while self._error is None and any(self._queues) and self._in_flight < MAX_IN_FLIGHT and self._rate.is_allowed():
            path = (directories or values).popleft()
            self._queued.discard(path)
            znode = self._tree.get(path)
            if znode is None:  # it was removed with its parent
                self._pending.pop(path, None)
                self._unscanned.discard(path)
            elif znode.kind == NodeKind.DIRECTORY:
                self._request(self._client.get_children_async(path, self._watch, include_data=True), path, self._listed)
            else:
                self._request(self._client.get_async(path, self._watch), path, self._read)

    def _request(self, result: Any, path: str, take: Callable[[str, Any], None]) -> None:  # noqa: ANN401 - of kazoo
        self._in_flight += 1
        self._rate.count()
        connection = self._connections
        result.rawlink(lambda answer: self._inbox.put(partial(self._answered, connection, path, take, answer)))

    def _answered(self, connection: int, path: str, take: Callable[[str, Any], None], answer: Any) -> None:  # noqa: ANN401
        if connection != self._connections:
            return
        self._in_flight -= 1
        error, now_ms = answer.exception, steady_ms()
        if isinstance(error, NoNodeError):
            self._tree.remove(path, now_ms)
            if path == self._root:
                self._request(self._client.exists_async(path, self._watch), path, self._root_checked)
                return
        elif isinstance(error, _CONNECTION_ERRORS):
            return  # which is reported by itself
        elif error is not None:
            is_denied = isinstance(error, NoAuthError)
            if path == self._root:
                why = "check username and password" if is_denied else repr(error)
                self._denied = f"ZooKeeper does not allow {path} to be read: {why}"
                return
            self._tree.refuse(path, ZnodeReject.NO_RIGHT if is_denied else ZnodeReject.UNREADABLE, now_ms)
        else:
            take(path, answer.value)
        if path not in self._queued:
            self._pending.pop(path, None)
        self._unscanned.discard(path)

    def _root_checked(self, path: str, stat: ZnodeStat | None) -> None:
        if stat is not None:
            self._enqueue(path)

    def _listed(self, path: str, answer: tuple[list[str], ZnodeStat]) -> None:
        names, stat = answer
        if path == self._root:
            tree_id = f"{stat.czxid:x}-{stat.ctime}"
            if self._tree_id not in ("", tree_id):
                log.warning("%s: %s was deleted and created again", self._target.section, path)
                self._start_over(tree_id)
                self._pending[path] = NOTHING_SEEN
                self._unscanned.add(path)
            self._tree_id, self._denied = tree_id, None
        if self._tree.get(path) is None:
            return
        before = self._pending.get(path, self._marked)
        new, known = self._tree.list_children(path, names, steady_ms())
        if path in self._unscanned:
            self._scan([*new, *known], before)
        else:
            for child in new:
                self._enqueue(child, before)

    def _read(self, path: str, answer: tuple[bytes, ZnodeStat]) -> None:
        data, stat = answer
        if self._tree.get(path) is not None:
            self._tree.set_value(path, data, stat.mzxid, stat.mtime, steady_ms())

    def _enqueue(self, path: str, before: Seen | None = None) -> None:
        self._pending.setdefault(path, self._marked if before is None else before)
        if path not in self._queued:
            znode = self._tree.get(path)
            self._queued.add(path)
            self._queues[0 if znode is None or znode.kind == NodeKind.DIRECTORY else 1].append(path)

    # What has been seen for certain

    def _watch(self, event: WatchedEvent) -> None:
        if event.path is not None:
            self._inbox.put(partial(self._changed, event.path))

    def _changed(self, path: str) -> None:
        if self._tree.get(path) is not None:
            self._enqueue(path)

    def _probe(self) -> None:
        """Ask for the root: what has changed before that was reported before the answer."""
        connection, asked_ms, client = self._connections, steady_ms(), self._client
        self._rate.count()

        def answered(answer: Any) -> None:  # noqa: ANN401
            if answer.exception is None:
                # Through the queue of the watches: whatever is in it by now is in the inbox before the mark.
                marked = partial(self._mark, connection, Seen(client.last_zxid, asked_ms))
                client.handler.dispatch_callback(Callback("watch", lambda: self._inbox.put(marked), ()))

        client.exists_async(self._root).rawlink(answered)

    def _mark(self, connection: int, seen: Seen) -> None:
        if connection == self._connections:
            self._marked = seen
            self._seen = min([seen, *self._pending.values()])

    def _sample(self, request_id: int, ack: Ack | None) -> None:
        tree, is_listed, error = self._tree, self._seen != NOTHING_SEEN, self._error or self._denied
        is_known = tree.is_mine(ack)
        if ack is not None and is_known:
            tree.acknowledge(ack.version)
        sample = ZooKeeperSample(
            self._target.section,
            tree.instance,
            error,
            znodes=len(tree) - 1,
            pending=len(self._pending),
            requests=self._rate.total,
        )
        if is_listed:
            groups = tree.changed_owner_groups() if is_known else tuple(tree.groups())
            sample = replace(
                sample,
                is_listed=True,
                tree_id=self._tree_id,
                seen=self._seen,
                changes=tree.changes(),
                rejects=tree.rejects(),
                owners=tree.owners(groups),
                owner_groups=groups,
                listing=None if is_known else tree.listing(),
                version=tree.version,
            )
        self._send(request_id, sample)
