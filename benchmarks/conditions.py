"""What a number was measured on, printed beside it."""

import json
import os
import platform
from pathlib import Path

import pyspark


def conditions() -> dict[str, object]:
    """The machine and what else ran on it."""
    memory = next(line for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith("MemTotal"))
    return {
        "cores": os.cpu_count(),
        "memory_gib": round(int(memory.split()[1]) / 2**20),
        "python": platform.python_version(),
        "pyspark": pyspark.__version__,
        "load_before": round(os.getloadavg()[0], 1),
        "beside": "the broker on the same cores",
    }


def peak_mib(process_id: int) -> int:
    """The most memory a process has held."""
    status = Path(f"/proc/{process_id}/status").read_text().splitlines()
    return next(int(line.split()[1]) // 1024 for line in status if line.startswith("VmHWM"))


def workers_mib() -> int:
    """The memory of all Python workers of this process's Spark, together."""
    return sum(peak_mib(process) for process in _workers())


def _workers() -> list[int]:
    """The Python workers of the Spark of this process, not those of others on the machine."""
    parents, workers = {}, []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit():
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                if b"pyspark.worker" in (entry / "cmdline").read_bytes():
                    workers.append(int(entry.name))
        except OSError:
            continue
    return [worker for worker in workers if os.getpid() in _ancestors(worker, parents)]


def _ancestors(process_id: int, parents: dict[int, int]) -> list[int]:
    return [process_id, *_ancestors(parents[process_id], parents)] if process_id in parents else []


def cpu_s(process_id: int) -> float:
    """Processor time that a process and its ended children have used: what a busy machine cannot distort."""
    fields = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()
    return sum(int(ticks) for ticks in fields[11:15]) / os.sysconf("SC_CLK_TCK")


def workers_cpu_s() -> float:
    """Processor time of all Python workers."""
    return sum(cpu_s(process) for process in _workers())


def show(name: str, rows: list[dict[str, object]]) -> None:
    """A table for people and one line of JSON for machines."""
    columns = list(rows[0])
    widths = [max(len(c), *(len(str(r[c])) for r in rows)) for c in columns]
    print("  ".join(c.ljust(w) for c, w in zip(columns, widths, strict=True)))
    for row in rows:
        print("  ".join(str(row[c]).ljust(w) for c, w in zip(columns, widths, strict=True)))
    print(json.dumps({"benchmark": name, "conditions": conditions(), "rows": rows}), flush=True)
