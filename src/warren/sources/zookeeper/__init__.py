"""Offsets that groups commit to ZooKeeper, read by a process beside the cycle."""
