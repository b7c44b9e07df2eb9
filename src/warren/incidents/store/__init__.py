"""Where incidents, notifications, silences and acknowledgements are stored: SQLite, replicated through Kafka."""
