"""Where commits come from, read through Spark."""
