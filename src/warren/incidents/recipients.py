"""Who listens: notifiers of the configuration, the groups each wants to hear of, and what the routes say of them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from warren.config import Notifier, Route
from warren.domain.matching import matches_lists
from warren.domain.status import Status
from warren.incidents.model import NotifierPolicy
from warren.incidents.routing import route
from warren.snapshot.status import Name

KNOWN_MOST = 200_000


@dataclass(frozen=True, slots=True)
class NotifierFilter:
    """A listener and whom it listens to."""

    listener: NotifierPolicy
    allowlist: str | None = None
    denylist: str | None = None


@dataclass(frozen=True, slots=True)
class Recipients:
    """Who hears of a group, whose group it is, and where it is told to whom has several places."""

    listeners: Sequence[NotifierPolicy] = ()
    team: str = ""
    channels: Mapping[str, str] = field(default_factory=dict)


class NotificationRouter:
    """All listeners; which of them a group has is looked up once, for many groups at a time."""

    def __init__(self, audiences: Iterable[NotifierFilter] = (), routes: Sequence[Route] = ()) -> None:
        self._audiences = tuple(audiences)
        self._routes = tuple(routes)
        self._known: dict[Name, Recipients] = {}
        self.listeners = {one.listener.name: one.listener for one in self._audiences}
        self.wants_good = any(one.listener.threshold <= Status.OK for one in self._audiences)

    def of(self, names: Iterable[Name]) -> Mapping[Name, Recipients]:
        """Who wants to hear of each of these groups."""
        if len(self._known) > KNOWN_MOST:
            self._known = {}
        new = sorted({name for name in names if name not in self._known})
        if new:
            self._learn(new)
        return self._known

    def _learn(self, new: Sequence[Name]) -> None:
        groups = pa.array([group for _, group in new], pa.string())
        routed = route(self._routes, pa.array([cluster for cluster, _ in new], pa.string()), groups)
        wanted = []
        for one in self._audiences:
            is_wanted = matches_lists(groups, one.allowlist, one.denylist)
            # Whom no route names hears of everything, as without routes.
            is_wanted &= routed.to.get(one.listener.name, np.bool_(True))
            wanted.append((one.listener, is_wanted.tolist()))
        for place, name in enumerate(new):
            listeners = tuple(listener for listener, is_wanted in wanted if is_wanted[place])
            channels = {one.name: routed.channel[one.name][place] for one in listeners if one.name in routed.channel}
            self._known[name] = Recipients(listeners, routed.team[place], channels)


def to_notifier_filter(notifier: Notifier) -> NotifierFilter:
    """A notifier's wishes."""
    seconds = notifier.interval if notifier.send_interval is None else notifier.send_interval
    listener = NotifierPolicy(
        notifier.name,
        threshold=Status(notifier.threshold),
        send_interval_ms=seconds * 1000,
        is_once=notifier.send_once,
        wants_close=notifier.wants_close,
        must_repeat=notifier.class_name == "alertmanager",
        storm_from=notifier.storm_from,
    )
    return NotifierFilter(listener, notifier.group_allowlist, notifier.group_denylist)
