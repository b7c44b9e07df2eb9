"""What tests, benchmarks and rehearsals share."""
