"""Where groups go, by the routes of the configuration."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from warren.config.outward import Route
from warren.domain.matching import matches_wildcards


@dataclass(frozen=True, slots=True)
class Routed:
    """What the routes come to for many groups at once: whose each is, and of each notifier that a route names, whether
    it hears of the group, and where.
    """

    team: NDArray[np.object_]
    to: dict[str, NDArray[np.bool_]]
    channel: dict[str, NDArray[np.object_]]


def route(routes: Sequence[Route], clusters: pa.Array, groups: pa.Array) -> Routed:
    """Where groups go: the first route that fits and names notifiers is the last that is looked at, unless it says so.

    A route that names no notifiers says whose groups they are, and no more.
    """
    count = len(groups)
    named = {name for one in routes for name in one.notifiers}
    found = Routed(
        np.full(count, "", dtype=object),
        {name: np.zeros(count, dtype=np.bool_) for name in named},
        {name: np.full(count, "", dtype=object) for name in named},
    )
    is_looking = np.ones(count, dtype=np.bool_)
    for one in routes:
        fits = is_looking & matches_wildcards(clusters, one.cluster) & matches_wildcards(groups, one.group)
        found.team[fits & (found.team == "")] = one.team
        for name in one.notifiers:
            found.channel[name][fits & ~found.to[name]] = one.channel
            found.to[name] |= fits
        if one.notifiers and not one.continue_:
            is_looking &= ~fits
    return found
