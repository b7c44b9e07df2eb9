"""Templates of notifications: Go templates as in Burrow, and Jinja2."""
