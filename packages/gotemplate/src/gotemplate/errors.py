"""Errors of templates: in their text, or when they are rendered."""


class TemplateError(ValueError):
    """A template that cannot be parsed or rendered; the message names the template, the line and the mistake."""

    def __init__(self, name: str, line: int, what: str) -> None:
        self.name, self.line, self.what = name, line, what
        super().__init__(f"template: {name}:{line}: {what}")

    def __reduce__(self) -> tuple[type["TemplateError"], tuple[str, int, str]]:
        return type(self), (self.name, self.line, self.what)


class CallError(Exception):
    """A call that a function refuses; the template adds where it was called."""


class LimitReached(Exception):  # noqa: N818 - reads as what it is
    """A rendering that would take too long or get too large."""
