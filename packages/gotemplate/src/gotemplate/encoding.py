"""Values as Go's encoding/json writes them."""

import json
import re
from dataclasses import fields
from math import isfinite

from gotemplate.errors import CallError
from gotemplate.floats import positional, shortest_digits
from gotemplate.types import FLOATS, INTEGERS, Kind, fields_of
from gotemplate.values import Value, elements, entries, indirect, to_bytes, to_text, typed, value_of

_ESCAPED = re.compile("[<>&\u2028\u2029\ud800-\udfff]")


def encoded(value: Value) -> str:
    """A value in JSON; what HTML could take for its own is escaped."""
    target = indirect(value)
    if value.data is not None and hasattr(value.data, "json_value"):
        target = value_of(value.data.json_value())
    match target.kind:
        case Kind.INVALID | Kind.INTERFACE | Kind.POINTER:
            return "null"
        case Kind.BOOL:
            return "true" if target.data else "false"
        case Kind.STRING:
            return _string(target.data)
        case Kind.SLICE:
            return "null" if target.data is None else f"[{','.join(map(encoded, elements(target)))}]"
        case Kind.MAP:
            pairs = (f"{_string(key)}:{encoded(element)}" for key, element in entries(target))
            return "null" if target.data is None else f"{{{','.join(pairs)}}}"
        case Kind.STRUCT:
            return _struct(target)
        case kind if kind in INTEGERS:
            return str(int(target.data))
        case kind if kind in FLOATS:
            return _float(target.data, kind is Kind.FLOAT32)
    raise CallError(f"json: unsupported type: {target.type.name}")


def _string(text: str) -> str:
    written = json.dumps(to_text(to_bytes(text)), ensure_ascii=False)
    return _ESCAPED.sub(_escape, written)


def _escape(character: re.Match[str]) -> str:
    number = ord(character[0])
    return r"\ufffd" if number in range(0xD800, 0xE000) else f"\\u{number:04x}"


def _struct(value: Value) -> str:
    assert value.type.python is not None
    types = fields_of(value.type.python)
    pairs = [
        f'"{name}":{encoded(typed(types[field.name], getattr(value.data, field.name)))}'
        for field in fields(value.type.python)
        if field.name in types and (name := field.metadata.get("json", field.name))
    ]
    return f"{{{','.join(pairs)}}}"


def _float(number: float, is_single: bool) -> str:
    if not isfinite(number):
        raise CallError(f"json: unsupported value: {number}")
    sign, digits, exponent = shortest_digits(number, is_single)
    if number == 0 or -7 < exponent < 21:
        return positional(sign, digits, exponent)
    return f"{sign}{digits[0]}{'.' + digits[1:] if digits[1:] else ''}e{exponent:+d}".replace("e-0", "e-")
