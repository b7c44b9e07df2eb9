"""The edge in: what the Kafka clusters hold, as they say it themselves."""
