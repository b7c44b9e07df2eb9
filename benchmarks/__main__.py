"""`python -m benchmarks [catch_up|cycle|...]`: run all benchmarks, or the named ones."""

import subprocess
import sys

ALL = (
    "start",
    "catch_up",
    "cycle",
    "clusters",
    "heads",
    "time_lag",
    "serve",
    "page",
    "notify",
    "sinks",
    "lake",
    "rules",
    "zookeeper",
    "znode_to_verdict",
)


def main() -> int:
    """Each benchmark in a process of its own, so that none warms up another."""
    wanted = sys.argv[1:] or ALL
    return max(subprocess.run([sys.executable, "-m", f"benchmarks.{name}"], check=False).returncode for name in wanted)


if __name__ == "__main__":
    sys.exit(main())
