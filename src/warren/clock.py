"""The two clocks of this machine: the wall clock, which people and NTP set, and a steady one, which nobody can."""

import time
import uuid
from dataclasses import dataclass
from pathlib import Path

# Where there is a clock that counts while the machine is suspended, it is the steady one.
_STEADY = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def _read_boot_id() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return uuid.uuid4().hex  # the readings of this process are comparable with each other alone


_BOOT_ID = _read_boot_id()


@dataclass(frozen=True, slots=True)
class ClockReading:
    """Both clocks at one instant; steady times are comparable between processes and while the boot id is the same."""

    wall_ms: int
    steady_ms: int
    boot_id: str = ""

    @property
    def offset_ms(self) -> int:
        """What to add to a steady time to get the time of the wall clock."""
        return self.wall_ms - self.steady_ms


def steady_ms() -> int:
    """The steady clock: milliseconds since the machine was started."""
    return time.clock_gettime_ns(_STEADY) // 1_000_000


def read_clock() -> ClockReading:
    """Both clocks now."""
    return ClockReading(time.time_ns() // 1_000_000, steady_ms(), _BOOT_ID)
