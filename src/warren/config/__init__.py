"""burrow.toml and the environment → frozen, checked sections; one file per concern."""

from warren.config.general import General
from warren.config.http import HttpServer
from warren.config.kafka import Cluster, Consumer
from warren.config.load import Config, load, read
from warren.config.notifiers import Notifier, Route
from warren.config.pipeline import Pipeline

__all__ = ["Cluster", "Config", "Consumer", "General", "HttpServer", "Notifier", "Pipeline", "Route", "load", "read"]
