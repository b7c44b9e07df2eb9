"""The way of a commit on Spark: read, compact, decode, judge, publish."""
