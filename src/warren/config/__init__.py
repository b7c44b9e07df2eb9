"""burrow.toml, and the environment, in, frozen and checked sections out."""

from warren.config.findings import Findings
from warren.config.load import accepted, load, read
from warren.config.outward import (
    Auth,
    General,
    HttpServer,
    Incidents,
    Logging,
    Notifier,
    NotifierLock,
    Route,
    Tls,
    ZooKeeper,
    ZooKeeperConsumer,
)
from warren.config.sections import ClientProfile, Cluster, Config, Consumer, Evaluator, Pipeline, Storage

__all__ = [
    "Auth",
    "ClientProfile",
    "Cluster",
    "Config",
    "Consumer",
    "Evaluator",
    "Findings",
    "General",
    "HttpServer",
    "Incidents",
    "Logging",
    "Notifier",
    "NotifierLock",
    "Pipeline",
    "Route",
    "Storage",
    "Tls",
    "ZooKeeper",
    "ZooKeeperConsumer",
    "accepted",
    "load",
    "read",
]
