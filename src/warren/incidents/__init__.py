"""Incidents: groups in trouble, from the first bad verdict to the first good one, and who is notified."""
