"""A value with its Go type, and the operations of templates on values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gotemplate.errors import CallError
from gotemplate.types import (
    ANY,
    BOOL,
    FLOAT64,
    FLOATS,
    INT,
    INTEGERS,
    INVALID,
    STRING,
    Integer,
    Kind,
    Struct,
    Type,
    map_of,
    slice_of,
    type_of_hint,
    wrap,
)

_NILLABLE = frozenset({Kind.SLICE, Kind.MAP, Kind.POINTER, Kind.INTERFACE, Kind.FUNCTION})
_MAP, _SLICE = map_of(ANY), slice_of(ANY)


@dataclass(frozen=True, slots=True)
class Value:
    """Data with the Go type it stands for; a nil has no data."""

    type: Type
    data: Any

    @property
    def kind(self) -> Kind:
        return self.type.kind


MISSING = Value(INVALID, None)
NIL = Value(ANY, None)


def value_of(data: object) -> Value:
    """Plain Python data as Go sees what JSON holds: lists of anything, maps from strings to anything."""
    match data:
        case None:
            return NIL
        case Value():
            return data
        case Integer() | Struct():
            python: type = type(data)
            return Value(type_of_hint(python), data)
        case bool():
            return Value(BOOL, data)
        case int():
            return Value(INT, data)
        case float():
            return Value(FLOAT64, data)
        case str():
            return Value(STRING, data)
        case Mapping():
            return Value(_MAP, data)
        case Sequence():
            return Value(_SLICE, data)
    raise CallError(f"a template cannot use a {type(data).__name__}")


def typed(declared: Type, data: object) -> Value:
    """Data as a value of the type it was declared with."""
    if declared is ANY or isinstance(data, Value):
        return value_of(data)
    if declared.kind in INTEGERS and isinstance(data, int):
        number = wrap(declared.kind, data)
        return Value(declared, declared.python(number) if declared.python else number)
    if declared.kind is Kind.FLOAT32 and isinstance(data, int | float):
        return Value(declared, float(np.float32(data)))
    return Value(declared, data)


def zero_of(declared: Type) -> Value:
    """What Go keeps where nothing was set."""
    if declared.kind in INTEGERS:
        return typed(declared, 0)
    if declared.kind in FLOATS:
        return Value(declared, 0.0)
    if declared.kind is Kind.STRING:
        return Value(declared, "")
    if declared.kind is Kind.BOOL:
        return Value(declared, False)
    return Value(declared, None)


def can_be_nil(declared: Type) -> bool:
    return declared.kind in _NILLABLE


def is_nil(value: Value) -> bool:
    return value.kind is Kind.INVALID or (value.kind in _NILLABLE and value.data is None)


def is_true(value: Value) -> bool:
    """Go's truth: not the zero of its type; a struct is always true."""
    if value.kind in (Kind.INVALID, Kind.INTERFACE):
        return False
    if value.kind in (Kind.POINTER, Kind.FUNCTION):
        return value.data is not None
    return value.kind is Kind.STRUCT or bool(value.data)


def indirect(value: Value) -> Value:
    """What a pointer points to; a nil pointer stays."""
    if value.kind is Kind.POINTER and value.data is not None:
        return Value(value.type.held, value.data)
    return value


def elements(value: Value) -> list[Value]:
    """The elements of a list."""
    return [typed(value.type.held, element) for element in value.data or ()]


def entries(value: Value) -> list[tuple[str, Value]]:
    """The keys and values of a map, in order of the keys."""
    held = value.data or {}
    return [(key, typed(value.type.held, held[key])) for key in sorted(held)]


def to_bytes(text: str) -> bytes:
    """The bytes of a Go string; a byte that is no UTF-8 travels in a Python string as a lone surrogate."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace")


def to_text(data: bytes) -> str:
    """A Go string from its bytes."""
    return data.decode("utf-8", "surrogateescape")
