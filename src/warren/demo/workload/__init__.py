"""Producers and consumer groups with a defined behaviour, for the demo and the tests."""

from warren.demo.workload.committing_groups import AssignOnly, CatchingUp, Rewinding, Slow, Stalled
from warren.demo.workload.consumer_group import ConsumerGroup
from warren.demo.workload.consuming_groups import Bursty, Healthy, Kip848, Pair, Stopped
from warren.demo.workload.producer import Producer
from warren.demo.workload.thread import WorkloadThread, stop_all
from warren.demo.workload.topics import create_topics, fill_topic, heads
from warren.demo.workload.transactional_group import Transactional

__all__ = [
    "AssignOnly",
    "Bursty",
    "CatchingUp",
    "ConsumerGroup",
    "Healthy",
    "Kip848",
    "Pair",
    "Producer",
    "Rewinding",
    "Slow",
    "Stalled",
    "Stopped",
    "Transactional",
    "WorkloadThread",
    "create_topics",
    "fill_topic",
    "heads",
    "stop_all",
]
