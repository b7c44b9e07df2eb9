"""The literals of Go: strings, characters and numbers as they are written."""

import re
from dataclasses import dataclass

from gotemplate.values import to_bytes, to_text

_SIMPLE = {"a": 7, "b": 8, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11, "\\": 92}
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-7]{3})|(.))", re.DOTALL)
# Underscores stand between digits, or after the prefix of the base.
_INTEGER = re.compile(
    r"([+-]?)(0[xX](?:_?[0-9a-fA-F])+|0[oO](?:_?[0-7])+|0[bB](?:_?[01])+|0(?:_?[0-7])*|[1-9](?:_?[0-9])*)"
)
_DECIMAL = re.compile(
    r"[+-]?(?:[0-9](?:_?[0-9])*\.?(?:[0-9](?:_?[0-9])*)?|\.[0-9](?:_?[0-9])*)(?:[eE][+-]?[0-9](?:_?[0-9])*)?"
)
_HEX_FLOAT = re.compile(r"[+-]?0[xX]_?[0-9a-fA-F_]*\.?[0-9a-fA-F_]*[pP][+-]?[0-9_]+")
_INT64, _UINT64 = range(-(1 << 63), 1 << 63), range(1 << 64)


@dataclass(frozen=True, slots=True)
class NumberLiteral:
    """A number under every type that can hold it; `ideal` is what it is where no type is asked for."""

    text: str
    integer: int | None
    unsigned: int | None
    real: float
    ideal: int | float | None


def unquote(token: str) -> str:
    """The string that a literal in quotes or backquotes means; a ValueError says what is wrong."""
    if token[0] == "`":
        return token[1:-1].replace("\r", "")
    pieces, position, body = bytearray(), 0, token[1:-1]
    for escape in _ESCAPE.finditer(body):
        pieces += to_bytes(body[position : escape.start()])
        pieces += _escaped(escape, '"')
        position = escape.end()
    rest = body[position:]
    return to_text(bytes(pieces) + to_bytes(rest))


def unquote_character(token: str) -> int:
    """The number of the character that a literal in single quotes means."""
    body = token[1:-1]
    escape = _ESCAPE.fullmatch(body)
    if escape:
        number = next((group for group in (escape[1], escape[4]) if group), None)
        if number:
            _escaped(escape, "'")
            return int(number, 16 if escape[1] else 8)
        return ord(_escaped(escape, "'").decode())
    if len(body) != 1 or body in "\\'":
        raise ValueError(f"malformed character constant: {token}")
    return ord(body)


def _escaped(escape: re.Match[str], quote: str) -> bytes:
    byte, short, long, octal, simple = escape.groups()
    if byte:
        return bytes([int(byte, 16)])
    if octal and int(octal, 8) < 256:
        return bytes([int(octal, 8)])
    if short or long:
        number = int(short or long, 16)
        if number <= 0x10FFFF and not 0xD800 <= number < 0xE000:
            return chr(number).encode()
    elif simple == quote or simple in _SIMPLE:
        return bytes([_SIMPLE.get(simple, ord(quote))])
    raise ValueError(f"invalid escape {escape[0]!r}")


def character_literal(token: str) -> NumberLiteral:
    """A character as the number it is to Go."""
    number = unquote_character(token)
    return NumberLiteral(token, number, number, float(number), number)


def number_literal(token: str) -> NumberLiteral:
    """A number as it is written, in any base; a ValueError says what is wrong."""
    whole = _integer(token)
    if whole is not None and whole in _INT64:
        is_float = any(mark in token for mark in ".eEpP") and not re.match("0[xX]", token)
        unsigned = whole if (whole >= 0 and token[0] not in "+-") or whole == 0 else None
        return NumberLiteral(token, whole, unsigned, float(whole), float(whole) if is_float else whole)
    if whole is not None and whole in _UINT64 and token[0] not in "+-":
        return NumberLiteral(token, None, whole, float(whole), None)
    if not any(mark in token for mark in ".eEpP"):
        raise ValueError(f"integer overflow or illegal number: {token}")
    real = _float(token)
    integer = int(real) if real.is_integer() and -(2.0**63) <= real < 2.0**63 else None
    unsigned = int(real) if real.is_integer() and 0 <= real < 2.0**64 else None
    return NumberLiteral(token, integer, unsigned, real, real)


def _integer(token: str) -> int | None:
    match = _INTEGER.fullmatch(token)
    if not match:
        return None
    digits = match[2].replace("_", "").lower()
    if len(digits) > 80:
        raise ValueError("integer overflow")
    is_octal = digits[0] == "0" and digits.isdigit()
    number = int(digits, 8) if is_octal else int(digits, 0)
    return -number if match[1] == "-" else number


def _float(token: str) -> float:
    try:
        if _DECIMAL.fullmatch(token):
            real = float(token.replace("_", ""))
        elif _HEX_FLOAT.fullmatch(token) and "__" not in token:
            real = float.fromhex(token.replace("_", ""))
        else:
            raise ValueError
    except (ValueError, OverflowError):
        raise ValueError(f"illegal number syntax: {token}") from None
    if real in (float("inf"), float("-inf")):
        raise ValueError(f"number out of range: {token}")
    return real
