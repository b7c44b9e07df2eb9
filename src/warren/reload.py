"""Reloads of the configuration: read again when a signal or a request asks for it, applied as a whole or not at all."""

import logging
import time
from collections.abc import Callable, Sequence

from warren.config import Config
from warren.config.changes import changed_sections, with_fixed_keys
from warren.config.findings import Findings
from warren.errors import ConfigError, WarrenError
from warren.snapshot.reloads import ReloadOutcome, write_outcome
from warren.snapshot.requests import PipelineRequest, RequestKind, RequestQueue

log = logging.getLogger(__name__)

ReadConfig = Callable[[], tuple[Config | None, Findings]]
"""Reads and checks the configuration; it is None if there are mistakes among the findings."""


class Reloads:
    """The configuration in use, and how the last reload ended; `apply` changes all parts to another one.

    `apply` raises a WarrenError if that is not possible, and then has changed nothing. After any other error the
    configuration from before is applied again.
    """

    def __init__(self, config: Config, read: ReadConfig, apply: Callable[[Config], None]) -> None:
        self._config = config
        self._read = read
        self._apply = apply
        self._data_dir = config.pipeline.data_dir
        self._requests = RequestQueue(self._data_dir)
        self._is_signalled = False
        self._outcome = ReloadOutcome(_now_ms(), _now_ms())
        # The start has just read the configuration, so requests from before it are done.
        self._finish(self._pending(), self._outcome)

    def signal(self, *_: object) -> None:
        """Reload as soon as possible; safe to be called in the handler of a signal."""
        self._is_signalled = True

    def run_if_asked(self) -> bool:
        """Reload if a signal or requests ask for it, once for all of them; returns whether anything has changed."""
        pending = self._pending()
        if not pending and not self._is_signalled:
            return False
        # A signal that arrives from now on may be about a later change of the file.
        self._is_signalled = False
        outcome = self._reload()
        self._finish(pending, outcome)
        return outcome.is_successful

    def _reload(self) -> ReloadOutcome:
        at_ms = _now_ms()
        try:
            wanted, findings = self._read()
            for warning in findings.warnings:
                log.warning("%s", warning)
            if wanted is None or findings.mistakes:
                return self._refuse(at_ms, findings.mistakes, findings.warnings)
            config, needs_restart = with_fixed_keys(self._config, wanted)
            changed = changed_sections(self._config, config)
            self._apply(config)
        except ConfigError as error:
            return self._refuse(at_ms, error.mistakes)
        except WarrenError as error:
            return self._refuse(at_ms, [str(error)])
        except Exception as error:
            log.exception("a reload of the configuration failed halfway")
            return self._refuse(at_ms, [f"{type(error).__name__}: {error}", *self._undo()])
        self._config = config
        log.info("the configuration was reloaded: %s", ", ".join(changed) or "no section has changed")
        for key in needs_restart:
            log.warning("%s", key)
        return ReloadOutcome(at_ms, at_ms, (), findings.warnings, changed, needs_restart)

    def _undo(self) -> list[str]:
        """Apply the configuration from before again; gives what is wrong if that fails."""
        try:
            self._apply(self._config)
        except Exception:
            log.exception("the configuration from before cannot be applied again")
            return ["some parts use the new configuration and others the one from before: restart Warren"]
        return []

    def _refuse(self, at_ms: int, mistakes: Sequence[str], warnings: Sequence[str] = ()) -> ReloadOutcome:
        log.error("the configuration was not reloaded, the one from before stays in use: %s", "; ".join(mistakes))
        return ReloadOutcome(at_ms, self._outcome.applied_ms, mistakes, warnings)

    def _finish(self, pending: list[PipelineRequest], outcome: ReloadOutcome) -> None:
        self._outcome = outcome
        try:
            write_outcome(self._data_dir, outcome)
        except OSError as error:
            log.error("the outcome of a reload cannot be stored: %s", error)
        # Whoever waits for the end of a request then finds the outcome.
        self._requests.remove(request.id for request in pending)

    def _pending(self) -> list[PipelineRequest]:
        return [request for request in self._requests.pending() if request.kind is RequestKind.RELOAD]


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
