"""A child process that does not outlive this process, however this process ends."""

import os
import signal
import subprocess
from pathlib import Path

# Its standard input ends when this process ends. (PR_SET_PDEATHSIG would go by thread, not by process.)
_WATCHDOG = """read -r _; kill "$0"
while [ "$1" -gt 0 ] && kill -0 "$0"; do sleep 1; set -- $(($1 - 1)) "$2"; done
kill -0 "$0" && kill -9 "-$0"
[ -z "$2" ] || rm -rf "$2"
"""


class ChildProcess:
    """A command in a session of its own, so that Ctrl-C in the terminal does not reach it.

    When this process ends without stopping it, a watchdog sends it SIGTERM, kills all processes of its session after
    `grace_s` seconds and removes the directory `leftovers`.
    """

    def __init__(
        self,
        command: list[str],
        log: Path,
        *,
        cwd: Path | None = None,
        grace_s: int = 0,
        leftovers: Path | None = None,
    ) -> None:
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                command, cwd=cwd, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
            )
        self._watchdog = subprocess.Popen(
            ["/bin/sh", "-c", _WATCHDOG, str(self.pid), str(grace_s), str(leftovers or "")],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """The exit code, None while the process runs."""
        return self._process.poll()

    def kill(self) -> None:
        """End it with SIGKILL."""
        self.terminate(signal_number=signal.SIGKILL)

    def terminate(self, timeout_s: float = 15.0, signal_number: signal.Signals = signal.SIGTERM) -> None:
        """End it with SIGTERM, and kill all processes of its session if it does not end in time."""
        self._process.send_signal(signal_number)
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            os.killpg(self.pid, signal.SIGKILL)
            self._process.wait()
        self._watchdog.kill()
        self._watchdog.communicate()


def last_lines(log: Path, count: int = 20) -> str:
    """The last lines of a log, if it exists."""
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    return "\n".join(lines[-count:])
