"""Texts that others chose: each knows which of its parts are theirs, through every function of a template."""

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import NamedTuple, Self

from gotemplate.types import Struct, fields_of


class Source(Enum):
    """Who chose a part of a text."""

    OWN = "own"
    """The author of the template, or whoever configured it."""
    FOREIGN = "foreign"
    ENCODED = "encoded"
    """Others, and it is percent-encoded already."""


class Part(NamedTuple):
    """A part of a text, all of one source."""

    text: str
    source: Source


class Foreign(str):
    """A text of which others chose at least a part; all of it, unless its parts say otherwise.

    What Python's own functions make of it is a plain text; `Function.call` marks all of that as foreign.
    """

    __slots__ = ("parts",)
    parts: tuple[Part, ...]

    def __new__(cls, text: str, parts: tuple[Part, ...] | None = None) -> Self:
        made = super().__new__(cls, text)
        made.parts = (Part(text, Source.FOREIGN),) if parts is None else parts
        return made


def parts_of(text: str) -> tuple[Part, ...]:
    return text.parts if isinstance(text, Foreign) else (Part(text, Source.OWN),)


def joined(texts: Iterable[str]) -> str:
    """Texts one after the other; whichever part is foreign stays so."""
    texts = list(texts)
    whole = "".join(texts)
    if not any(isinstance(text, Foreign) for text in texts):
        return whole
    parts = (part for text in texts for part in parts_of(text))
    return Foreign(whole, tuple(part for part in parts if part.text or part.source is not Source.OWN))


def has_foreign(data: object) -> bool:
    """Whether there is foreign text anywhere in some data."""
    match data:
        case Foreign():
            return True
        case str():
            return False
        case Struct():
            python: type = type(data)
            return any(has_foreign(getattr(data, name)) for name in fields_of(python))
        case Mapping():
            return any(has_foreign(key) or has_foreign(element) for key, element in data.items())
        case Sequence():
            return any(map(has_foreign, data))
    return False
