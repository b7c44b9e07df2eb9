"""Routing: the recipients of each group, by the filters of notifiers and the routes of the configuration."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from warren.config import Notifier, Route
from warren.domain.matching import matches_lists, matches_wildcards
from warren.domain.status import Status
from warren.incidents.model import to_columns
from warren.snapshot.status import GroupName

MAX_CACHED_GROUPS = 200_000


@dataclass(frozen=True, slots=True)
class RouteMatches:
    """What the routes give for many groups: the team of each, and by notifier whether it is routed and to where."""

    team: NDArray[np.object_]
    is_routed: dict[str, NDArray[np.bool_]]
    channel: dict[str, NDArray[np.object_]]


def match_routes(routes: Sequence[Route], clusters: pa.Array, groups: pa.Array) -> RouteMatches:
    """Match groups with the routes, in order.

    A group stops at the first route that matches and names notifiers, unless that route has `continue`. A route that
    names no notifiers only sets the team.
    """
    count = len(groups)
    named = {name for route in routes for name in route.notifiers}
    matches = RouteMatches(
        np.full(count, "", dtype=object),
        {name: np.zeros(count, dtype=np.bool_) for name in named},
        {name: np.full(count, "", dtype=object) for name in named},
    )
    is_open = np.ones(count, dtype=np.bool_)
    for route in routes:
        is_match = is_open & matches_wildcards(clusters, route.cluster) & matches_wildcards(groups, route.group)
        matches.team[is_match & (matches.team == "")] = route.team
        for name in route.notifiers:
            matches.channel[name][is_match & ~matches.is_routed[name]] = route.channel
            matches.is_routed[name] |= is_match
        if route.notifiers and not route.continue_:
            is_open &= ~is_match
    return matches


@dataclass(frozen=True, slots=True)
class Recipients:
    """The notifiers of a group, the team that owns it, and by notifier the channel that a route sets."""

    notifiers: Sequence[Notifier] = ()
    team: str = ""
    channels: Mapping[str, str] = field(default_factory=dict)


class NotificationRouter:
    """Gives the recipients of groups; routes many groups at a time and caches the result."""

    def __init__(self, notifiers: Iterable[Notifier] = (), routes: Sequence[Route] = ()) -> None:
        self.notifiers = {notifier.name: notifier for notifier in notifiers}
        self._routes = routes
        self._cache: dict[GroupName, Recipients] = {}
        self.reports_ok_groups = any(notifier.threshold <= Status.OK for notifier in self.notifiers.values())

    def recipients_of(self, names: Iterable[GroupName]) -> Mapping[GroupName, Recipients]:
        """The recipients of these groups, and of others that were asked for before."""
        if len(self._cache) > MAX_CACHED_GROUPS:
            self._cache = {}
        new = sorted({name for name in names if name not in self._cache})
        if new:
            self._route(new)
        return self._cache

    def _route(self, names: Sequence[GroupName]) -> None:
        clusters, groups = to_columns(names)
        matches = match_routes(self._routes, clusters, groups)
        accepted = {
            # A notifier that no route names is notified of every group, as without routes.
            name: matches_lists(groups, notifier.group_allowlist, notifier.group_denylist)
            & matches.is_routed.get(name, np.bool_(True))
            for name, notifier in self.notifiers.items()
        }
        for index, group in enumerate(names):
            notifiers = tuple(notifier for name, notifier in self.notifiers.items() if accepted[name][index])
            channels = {name: channel[index] for name, channel in matches.channel.items()}
            self._cache[group] = Recipients(notifiers, matches.team[index], channels)
