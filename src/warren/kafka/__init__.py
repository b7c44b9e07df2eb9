"""Kafka as a client sees it: connection options, record formats, admin calls, and samples of log heads."""
