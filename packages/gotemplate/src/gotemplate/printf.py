"""The print functions of Go's fmt."""

import re
from collections.abc import Sequence
from dataclasses import replace

from gotemplate.budget import MAX_SIZE
from gotemplate.foreign import Foreign
from gotemplate.formatting import PLAIN, Printer, Verb
from gotemplate.types import INTEGERS, Kind
from gotemplate.values import Value

_MAX_WIDTH = 1_000_000
_INDEX = re.compile(r"\[([0-9]{1,7})\]")


class _Format:
    """Reads a format once, and writes the arguments it asks for."""

    def __init__(self, layout: str, arguments: Sequence[Value]) -> None:
        self._layout = layout
        self._arguments = arguments
        self._printer = Printer(MAX_SIZE)
        self._position = 0
        self._next = 0
        self._is_reordered = False
        self._is_good_index = True
        self._is_after_index = False

    def run(self) -> str:
        while True:
            start = self._layout.find("%", self._position)
            self._printer.write(self._layout[self._position :] if start < 0 else self._layout[self._position : start])
            if start < 0:
                break
            self._position = start + 1
            self._directive()
        if not self._is_reordered and self._next < len(self._arguments):
            self._extra()
        return self._printer.text()

    def _peek(self) -> str:
        return self._layout[self._position : self._position + 1]

    def _directive(self) -> None:
        self._is_good_index, self._is_after_index = True, False
        verb = self._flags()
        self._index()
        verb = self._width(verb)
        verb = self._precision(verb)
        if not self._is_after_index:
            self._index()
        letter = self._peek()
        self._position += 1
        if not letter:
            self._printer.write("%!(NOVERB)")
        elif letter == "%":
            self._printer.write("%")
        elif not self._is_good_index:
            self._printer.write(f"%!{letter}(BADINDEX)")
        elif self._next >= len(self._arguments):
            self._printer.write(f"%!{letter}(MISSING)")
        else:
            if letter in "vw":
                verb = replace(verb, is_go_syntax=verb.is_sharp, has_names=verb.is_plus, is_sharp=False, is_plus=False)
            self._printer.argument(self._arguments[self._next], replace(verb, letter=letter))
            self._next += 1

    def _flags(self) -> Verb:
        start = self._position
        while self._peek() and self._peek() in "#0+- ":
            self._position += 1
        flags = self._layout[start : self._position]
        return Verb(
            is_left="-" in flags,
            is_plus="+" in flags,
            is_sharp="#" in flags,
            is_space=" " in flags,
            is_zero="0" in flags,
        )

    def _index(self) -> None:
        """Read which argument comes next, as in %[2]d."""
        self._is_after_index = False
        if self._peek() != "[":
            return
        self._is_reordered = True
        match = _INDEX.match(self._layout, self._position)
        end = self._layout.find("]", self._position)
        self._position = end + 1 if end >= 0 else self._position + 1
        self._is_after_index = match is not None
        if match and 1 <= int(match[1]) <= len(self._arguments):
            self._next = int(match[1]) - 1
        else:
            self._is_good_index = False

    def _width(self, verb: Verb) -> Verb:
        if self._peek() == "*":
            width = self._from_argument()
            if width is None:
                self._printer.write("%!(BADWIDTH)")
            elif width < 0:
                return replace(verb, width=-width, is_left=True, is_zero=False)
            return replace(verb, width=width)
        width = self._number()
        if self._is_after_index and width is not None:
            self._is_good_index = False
        return replace(verb, width=width)

    def _precision(self, verb: Verb) -> Verb:
        if self._peek() != "." or self._position + 1 >= len(self._layout):
            return verb
        self._position += 1
        if self._is_after_index:
            self._is_good_index = False
        self._index()
        if self._peek() == "*":
            precision = self._from_argument()
            if precision is None or precision < 0:
                self._printer.write("%!(BADPREC)")
                precision = None
            return replace(verb, precision=precision)
        return replace(verb, precision=self._number() or 0)

    def _from_argument(self) -> int | None:
        self._position += 1
        self._is_after_index = False
        if self._next >= len(self._arguments):
            return None
        value = self._arguments[self._next]
        self._next += 1
        is_fit = value.kind in INTEGERS and abs(value.data) <= _MAX_WIDTH
        return int(value.data) if is_fit else None

    def _number(self) -> int | None:
        start = self._position
        while self._peek() and self._peek() in "0123456789":
            self._position += 1
        digits = self._layout[start : self._position]
        if len(digits.lstrip("0")) > 8 or int(digits or 0) > 10 * _MAX_WIDTH + 9:
            self._position = len(self._layout)  # as Go does with a width beyond all sense
            return None
        return int(digits) if digits else None

    def _extra(self) -> None:
        self._printer.write("%!(EXTRA ")
        for place, value in enumerate(self._arguments[self._next :]):
            if place:
                self._printer.write(", ")
            if value.kind in (Kind.INVALID, Kind.INTERFACE):
                self._printer.write("<nil>")
            else:
                self._printer.write(f"{value.type.name}=")
                self._printer.argument(value, PLAIN)
        self._printer.write(")")


def sprintf(layout: str, *arguments: Value) -> str:
    """Arguments by the verbs of a format."""
    text = _Format(layout, arguments).run()
    return Foreign(text) if isinstance(layout, Foreign) else text


def sprint(*arguments: Value) -> str:
    """Arguments one after the other, with a space between two of which neither is a string."""
    printer = Printer(MAX_SIZE)
    was_string = True
    for argument in arguments:
        is_string = argument.kind is Kind.STRING
        if not is_string and not was_string:
            printer.write(" ")
        printer.argument(argument, PLAIN)
        was_string = is_string
    return printer.text()


def sprintln(*arguments: Value) -> str:
    """Arguments with a space between each two, and a line feed."""
    printer = Printer(MAX_SIZE)
    for place, argument in enumerate(arguments):
        printer.write(" " if place else "")
        printer.argument(argument, PLAIN)
    printer.write("\n")
    return printer.text()
