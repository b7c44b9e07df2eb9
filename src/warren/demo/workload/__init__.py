"""Producers and consumer groups that behave on command, for the demo and the tests."""

from warren.demo.workload.behaviour import Behaviour
from warren.demo.workload.committers import AssignOnly, CatchingUp, Rewinding, Slow, Stalled
from warren.demo.workload.producer import Producer
from warren.demo.workload.readers import Bursty, Healthy, Kip848, Pair, Stopped
from warren.demo.workload.topics import create_topics, fill_topic, heads
from warren.demo.workload.transactional import Transactional
from warren.demo.workload.worker import Worker, stop_all

__all__ = [
    "AssignOnly",
    "Behaviour",
    "Bursty",
    "CatchingUp",
    "Healthy",
    "Kip848",
    "Pair",
    "Producer",
    "Rewinding",
    "Slow",
    "Stalled",
    "Stopped",
    "Transactional",
    "Worker",
    "create_topics",
    "fill_topic",
    "heads",
    "stop_all",
]
