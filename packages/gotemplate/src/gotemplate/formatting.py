"""Values as Go's fmt writes them."""

from dataclasses import dataclass, replace

from gotemplate.errors import CallError, LimitReached
from gotemplate.floats import format_float, with_point
from gotemplate.foreign import Foreign, has_foreign, joined
from gotemplate.functions import has_string
from gotemplate.quoting import can_be_backquoted, character_of, quoted, quoted_character
from gotemplate.types import FLOATS, INTEGERS, SIGNED, STRING, Kind, fields_of
from gotemplate.values import Value, elements, entries, indirect, to_bytes, typed

# Go shows where a pointer within a value points to, which says nothing to a reader.
_ADDRESS = 0xC000010000
_BASES = {"d": "d", "v": "d", "b": "b", "o": "o", "O": "o", "x": "x", "X": "X"}
_PREFIXES = {"b": "0b", "o": "0", "x": "0x", "X": "0X"}


@dataclass(frozen=True, slots=True)
class Verb:
    """How to write a value: the letter of a verb with its flags, width and precision."""

    letter: str = "v"
    is_left: bool = False
    is_plus: bool = False
    is_sharp: bool = False
    is_space: bool = False
    is_zero: bool = False
    width: int | None = None
    precision: int | None = None
    is_go_syntax: bool = False
    has_names: bool = False


PLAIN = Verb()


class Printer:
    """Collects what is written, up to a limit."""

    def __init__(self, limit: int) -> None:
        self._room = limit
        self._limit = limit
        self._parts: list[str] = []
        self._is_complaining = False

    def write(self, text: str) -> None:
        self._room -= len(text)
        if self._room < 0:
            raise LimitReached(f"a text of more than {self._limit} characters")
        self._parts.append(text)

    def text(self) -> str:
        return joined(self._parts)

    def argument(self, value: Value, verb: Verb) -> None:
        """Write an argument of a print function; what is written of foreign text is foreign."""
        first = len(self._parts)
        self._argument(value, verb)
        # A number may be a byte of a foreign text, which these verbs make a character again.
        is_character = verb.letter in "cqU" and value.kind in INTEGERS
        if is_character or has_foreign(value.data):
            text = "".join(self._parts[first:])
            is_whole = isinstance(value.data, Foreign) and text == value.data
            self._parts[first:] = [value.data if is_whole else Foreign(text)]

    def _argument(self, value: Value, verb: Verb) -> None:
        if value.kind in (Kind.INVALID, Kind.INTERFACE):
            if verb.letter in "vT":
                self.pad("<nil>", verb)
            else:
                self.write(f"%!{verb.letter}(<nil>)")
        elif verb.letter == "T":
            self.pad(value.type.name[: verb.precision], verb)
        elif verb.letter == "p":
            self._address(value, verb)
        else:
            self.value(value, verb, 0)

    def value(self, value: Value, verb: Verb, depth: int) -> None:
        """Write a value at some depth within another."""
        if self._is_said_by_itself(value, verb):
            return
        match value.kind:
            case Kind.BOOL:
                self._boolean(value, verb)
            case Kind.STRING:
                self._string(value, value.data, verb)
            case Kind.INTERFACE | Kind.INVALID:
                self.write("interface {}(nil)" if verb.is_go_syntax else "<nil>")
            case Kind.SLICE:
                self._list(value, verb, depth)
            case Kind.MAP:
                self._map(value, verb, depth)
            case Kind.STRUCT:
                self._struct(value, verb, depth)
            case Kind.POINTER | Kind.FUNCTION:
                self._pointer(value, verb, depth)
            case kind if kind in INTEGERS:
                self._integer(value, verb)
            case kind if kind in FLOATS:
                self._float(value, verb)

    def complain(self, value: Value, verb: Verb) -> None:
        """Write what Go writes when a verb does not fit a value."""
        self._is_complaining = True
        self.write(f"%!{verb.letter}({value.type.name}=")
        self.value(value, replace(verb, letter="v"), 0)
        self.write(")")
        self._is_complaining = False

    def pad(self, text: str, verb: Verb, is_zero: bool | None = None) -> None:
        """Write text at the width of a verb."""
        missing = (verb.width or 0) - len(text)
        if missing <= 0:
            self.write(text)
        elif verb.is_left:
            self.write(text + " " * missing)
        else:
            self.write(("0" if (verb.is_zero if is_zero is None else is_zero) else " ") * missing + text)

    def _is_said_by_itself(self, value: Value, verb: Verb) -> bool:
        if self._is_complaining:
            return False
        if verb.letter == "w":
            self.complain(value, verb)
            return True
        if verb.is_go_syntax or verb.letter not in "vsxXq" or not has_string(value):
            return False
        if value.data is None:
            self.write("<nil>")
        else:
            self._string(value, value.data.String(), verb)
        return True

    def _boolean(self, value: Value, verb: Verb) -> None:
        if verb.letter in "tv":
            self.pad("true" if value.data else "false", verb)
        else:
            self.complain(value, verb)

    def _string(self, value: Value, text: str, verb: Verb) -> None:
        if verb.letter in "xX":
            self._hexadecimal(text, verb)
            return
        shown = text[: verb.precision]
        if verb.letter == "q" or (verb.letter == "v" and verb.is_go_syntax):
            is_raw = verb.is_sharp and can_be_backquoted(shown)
            self.pad(f"`{shown}`" if is_raw else quoted(shown, verb.is_plus), verb)
        elif verb.letter in "vs":
            self.pad(shown, verb)
        else:
            self.complain(value, verb)

    def _hexadecimal(self, text: str, verb: Verb) -> None:
        pairs = [format(byte, f"02{verb.letter}") for byte in to_bytes(text)[: verb.precision]]
        prefix = _PREFIXES[verb.letter] if verb.is_sharp and pairs else ""
        digits = (" " + prefix).join(pairs) if verb.is_space else "".join(pairs)
        self.pad(prefix + digits, verb)

    def _integer(self, value: Value, verb: Verb) -> None:
        number, letter = int(value.data), verb.letter
        if letter in _BASES:
            if verb.is_go_syntax and value.kind not in SIGNED:
                verb = replace(verb, letter="x", is_sharp=True)
            self._digits(number, verb)
        elif letter == "c":
            self.pad(character_of(number), verb)
        elif letter == "q":
            self.pad(quoted_character(number, verb.is_plus), verb)
        elif letter == "U":
            code = f"U+{number & 0xFFFFFFFFFFFFFFFF:0{max(4, verb.precision or 0)}X}"
            is_shown = verb.is_sharp and 0 <= number <= 0x10FFFF and chr(number).isprintable()
            self.pad(f"{code} '{chr(number)}'" if is_shown else code, verb, is_zero=False)
        else:
            self.complain(value, verb)

    def _digits(self, number: int, verb: Verb) -> None:
        if verb.precision == 0 and number == 0:
            self.pad("", verb, is_zero=False)
            return
        sign = "-" if number < 0 else "+" if verb.is_plus else " " if verb.is_space else ""
        least = verb.precision or 0
        if verb.precision is None and verb.is_zero and not verb.is_left and verb.width:
            least = verb.width - len(sign)
        base = _BASES[verb.letter]
        digits = format(abs(number), base).rjust(least, "0")
        prefix = _PREFIXES.get(base, "") if verb.is_sharp else ""
        if prefix == "0" and digits.startswith("0"):
            prefix = ""
        if verb.letter == "O":
            prefix = "0o" + prefix
        self.pad(sign + prefix + digits, verb, is_zero=False)

    def _float(self, value: Value, verb: Verb) -> None:
        letter = {"v": "g", "F": "f"}.get(verb.letter, verb.letter)
        if letter not in "gGbxXfeE":
            self.complain(value, verb)
            return
        text = format_float(value.data, letter, verb.precision, value.kind is Kind.FLOAT32)
        sign, digits = (text[0], text[1:]) if text[0] in "+-" else ("", text)
        is_number = digits[0].isdigit()
        if is_number and verb.is_sharp:
            digits = with_point(digits, letter, verb.precision)
        if sign != "-" and (verb.is_plus or verb.is_space):
            sign = "+" if verb.is_plus else " "
        missing = (verb.width or 0) - len(sign + digits)
        if is_number and verb.is_zero and not verb.is_left and missing > 0:
            digits = "0" * missing + digits
        self.pad(sign + digits, verb, is_zero=False)

    def _list(self, value: Value, verb: Verb, depth: int) -> None:
        if verb.is_go_syntax and value.data is None:
            self.write(f"{value.type.name}(nil)")
            return
        self.write(f"{value.type.name}{{" if verb.is_go_syntax else "[")
        for place, element in enumerate(elements(value)):
            self._separate(place, verb)
            self.value(element, verb, depth + 1)
        self.write("}" if verb.is_go_syntax else "]")

    def _map(self, value: Value, verb: Verb, depth: int) -> None:
        if verb.is_go_syntax and value.data is None:
            self.write(f"{value.type.name}(nil)")
            return
        self.write(f"{value.type.name}{{" if verb.is_go_syntax else "map[")
        for place, (key, element) in enumerate(entries(value)):
            self._separate(place, verb)
            self.value(Value(STRING, key), verb, depth + 1)
            self.write(":")
            self.value(element, verb, depth + 1)
        self.write("}" if verb.is_go_syntax else "]")

    def _struct(self, value: Value, verb: Verb, depth: int) -> None:
        self.write(f"{value.type.name}{{" if verb.is_go_syntax else "{")
        assert value.type.python is not None
        for place, (name, declared) in enumerate(fields_of(value.type.python).items()):
            self._separate(place, verb)
            if verb.has_names or verb.is_go_syntax:
                self.write(f"{name}:")
            self.value(typed(declared, getattr(value.data, name)), verb, depth + 1)
        self.write("}")

    def _separate(self, place: int, verb: Verb) -> None:
        if place:
            self.write(", " if verb.is_go_syntax else " ")

    def _address(self, value: Value, verb: Verb) -> None:
        if value.kind in (Kind.POINTER, Kind.SLICE, Kind.MAP, Kind.FUNCTION):
            address = 0 if value.data is None else _ADDRESS
            self._digits(address, replace(verb, letter="x", is_sharp=not verb.is_sharp))
        else:
            self.complain(value, verb)

    def _pointer(self, value: Value, verb: Verb, depth: int) -> None:
        if depth == 0 and value.kind is Kind.POINTER and value.data is not None:
            self.write("&")
            self.value(indirect(value), verb, depth + 1)
            return
        address = 0 if value.data is None else _ADDRESS
        if verb.letter == "v" and verb.is_go_syntax:
            self.write(f"({value.type.name})({hex(address) if address else 'nil'})")
        elif verb.letter == "v" and not address:
            self.pad("<nil>", verb)
        elif verb.letter == "v":
            self._address(value, verb)
        elif verb.letter in "bodxX":
            self._digits(address, verb)
        else:
            self.complain(value, verb)


def printed(value: Value, limit: int) -> str:
    """A value as an action writes it."""
    if value.type is STRING:  # most of what is written
        assert isinstance(value.data, str)
        return value.data
    if value.kind is Kind.INVALID:
        return "<no value>"
    if value.kind is Kind.FUNCTION:
        raise CallError("can't print a function")
    printer = Printer(limit)
    printer.argument(indirect(value), PLAIN)
    return printer.text()
