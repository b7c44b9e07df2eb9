"""What can be wrong with a template: its text, or what it does with a message."""


class TemplateError(ValueError):
    """A template that cannot be read or rendered; the message names it, the line and what is wrong."""

    def __init__(self, name: str, line: int, what: str) -> None:
        self.name, self.line, self.what = name, line, what
        super().__init__(f"template: {name}:{line}: {what}")

    def __reduce__(self) -> tuple[type["TemplateError"], tuple[str, int, str]]:
        return type(self), (self.name, self.line, self.what)


class CallError(Exception):
    """What a function refuses to do; the template adds where it was called."""


class LimitReached(Exception):  # noqa: N818 - reads as what it is
    """A rendering that would take too long or get too large."""
