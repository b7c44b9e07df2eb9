"""One step at a time of a sink at work."""

from warren.sinks.worker import SinkWorker


def sample(worker: SinkWorker, at_ms: int) -> None:
    """Sample the newest snapshot for a time."""
    assert worker.sampler is not None
    worker.sampler.sample(at_ms)


def deliver_next(worker: SinkWorker) -> bool:
    """Deliver what is next; returns whether there was anything to deliver."""
    return any(delivery.deliver_next() for delivery in worker.deliveries)


def poll_changes(worker: SinkWorker) -> bool:
    """Spool the changes of new snapshots; returns whether that worked."""
    assert worker.change_feed is not None
    return worker.change_feed.poll()
