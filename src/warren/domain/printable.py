"""Text for logs and terminals, where names from Kafka must not become lines or commands."""


def printable(text: str) -> str:
    r"""A text on one line, whose control, invisible and direction-changing characters are escapes such as `\x1b`."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in text)


def printable_lines(text: str) -> str:
    """A text of several lines, each of them printable."""
    return "\n".join(map(printable, text.split("\n")))
