"""Who listens: notifiers of the configuration, the groups each wants to hear of, and what the routes say of them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from warren.config import Notifier, Route, route
from warren.domain.filters import accepts
from warren.domain.incidents import Listener
from warren.domain.rules import Status
from warren.notify.results import Name

KNOWN_MOST = 200_000


@dataclass(frozen=True, slots=True)
class Audience:
    """A listener and whom it listens to."""

    listener: Listener
    allowlist: str | None = None
    denylist: str | None = None


@dataclass(frozen=True, slots=True)
class Hearing:
    """Who hears of a group, whose group it is, and where it is told to whom has several places."""

    listeners: Sequence[Listener] = ()
    team: str = ""
    channels: Mapping[str, str] = field(default_factory=dict)


class Audiences:
    """All listeners; which of them a group has is looked up once, for many groups at a time."""

    def __init__(self, audiences: Iterable[Audience] = (), routes: Sequence[Route] = ()) -> None:
        self._audiences = tuple(audiences)
        self._routes = tuple(routes)
        self._known: dict[Name, Hearing] = {}
        self.listeners = {one.listener.name: one.listener for one in self._audiences}
        self.wants_good = any(one.listener.threshold <= Status.OK for one in self._audiences)

    def of(self, names: Iterable[Name]) -> Mapping[Name, Hearing]:
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
            is_wanted = accepts(groups, one.allowlist, one.denylist)
            # Whom no route names hears of everything, as without routes.
            is_wanted &= routed.to.get(one.listener.name, np.bool_(True))
            wanted.append((one.listener, is_wanted.tolist()))
        for place, name in enumerate(new):
            listeners = tuple(listener for listener, is_wanted in wanted if is_wanted[place])
            channels = {one.name: routed.channel[one.name][place] for one in listeners if one.name in routed.channel}
            self._known[name] = Hearing(listeners, routed.team[place], channels)


def to_audience(notifier: Notifier) -> Audience:
    """A notifier's wishes."""
    seconds = notifier.interval if notifier.send_interval is None else notifier.send_interval
    listener = Listener(
        notifier.name,
        threshold=Status(notifier.threshold),
        send_interval_ms=seconds * 1000,
        is_once=notifier.send_once,
        wants_close=notifier.wants_close,
        must_repeat=notifier.class_name == "alertmanager",
        storm_from=notifier.storm_from,
    )
    return Audience(listener, notifier.group_allowlist, notifier.group_denylist)
