"""One module per class of notifier."""
