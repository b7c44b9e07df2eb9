"""What notifiers and sinks share to deliver: the HTTP client, TLS, the backoff, and the status that sinks report."""
