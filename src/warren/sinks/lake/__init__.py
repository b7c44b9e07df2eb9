"""The lake: snapshots over time, written by Spark as tables that anything can read."""
