"""The functions that every Go template has."""

from gotemplate.comparison import equal, greater, greater_or_equal, less, less_or_equal, not_equal
from gotemplate.errors import CallError
from gotemplate.escaping import html, script, url_query
from gotemplate.foreign import Foreign
from gotemplate.functions import functions_of
from gotemplate.printf import sprint, sprintf, sprintln
from gotemplate.types import INTEGERS, UINT8, Kind
from gotemplate.values import Value, indirect, is_nil, is_true, to_bytes, to_text, typed, zero_of


def _connect(first: Value, *others: Value) -> Value:
    """Stand for `and` and `or`, whose arguments are evaluated one by one where they are called."""
    raise CallError("called with arguments that were evaluated")


def _not(value: Value) -> bool:
    return not is_true(value)


def _length(value: Value) -> int:
    item = indirect(value)
    if item.kind is Kind.STRING:
        return len(to_bytes(item.data))
    if item.kind in (Kind.SLICE, Kind.MAP):
        return len(item.data or ())
    raise CallError("len of nil pointer" if is_nil(item) else f"len of type {item.type.name}")


def _position(index: Value, limit: int) -> int:
    if index.kind not in INTEGERS:
        raise CallError(f"cannot index slice/array with {'nil' if is_nil(index) else 'type ' + index.type.name}")
    if not 0 <= index.data <= limit:
        raise CallError(f"index out of range: {index.data}")
    return int(index.data)


def _index(value: Value, *indexes: Value) -> Value:
    item = value
    if item.kind in (Kind.INVALID, Kind.INTERFACE):
        raise CallError("index of untyped nil")
    for index in indexes:
        item = indirect(item)
        if item.kind in (Kind.POINTER, Kind.INTERFACE):
            raise CallError("index of nil pointer")
        item = _element(item, index)
    return item


def _element(item: Value, index: Value) -> Value:
    if item.kind is Kind.MAP:
        if index.kind is not Kind.STRING:
            raise CallError(f"value has type {index.type.name}; should be string")
        held = item.data or {}
        return typed(item.type.held, held[index.data]) if index.data in held else zero_of(item.type.held)
    if item.kind is Kind.STRING:
        data = to_bytes(item.data)
        return Value(UINT8, data[_within(index, len(data))])
    if item.kind is Kind.SLICE:
        held = item.data or ()
        return typed(item.type.held, held[_within(index, len(held))])
    raise CallError(f"can't index item of type {item.type.name}")


def _within(index: Value, length: int) -> int:
    position = _position(index, length)
    if position == length:
        raise CallError(f"index out of range: {position}")
    return position


def _slice(value: Value, *indexes: Value) -> Value:
    item = indirect(value)
    if is_nil(item) and item.kind is not Kind.SLICE:
        raise CallError("slice of nil")
    if item.kind not in (Kind.STRING, Kind.SLICE):
        raise CallError(f"can't slice item of type {item.type.name}")
    if len(indexes) > 3 or (len(indexes) == 3 and item.kind is Kind.STRING):
        raise CallError(f"too many slice indexes: {len(indexes)}")
    held = to_bytes(item.data) if item.kind is Kind.STRING else item.data or ()
    bounds = [_position(index, len(held)) for index in indexes]
    start, end, capacity = bounds + [0, len(held), len(held)][len(bounds) :]
    if not start <= end <= capacity:
        raise CallError(f"invalid slice index: {start}, {end}, {capacity}")
    part = held[start:end]
    if not isinstance(part, bytes):
        return Value(item.type, part)
    text = to_text(part)
    return Value(item.type, Foreign(text) if isinstance(item.data, Foreign) else text)


def _call(called: Value, *arguments: Value) -> Value:
    """Refuse: no message holds a function."""
    raise CallError("call of nil" if is_nil(called) else f"non-function of type {called.type.name}")


STANDARD = functions_of(
    {
        "and": _connect,
        "or": _connect,
        "not": _not,
        "len": _length,
        "index": _index,
        "slice": _slice,
        "call": _call,
        "print": sprint,
        "printf": sprintf,
        "println": sprintln,
        "html": html,
        "js": script,
        "urlquery": url_query,
        "eq": equal,
        "ne": not_equal,
        "lt": less,
        "le": less_or_equal,
        "gt": greater,
        "ge": greater_or_equal,
    }
)
