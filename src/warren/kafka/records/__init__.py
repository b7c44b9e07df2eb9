"""The record formats of Kafka's offsets topic, decoded as whole columns."""
