"""Producers and consumer groups with a defined behaviour, for the demo and the tests."""
