"""Strings and characters in quotes, as Go writes them."""

from gotemplate.values import to_bytes, to_text

_ESCAPES = {7: r"\a", 8: r"\b", 9: r"\t", 10: r"\n", 11: r"\v", 12: r"\f", 13: r"\r", 92: r"\\"}


def quoted(text: str, is_ascii: bool) -> str:
    """A string in double quotes."""
    text = to_text(to_bytes(text))
    return '"' + "".join(_escaped(character, '"', is_ascii) for character in text) + '"'


def quoted_character(number: int, is_ascii: bool) -> str:
    """A character in single quotes; U+FFFD when there is no such character."""
    return "'" + _escaped(character_of(number), "'", is_ascii) + "'"


def character_of(number: int) -> str:
    """The character of a number, or U+FFFD when there is none."""
    is_character = 0 <= number <= 0x10FFFF and not 0xD800 <= number < 0xE000
    return chr(number) if is_character else "\ufffd"


def can_be_backquoted(text: str) -> bool:
    """Whether a string can stand between backquotes as it is."""
    return not any(
        character in "`\x7f\ufeff" or (character < " " and character != "\t") or "\ud800" <= character <= "\udfff"
        for character in text
    )


def _escaped(character: str, quote: str, is_ascii: bool) -> str:
    number = ord(character)
    if character == quote:
        return "\\" + quote
    if number in _ESCAPES:
        return _ESCAPES[number]
    if character.isprintable() and (number < 128 or not is_ascii):
        return character
    if number < 32 or number == 127:
        return f"\\x{number:02x}"
    if 0xDC80 <= number <= 0xDCFF:  # a byte that is no UTF-8
        return f"\\x{number - 0xDC00:02x}"
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
