"""The Go types that templates can use, and the Python classes that represent them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from enum import StrEnum
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, ClassVar, Union, get_args, get_origin, get_type_hints


class Kind(StrEnum):
    """What Go calls the kind of a type."""

    INVALID = "invalid"
    BOOL = "bool"
    INT = "int"
    INT32 = "int32"
    INT64 = "int64"
    UINT8 = "uint8"
    UINT64 = "uint64"
    FLOAT32 = "float32"
    FLOAT64 = "float64"
    STRING = "string"
    SLICE = "slice"
    MAP = "map"
    STRUCT = "struct"
    POINTER = "ptr"
    INTERFACE = "interface"
    FUNCTION = "func"


SIGNED = frozenset({Kind.INT, Kind.INT32, Kind.INT64})
UNSIGNED = frozenset({Kind.UINT8, Kind.UINT64})
INTEGERS = SIGNED | UNSIGNED
FLOATS = frozenset({Kind.FLOAT32, Kind.FLOAT64})
_BITS = {Kind.INT: 64, Kind.INT32: 32, Kind.INT64: 64, Kind.UINT8: 8, Kind.UINT64: 64}

Int32 = Annotated[int, Kind.INT32]
Int64 = Annotated[int, Kind.INT64]
Uint64 = Annotated[int, Kind.UINT64]
Float32 = Annotated[float, Kind.FLOAT32]


@dataclass(frozen=True, slots=True)
class Type:
    """A Go type by its kind and name; `element` is what it points to or holds, `python` the class with its methods."""

    kind: Kind
    name: str
    element: "Type | None" = None
    python: type | None = None

    @property
    def held(self) -> "Type":
        """What a pointer points to, or a list or map holds."""
        assert self.element is not None
        return self.element


BOOL = Type(Kind.BOOL, "bool")
INT = Type(Kind.INT, "int")
UINT8 = Type(Kind.UINT8, "uint8")
FLOAT64 = Type(Kind.FLOAT64, "float64")
STRING = Type(Kind.STRING, "string")
ANY = Type(Kind.INTERFACE, "interface {}")
INVALID = Type(Kind.INVALID, "invalid")
FUNCTION = Type(Kind.FUNCTION, "func")


class Named:
    """A class that stands for a Go type; its methods with a capital letter are Go's."""

    go_name: ClassVar[str]


class Struct(Named):
    """A frozen dataclass that stands for a Go struct; its fields with a capital letter can be read by templates."""


class Integer(Named, int):
    """A whole number with a Go name of its own, such as a status."""

    kind: ClassVar[Kind] = Kind.INT


def pointer_to(target: Type) -> Type:
    return Type(Kind.POINTER, f"*{target.name}", target)


def slice_of(element: Type) -> Type:
    return Type(Kind.SLICE, f"[]{element.name}", element)


def map_of(element: Type) -> Type:
    return Type(Kind.MAP, f"map[string]{element.name}", element)


def wrap(kind: Kind, number: int) -> int:
    """A whole number cut to the bits of its kind, as Go's arithmetic does."""
    bits = _BITS[kind]
    number &= (1 << bits) - 1
    return number - (1 << bits) if kind in SIGNED and number >> (bits - 1) else number


_BASIC: dict[object, Type] = {bool: BOOL, int: INT, float: FLOAT64, str: STRING, object: ANY}


@cache
def type_of_hint(hint: object) -> Type:
    """The Go type that an annotation means: `X | None` is a pointer, and so is a struct in a list."""
    if hint in _BASIC:
        return _BASIC[hint]
    if isinstance(hint, type) and issubclass(hint, Struct):
        return Type(Kind.STRUCT, hint.go_name, python=hint)
    if isinstance(hint, type) and issubclass(hint, Integer):
        return Type(hint.kind, hint.go_name, python=hint)
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        kind = next(mark for mark in arguments[1:] if isinstance(mark, Kind))
        return Type(kind, kind.value)
    if origin in (Union, UnionType):
        (target,) = (argument for argument in arguments if argument is not NoneType)
        return pointer_to(type_of_hint(target))
    if origin in (tuple, list, Sequence):
        element = type_of_hint(arguments[0])
        return slice_of(pointer_to(element) if element.kind is Kind.STRUCT else element)
    if origin in (dict, Mapping):
        return map_of(type_of_hint(arguments[1]))
    raise TypeError(f"{hint!r} means no Go type")


@cache
def fields_of(python: type) -> dict[str, Type]:
    """The fields of a struct that templates can read, in order, with their types."""
    hints = get_type_hints(python, include_extras=True)
    names = [field.name for field in fields(python)] if is_dataclass(python) else []
    return {name: type_of_hint(hints[name]) for name in names if name[0].isupper()}
