"""burrow.toml and the environment → frozen, checked sections; one file per concern."""

from warren.config.findings import Findings
from warren.config.general import General, Logging
from warren.config.http import HttpServer
from warren.config.kafka import ClientProfile, Cluster, Consumer, ZooKeeperConsumer
from warren.config.load import Config, accepted, load, read
from warren.config.notifiers import Incidents, Notifier, NotifierLock, Route, ZooKeeper
from warren.config.pipeline import Evaluator, Pipeline, Storage
from warren.config.security import Auth, Iam, Sasl, Tls

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
    "Iam",
    "Incidents",
    "Logging",
    "Notifier",
    "NotifierLock",
    "Pipeline",
    "Route",
    "Sasl",
    "Storage",
    "Tls",
    "ZooKeeper",
    "ZooKeeperConsumer",
    "accepted",
    "load",
    "read",
]
