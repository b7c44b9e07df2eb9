"""Who plays in the demo: topics, producers and a consumer group of every kind."""

from collections.abc import Sequence
from dataclasses import dataclass

from warren.demo.workload.behaviour import Behaviour
from warren.demo.workload.committers import AssignOnly, CatchingUp, Rewinding, Slow, Stalled
from warren.demo.workload.producer import Producer
from warren.demo.workload.readers import Bursty, Healthy, Kip848, Pair, Stopped
from warren.demo.workload.topics import create_topics, fill_topic
from warren.demo.workload.transactional import Transactional

_PARTITIONS = {"orders": 3, "payments": 3, "payments-settled": 3, "clicks": 6}
_ORDERS_RATE = 300.0
_ORDERS_BEFORE = 20_000


@dataclass(frozen=True)
class Cast:
    """The producers and groups of a workload, not yet started."""

    producers: Sequence[Producer]
    groups: Sequence[Behaviour]


def prepare_topics(bootstrap: str, *, replication: int = 1) -> None:
    """Make the demo's topics, with enough in `orders` for groups to be behind from the start."""
    create_topics(bootstrap, _PARTITIONS, replication=replication)
    fill_topic(bootstrap, "orders", _ORDERS_BEFORE)


def demo_cast(bootstrap: str) -> Cast:
    """A group of every kind; each name says how it behaves."""
    orders = bootstrap, "orders"
    producers = [
        Producer(*orders, _ORDERS_RATE),
        Producer(bootstrap, "payments", 60.0),
        Producer(bootstrap, "clicks", 120.0, burst_every_s=2.0),
    ]
    groups: list[Behaviour] = [
        Healthy(*orders, "billing-healthy"),
        Healthy(*orders, "search-healthy-fast-commits", commit_every_s=0.2),
        Healthy(bootstrap, "clicks", "reports-healthy-rare-commits", commit_every_s=15.0),
        Slow(*orders, "recommendations-slow", produced_rate=_ORDERS_RATE, fraction=0.8, behind=1_000),
        Slow(*orders, "ledger-1-percent-slow", produced_rate=_ORDERS_RATE, fraction=0.99, behind=1_000),
        Stalled(*orders, "email-stalled", behind=500),
        Stopped(*orders, "export-stopped", healthy_s=15.0),
        Rewinding(*orders, "fraud-rewinding"),
        CatchingUp(*orders, "backup-catching-up", produced_rate=_ORDERS_RATE, behind=15_000),
        Bursty(bootstrap, "clicks", "metrics-bursty-commits"),
        Transactional(bootstrap, "payments", "settlement-transactional", output="payments-settled"),
        Kip848(*orders, "pricing-new-protocol"),
        AssignOnly(bootstrap, "payments", "mirror-assign-only"),
        Pair(*orders, "inventory-pair"),
    ]
    return Cast(producers, groups)
