"""Incidents as they are answered."""

from typing import Any

from warren.snapshot.incidents import Entry


def incident_answer(entry: Entry) -> dict[str, Any]:
    """One incident, with its course and the worst of its partitions."""
    incident = entry.incident
    return {
        "id": incident.id,
        "cluster": incident.cluster,
        "group": incident.group,
        "opened": incident.opened_ms,
        "closed": incident.closed_ms,
        "status": incident.status.name,
        "worst": incident.worst.name,
        "acknowledged": incident.acknowledged_ms,
        "changes": [{"time": change.at_ms, "status": change.status.name} for change in incident.changes],
        "told": [
            {"notifier": name, "messages": told.count, "last": told.last_ms}
            for name, told in sorted(incident.told.items())
        ],
        "partition_count": entry.partition_count,
        "partitions": [
            {"topic": one.topic, "partition": one.partition, "status": one.status.name, "lag": one.lag}
            for one in entry.partitions
        ],
    }
