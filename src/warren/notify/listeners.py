"""Who listens: notifiers of the configuration, with the groups each of them wants to hear of."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from warren.config import Notifier
from warren.domain.filters import accepts
from warren.domain.incidents import Listener
from warren.domain.rules import Status


@dataclass(frozen=True, slots=True)
class Audience:
    """A listener and whom it listens to."""

    listener: Listener
    allowlist: str | None = None
    denylist: str | None = None


class Audiences:
    """All listeners; which of them a group has is looked up once, for many groups at a time."""

    def __init__(self, audiences: Iterable[Audience] = ()) -> None:
        self._audiences = tuple(audiences)
        self._known: dict[str, tuple[Listener, ...]] = {}
        self.wants_good = any(one.listener.threshold <= Status.OK for one in self._audiences)

    def of(self, groups: Iterable[str]) -> Mapping[str, Sequence[Listener]]:
        """Who wants to hear of each of these groups."""
        new = sorted({group for group in groups if group not in self._known})
        names = pa.array(new, pa.string())
        wanted = [accepts(names, one.allowlist, one.denylist) for one in self._audiences]
        for place, group in enumerate(new):
            self._known[group] = tuple(
                one.listener for one, is_wanted in zip(self._audiences, wanted, strict=True) if is_wanted[place]
            )
        return self._known


def to_audience(notifier: Notifier) -> Audience:
    """A notifier's wishes."""
    seconds = notifier.interval if notifier.send_interval is None else notifier.send_interval
    listener = Listener(
        notifier.name,
        threshold=Status(notifier.threshold),
        send_interval_ms=seconds * 1000,
        is_once=notifier.send_once,
        wants_close=notifier.wants_close,
    )
    return Audience(listener, notifier.group_allowlist, notifier.group_denylist)
