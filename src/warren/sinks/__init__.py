"""The edge out: what follows the snapshots and hands them on."""
