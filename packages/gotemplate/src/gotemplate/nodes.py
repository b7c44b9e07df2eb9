"""The syntax tree of a template: statements, and the pipelines in them."""

from collections.abc import Mapping
from dataclasses import dataclass

from gotemplate.literals import NumberLiteral


@dataclass(frozen=True, slots=True)
class Node:
    """Anything in a template, and the line it is on."""

    line: int


@dataclass(frozen=True, slots=True)
class Dot(Node):
    """The value at hand: `.`."""


@dataclass(frozen=True, slots=True)
class Nil(Node):
    """The word `nil`."""


@dataclass(frozen=True, slots=True)
class Literal(Node):
    """A string, a boolean or a number."""

    value: str | bool | NumberLiteral


@dataclass(frozen=True, slots=True)
class Identifier(Node):
    """The name of a function."""

    name: str


@dataclass(frozen=True, slots=True)
class Field(Node):
    """Fields of the value at hand: `.A.B`."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Variable(Node):
    """A variable, and fields of it: `$x.A.B`."""

    name: str
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Chain(Node):
    """Fields of a function's result or of a pipeline in parentheses: `(index .List 0).A`."""

    operand: "Operand"
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Command(Node):
    """An operand, or a function or method with its arguments."""

    operands: tuple["Operand", ...]


@dataclass(frozen=True, slots=True)
class Pipeline(Node):
    """Commands, each of which gets the result of the one before, and the variables that keep the last result."""

    commands: tuple[Command, ...]
    variables: tuple[str, ...]
    is_assignment: bool


Operand = Dot | Nil | Literal | Identifier | Field | Variable | Chain | Pipeline


@dataclass(frozen=True, slots=True)
class Text(Node):
    """What is copied as it stands."""

    text: str


@dataclass(frozen=True, slots=True)
class Action(Node):
    """A pipeline whose result is printed, unless it goes to variables."""

    pipeline: Pipeline


@dataclass(frozen=True, slots=True)
class Branch(Node):
    """A condition and what happens when it is true."""

    pipeline: Pipeline
    body: tuple["Statement", ...]


@dataclass(frozen=True, slots=True)
class Conditional(Node):
    """`if`, or `with` which also moves the dot; each branch is asked when those before were false."""

    branches: tuple[Branch, ...]
    otherwise: tuple["Statement", ...]
    is_with: bool


@dataclass(frozen=True, slots=True)
class Range(Node):
    """A body for each element; `otherwise` when there is none."""

    pipeline: Pipeline
    body: tuple["Statement", ...]
    otherwise: tuple["Statement", ...]


@dataclass(frozen=True, slots=True)
class Invocation(Node):
    """Another template, rendered with a value of its own."""

    name: str
    pipeline: Pipeline | None


@dataclass(frozen=True, slots=True)
class Break(Node):
    """Leaves the innermost range."""


@dataclass(frozen=True, slots=True)
class Continue(Node):
    """Goes on with the next element of the innermost range."""


Statement = Text | Action | Conditional | Range | Invocation | Break | Continue
Body = tuple[Statement, ...]
Definitions = Mapping[str, Body]
