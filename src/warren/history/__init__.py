"""The built-in history of groups and clusters: written, thinned with age, and read."""
