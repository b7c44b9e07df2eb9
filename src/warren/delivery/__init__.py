"""What sinks and notifiers share to deliver: the HTTP client, TLS, and the status they report."""
