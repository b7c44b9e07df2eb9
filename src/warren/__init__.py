"""Kafka consumer-lag monitoring on Spark, judged by Burrow's rules."""

__version__ = "0.1.0.dev0"
