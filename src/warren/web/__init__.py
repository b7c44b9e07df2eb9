"""The HTTP API: Burrow's paths and answers, and Warren's own."""
