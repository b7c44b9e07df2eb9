"""Sinks: they follow the snapshots and send lag to other systems."""
