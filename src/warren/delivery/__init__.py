"""What notifiers and sinks share to deliver: the HTTP client, the backoff, and the status that sinks report."""
