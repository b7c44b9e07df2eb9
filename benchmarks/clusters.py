"""How fresh healthy clusters are beside faulty ones: of 20 clusters five are replaced by faulty ones.

    python -m benchmarks.clusters [--clusters 20] [--cycles 12] [--trigger 5]

One is unreachable, one takes 500 ms longer for each request, one closes every connection, one refuses the password (TLS
and SCRAM), and one goes away and comes back every few cycles. The others are offsets topics of one broker, whose groups
commit all the time. The age of a cluster is the time from its sample to the snapshot with what was read up to then; the
gap is from snapshot to snapshot.
"""

import argparse
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from functools import partial
from itertools import pairwise
from pathlib import Path

from benchmarks.conditions import show
from benchmarks.load import commits, make_topic, produce
from tests.kit.proxies import Proxy, proxied_listeners
from tests.kit.secured import SCRAM, SecuredKafka, new_password
from tests.kit.secured_sections import profile_sections
from tests.kit.warrens import Sections, WarrenRun, sections_for, wait_for
from warren.demo.broker import Kafka, free_ports
from warren.errors import SnapshotError
from warren.snapshot.manifest import Manifest

DELAY_S = 0.5
FAULTY = ("denied", "flapping", "refusing", "slow", "unreachable")
GROUPS, OFFSETS_PARTITIONS = 10, 4
WARM_UP = 6
PATIENCE_S = 600.0


def main() -> None:
    """One Warren with healthy clusters, then one in which some are faulty; a row for each, and their ratio."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--clusters", type=int, default=20)
    parser.add_argument("--cycles", type=int, default=12)
    parser.add_argument("--trigger", type=float, default=5.0)
    options = parser.parse_args()
    names = [f"c{number:02d}" for number in range(options.clusters - len(FAULTY))]
    with ExitStack() as parts:
        folder = Path(parts.enter_context(tempfile.TemporaryDirectory()))
        slow, flapping, refusing = (parts.enter_context(Proxy()) for _ in range(3))
        slow.delay_s = DELAY_S
        refusing.close()
        kafka = parts.enter_context(_broker(slow, flapping))
        secured = parts.enter_context(SecuredKafka(folder / "secured"))
        for name in (*names, *FAULTY):
            make_topic(kafka.bootstrap, _topic(name), OFFSETS_PARTITIONS)
        committing = partial(commit_all_the_time, kafka.bootstrap, [*names, *FAULTY], options.trigger)
        parts.enter_context(in_background(committing))
        healthy = dict.fromkeys((*names, *FAULTY), kafka.bootstrap)
        faulty = {
            **healthy,
            "slow": slow.address,
            "flapping": flapping.address,
            "refusing": refusing.address,
            "unreachable": "127.0.0.1:1",
            "denied": secured.bootstrap_of(SCRAM),
        }
        wrong_password = _with_profile("denied", profile_sections(secured, SCRAM, new_password()))
        rows = []
        for title, clusters, more in (("healthy", healthy, {}), ("faulty", faulty, wrong_password)):
            flaps = in_background(partial(flap, flapping, 3 * options.trigger)) if title == "faulty" else nullcontext()
            with flaps, WarrenRun(folder / title, _sections(clusters, more, options.trigger)) as run:
                rows.append({"clusters": title, **measure(run, names, options.cycles)})
            print(rows[-1], flush=True)
        ratio = {key: round(rows[1][key] / rows[0][key], 2) for key in rows[0] if key.endswith("_s") and rows[0][key]}  # type: ignore[operator]
        rows.append({"clusters": "ratio", **dict.fromkeys(rows[0].keys() - {"clusters"}, ""), **ratio})
        show("clusters", [{key: row[key] for key in rows[0]} for row in rows])


def _broker(slow: Proxy, flapping: Proxy) -> Kafka:
    """A broker with listeners behind the proxies, which clients stay with because they are the advertised ones."""
    ports, behind = free_ports(), free_ports()
    slow.target, flapping.target = behind
    listeners = proxied_listeners(*ports, SLOW=(behind[0], slow.port), FLAPPING=(behind[1], flapping.port))
    return Kafka(fast_start=False, memory="1g", ports=ports, config=listeners)


def _topic(cluster: str) -> str:
    return f"offsets-{cluster}"


def _sections(clusters: Mapping[str, str], more: Sections, trigger: float) -> Sections:
    sections = sections_for(clusters, trigger=trigger)
    for name in clusters:
        sections[f"consumer.{name}"]["offsets-topic"] = _topic(name)
    for title, keys in more.items():
        sections[title] = {**sections.get(title, {}), **keys}
    sections["pipeline"] = {"trigger": trigger, "driver-memory": "2g"}
    return sections


def _with_profile(cluster: str, profile: Sections) -> Sections:
    """The sections of a profile, and what names it in those of a cluster."""
    name = next(title for title in profile if title.startswith("client-profile.")).partition(".")[2]
    return {**profile, **{f"{kind}.{cluster}": {"client-profile": name} for kind in ("cluster", "consumer")}}


@contextmanager
def in_background(run: Callable[[threading.Event], None]) -> Iterator[None]:
    """Run something in a thread until the block ends, which sets the event."""
    stop = threading.Event()
    thread = threading.Thread(target=run, args=(stop,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def commit_all_the_time(bootstrap: str, clusters: list[str], every_s: float, stop: threading.Event) -> None:
    """Groups of every cluster commit, each about twice in so many seconds."""
    turn = 0
    while not stop.is_set():
        for name in clusters:
            records = commits(range(GROUPS), range(turn, turn + 1), 500, OFFSETS_PARTITIONS, _now_ms(), 1)
            produce(bootstrap, _topic(name), records)
            # Spread over the time between two cycles, so that every cycle finds new commits.
            stop.wait(every_s / len(clusters) / 2)
        turn += 1


def flap(proxy: Proxy, every_s: float, stop: threading.Event) -> None:
    """Close and open a proxy in turns."""
    while not stop.wait(every_s):
        proxy.close()
        stop.wait(every_s)
        proxy.open()


def measure(run: WarrenRun, names: list[str], cycles: int) -> dict[str, object]:
    """The ages of the clusters that are never faulty, and the gaps, over some cycles."""
    published: dict[int, tuple[float, Manifest]] = {}

    def look(enough: int) -> bool:
        try:
            newest = run.store.newest()
        except SnapshotError:
            return False
        published.setdefault(newest.sequence, (time.time(), newest))
        return len(published) >= enough

    wait_for(lambda: look(1) and not set(names) & set(run.store.newest().unknown_clusters()), "a start", PATIENCE_S)
    wait_for(lambda: look(WARM_UP), "cycles", PATIENCE_S)
    published.clear()
    wait_for(lambda: look(cycles + 1), "cycles", PATIENCE_S)
    seen = [published[sequence] for sequence in sorted(published)]
    ages = [at_s - m.clusters[name].looked_at_ms / 1000 for at_s, m in seen for name in names]
    gaps = [(after.now_ms - before.now_ms) / 1000 for (_, before), (_, after) in pairwise(seen)]
    last = seen[-1][1]
    return {
        "cycle_s": _median_s(sum(m.cycle_ms.values()) for _, m in seen),
        **{f"{stage}_s": _median_s(m.cycle_ms.get(stage, 0) for _, m in seen) for stage in seen[-1][1].cycle_ms},
        "gap_s": round(statistics.median(gaps), 2),
        "slowest_gap_s": round(max(gaps), 2),
        "age_s": round(statistics.median(ages), 2),
        "oldest_s": round(max(ages), 2),
        "unknown": " ".join(last.unknown_clusters()),
        "denied": last.clusters["denied"].error or "",
    }


def _median_s(times_ms: Iterable[int]) -> float:
    return round(statistics.median(times_ms) / 1000, 2)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


if __name__ == "__main__":
    main()
