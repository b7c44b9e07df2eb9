"""burrow.toml in, frozen and checked sections out."""

from warren.config.findings import Findings
from warren.config.kafka import to_librdkafka, to_spark_options
from warren.config.load import load, read
from warren.config.sections import ClientProfile, Cluster, Config, Consumer, Evaluator, Pipeline, Storage

__all__ = [
    "ClientProfile",
    "Cluster",
    "Config",
    "Consumer",
    "Evaluator",
    "Findings",
    "Pipeline",
    "Storage",
    "load",
    "read",
    "to_librdkafka",
    "to_spark_options",
]
