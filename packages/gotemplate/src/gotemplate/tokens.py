"""Splits a template into text and the tokens of its actions."""

import re
from dataclasses import dataclass
from enum import StrEnum

SPACES = " \t\r\n"
_LEFT, _RIGHT = "{{", "}}"
_TRIMMED_RIGHT = re.compile(r"[ \t\r\n]-\}\}")
# A space before a trim marker belongs to the marker.
_SPACE_RUN = re.compile(r"[ \t\r\n]+?(?=[ \t\r\n]-\}\})|[ \t\r\n]+")
_NUMBER = re.compile(
    r"[+-]?(?:0[xX][0-9a-fA-F_]*(?:\.[0-9a-fA-F_]*)?(?:[pP][+-]?[0-9_]*)?"
    r"|0[oO][0-7_]*(?:\.[0-7_]*)?|0[bB][01_]*(?:\.[01_]*)?"
    r"|[0-9_]*(?:\.[0-9_]*)?(?:[eE][+-]?[0-9_]*)?)i?"
)
_QUOTED = {
    '"': (re.compile(r'"(?:[^"\\\n]|\\[^\n])*"'), "unterminated quoted string"),
    "'": (re.compile(r"'(?:[^'\\\n]|\\[^\n])*'"), "unterminated character constant"),
    "`": (re.compile(r"`[^`]*`"), "unterminated raw quoted string"),
}


class TokenKind(StrEnum):
    """The kinds of tokens, in the words of an error message."""

    TEXT = "text"
    LEFT = "{{"
    RIGHT = "}}"
    SPACE = "space"
    KEYWORD = "keyword"
    IDENTIFIER = "name"
    FIELD = "field"
    VARIABLE = "variable"
    BOOLEAN = "boolean"
    NUMBER = "number"
    CHARACTER = "character"
    STRING = "string"
    DECLARE = ":="
    ASSIGN = "="
    PIPE = "|"
    LEFT_PAREN = "("
    RIGHT_PAREN = ")"
    SYMBOL = "symbol"
    END = "end of the template"
    MISTAKE = "mistake"


_KEYWORDS = frozenset(
    ["block", "break", "continue", "define", "else", "end", "if", "range", "nil", "template", "with"],
)
_SIGNS = {"=": TokenKind.ASSIGN, "|": TokenKind.PIPE, "(": TokenKind.LEFT_PAREN, ")": TokenKind.RIGHT_PAREN}
_QUOTED_KINDS = {'"': TokenKind.STRING, "`": TokenKind.STRING, "'": TokenKind.CHARACTER}


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of a template, and the line it starts on; the text of a mistake says what is wrong."""

    kind: TokenKind
    text: str
    line: int

    def is_keyword(self, *words: str) -> bool:
        return self.kind is TokenKind.KEYWORD and self.text in words

    def __str__(self) -> str:
        if self.kind is TokenKind.END:
            return self.kind.value
        return f"<{self.text}>" if self.kind is TokenKind.KEYWORD else repr(self.text[:20])


class _Mistake(Exception):  # noqa: N818 - never leaves this module
    pass


class _Lexer:
    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0
        self.line = 1
        self.tokens: list[Token] = []

    def run(self) -> list[Token]:
        try:
            while self.position < len(self.text):
                self.read_text()
        except _Mistake as mistake:
            self.tokens.append(Token(TokenKind.MISTAKE, str(mistake), self.line))
        else:
            self.tokens.append(Token(TokenKind.END, "", self.line))
        return self.tokens

    def skip(self, count: int) -> str:
        skipped = self.text[self.position : self.position + count]
        self.position += count
        self.line += skipped.count("\n")
        return skipped

    def emit(self, kind: TokenKind, count: int) -> None:
        line = self.line
        self.tokens.append(Token(kind, self.skip(count), line))

    def read_text(self) -> None:
        start = self.text.find(_LEFT, self.position)
        text = self.text[self.position :] if start < 0 else self.text[self.position : start]
        kept = text
        if start >= 0 and self.has_left_trim(start + 2):
            kept = text.rstrip(SPACES)
        if kept:
            self.emit(TokenKind.TEXT, len(kept))
        self.skip(len(text) - len(kept))
        if start >= 0:
            self.read_action(self.has_left_trim(start + 2))

    def has_left_trim(self, position: int) -> bool:
        after = self.text[position : position + 2]
        return len(after) == 2 and after[0] == "-" and after[1] in SPACES

    def read_action(self, is_trimmed: bool) -> None:
        marker = 2 if is_trimmed else 0
        if self.text.startswith("/*", self.position + 2 + marker):
            self.skip(2 + marker)
            self.read_comment()
            return
        self.emit(TokenKind.LEFT, 2)
        self.skip(marker)
        depth = 0
        while not self.is_at_right():
            if self.position >= len(self.text):
                raise _Mistake("unclosed action")
            depth += self.read_token()
            if depth < 0:
                raise _Mistake("unexpected right parenthesis")
        if depth:
            raise _Mistake("unclosed left parenthesis")
        self.read_right(TokenKind.RIGHT)

    def read_comment(self) -> None:
        end = self.text.find("*/", self.position + 2)
        if end < 0:
            raise _Mistake("unclosed comment")
        start_line = self.line
        self.skip(end + 2 - self.position)
        if not self.is_at_right():
            self.line = start_line
            raise _Mistake("a comment must end right before its closing delimiter")
        self.read_right(None)

    def is_at_right(self) -> bool:
        return self.text.startswith(_RIGHT, self.position) or bool(_TRIMMED_RIGHT.match(self.text, self.position))

    def read_right(self, kind: TokenKind | None) -> None:
        is_trimmed = not self.text.startswith(_RIGHT, self.position)
        self.skip(2 if is_trimmed else 0)
        if kind:
            self.emit(kind, 2)
        else:
            self.skip(2)
        if is_trimmed:
            end = self.position
            while end < len(self.text) and self.text[end] in SPACES:
                end += 1
            self.skip(end - self.position)

    def read_token(self) -> int:
        """Read one token, and return by how much the parentheses get deeper."""
        first = self.text[self.position]
        if first in SPACES:
            self.emit(TokenKind.SPACE, self.matched(_SPACE_RUN))
        elif first in _SIGNS:
            self.emit(_SIGNS[first], 1)
            return {"(": 1, ")": -1}.get(first, 0)
        elif first == ":":
            if not self.text.startswith(":=", self.position):
                raise _Mistake("expected :=")
            self.emit(TokenKind.DECLARE, 2)
        elif first in _QUOTED:
            pattern, complaint = _QUOTED[first]
            if not pattern.match(self.text, self.position):
                raise _Mistake(complaint)
            self.emit(_QUOTED_KINDS[first], self.matched(pattern))
        elif first == "$" or (first == "." and not self.text[self.position + 1 : self.position + 2].isdigit()):
            self.read_name(1, TokenKind.VARIABLE if first == "$" else TokenKind.FIELD)
        elif first in "+-." or "0" <= first <= "9":
            self.read_number()
        elif _is_word(first):
            self.read_name(0, TokenKind.IDENTIFIER)
        elif first.isascii() and first.isprintable():
            self.emit(TokenKind.SYMBOL, 1)
        else:
            raise _Mistake(f"unrecognized character in action: U+{ord(first):04X}")
        return 0

    def matched(self, pattern: re.Pattern[str]) -> int:
        match = pattern.match(self.text, self.position)
        return match.end() - match.start() if match else 0

    def read_name(self, start: int, kind: TokenKind) -> None:
        end = self.position + start
        while end < len(self.text) and _is_word(self.text[end]):
            end += 1
        is_ended = end == len(self.text) or self.text[end] in SPACES + ".,|:)(" or self.text.startswith(_RIGHT, end)
        if not is_ended:
            raise _Mistake(f"bad character U+{ord(self.text[end]):04X} {self.text[end]!r}")
        word = self.text[self.position : end]
        if word == "." or word in _KEYWORDS:
            kind = TokenKind.KEYWORD
        elif word in ("true", "false"):
            kind = TokenKind.BOOLEAN
        self.emit(kind, len(word))

    def read_number(self) -> None:
        length = self.matched(_NUMBER)
        after = self.text[self.position + length : self.position + length + 1]
        if after and (_is_word(after) or after in "+-"):
            raise _Mistake(f"bad number syntax: {self.text[self.position : self.position + length + 1]!r}")
        self.emit(TokenKind.NUMBER, length)


def _is_word(character: str) -> bool:
    return character == "_" or character.isalpha() or character.isdecimal()


def tokens_of(text: str) -> list[Token]:
    """The tokens of a template; the last one is its end, or the mistake that ended the reading."""
    return _Lexer(text).run()
