"""The workload of the demo: its topics, its producers and one consumer group of every kind."""

from dataclasses import dataclass

from warren.demo.workload.committing_groups import AssignOnly, CatchingUp, Rewinding, Slow, Stalled
from warren.demo.workload.consumer_group import ConsumerGroup
from warren.demo.workload.consuming_groups import Bursty, Healthy, Kip848, Pair, Stopped, Transactional
from warren.demo.workload.producer import Producer
from warren.demo.workload.topics import create_topics, fill_topic

_PARTITIONS = {"orders": 3, "payments": 3, "payments-settled": 3, "clicks": 6}
_ORDERS_RATE = 300.0
_ORDERS_BACKLOG = 20_000


@dataclass(frozen=True)
class DemoWorkload:
    """The producers and groups of the demo, not yet started."""

    producers: list[Producer]
    groups: list[ConsumerGroup]


def create_demo_topics(bootstrap: str) -> None:
    """Create the topics of the demo, with enough messages in `orders` for groups to start behind."""
    create_topics(bootstrap, _PARTITIONS)
    fill_topic(bootstrap, "orders", _ORDERS_BACKLOG)


def demo_workload(bootstrap: str) -> DemoWorkload:
    """One group of every kind, with a name that tells how it behaves."""
    orders = bootstrap, "orders"
    producers = [
        Producer(*orders, _ORDERS_RATE),
        Producer(bootstrap, "payments", 60.0),
        Producer(bootstrap, "clicks", 120.0, burst_every_s=2.0),
    ]
    groups: list[ConsumerGroup] = [
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
    return DemoWorkload(producers, groups)
