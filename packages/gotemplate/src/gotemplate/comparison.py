"""Go's comparisons between values of basic types."""

from gotemplate.errors import CallError
from gotemplate.types import FLOATS, INTEGERS, Kind, fields_of
from gotemplate.values import Value, is_nil


def _basic_kind(value: Value) -> str | None:
    """Values of the same basic kind can be compared; whole numbers of any sign and size are one kind."""
    if value.kind in INTEGERS:
        return "integer"
    if value.kind in FLOATS:
        return "float"
    return value.kind.value if value.kind in (Kind.BOOL, Kind.STRING) else None


def equal(first: Value, *others: Value) -> bool:
    """Whether the first argument equals any of the others."""
    if not others:
        raise CallError("missing argument for comparison")
    return any(_is_equal(first, other) for other in others)


def _is_equal(first: Value, other: Value) -> bool:
    kind, other_kind = _basic_kind(first), _basic_kind(other)
    is_one_missing = any(value.kind in (Kind.INVALID, Kind.INTERFACE) for value in (first, other))
    if kind != other_kind:
        if is_one_missing:
            return False
        raise _incompatible(first, other)
    if kind:
        return bool(first.data == other.data)
    if first.kind is not other.kind and not is_one_missing:
        raise CallError(f"non-comparable types {first.type.name}, {other.type.name}")
    if is_nil(first) or is_nil(other):
        return is_nil(first) == is_nil(other)
    if not _is_comparable(other):
        raise CallError(f"non-comparable type {other.type.name}")
    if first.kind is Kind.POINTER:
        return first.type == other.type and first.data is other.data
    return first.type == other.type and bool(first.data == other.data)


def _is_comparable(value: Value) -> bool:
    python = value.type.python
    if value.kind is Kind.STRUCT and python:
        return not any(declared.kind in (Kind.SLICE, Kind.MAP) for declared in fields_of(python).values())
    return value.kind not in (Kind.SLICE, Kind.MAP, Kind.FUNCTION)


def _incompatible(first: Value, other: Value) -> CallError:
    return CallError(f"incompatible types for comparison: {first.type.name} and {other.type.name}")


def not_equal(first: Value, other: Value) -> bool:
    return not equal(first, other)


def less(first: Value, other: Value) -> bool:
    kind, other_kind = _basic_kind(first), _basic_kind(other)
    if kind is None or other_kind is None:
        raise CallError("invalid type for comparison")
    if kind != other_kind:
        raise _incompatible(first, other)
    if kind == Kind.BOOL:
        raise CallError("invalid type for comparison")
    return bool(first.data < other.data)


def less_or_equal(first: Value, other: Value) -> bool:
    return less(first, other) or equal(first, other)


def greater(first: Value, other: Value) -> bool:
    return not less_or_equal(first, other)


def greater_or_equal(first: Value, other: Value) -> bool:
    return not less(first, other)
