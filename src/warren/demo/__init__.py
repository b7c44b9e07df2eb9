"""A real Kafka and consumers of every kind on this machine, for `warren demo` and the tests."""
