"""Message templates: Burrow's in Go's text/template, and Jinja2."""
