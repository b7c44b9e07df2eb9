"""Parses the pipelines of a template from its tokens."""

from collections.abc import Container

from gotemplate.errors import TemplateError
from gotemplate.literals import character_literal, number_literal, unquote
from gotemplate.nodes import (
    Chain,
    Command,
    Dot,
    Field,
    Identifier,
    Literal,
    Nil,
    Operand,
    Pipeline,
    Variable,
)
from gotemplate.tokens import Token, TokenKind

# Enough for any template written by hand, and far from the end of Python's stack.
MAX_NESTING = 50

_OPERANDS = frozenset(
    {
        TokenKind.BOOLEAN,
        TokenKind.CHARACTER,
        TokenKind.FIELD,
        TokenKind.IDENTIFIER,
        TokenKind.NUMBER,
        TokenKind.STRING,
        TokenKind.VARIABLE,
        TokenKind.LEFT_PAREN,
    }
)


class PipelineParser:
    """The part of the parser that knows tokens, variables and pipelines."""

    def __init__(self, tokens: list[Token], name: str, functions: Container[str]) -> None:
        self._tokens = tokens
        self._name = name
        self._functions = functions
        self._index = 0
        self._furthest = 0
        self._nesting = 0
        self._variables = ["$"]

    def fail(self, what: str) -> TemplateError:
        return TemplateError(self._name, self._tokens[self._furthest].line, what)

    def unexpected(self, token: Token, context: str) -> TemplateError:
        return self.fail(f"unexpected {token} in {context}")

    def peek(self) -> Token:
        self._furthest = max(self._furthest, self._index)
        return self._tokens[self._index]

    def peek_word(self) -> Token:
        """The next token that is no space; the spaces before it are passed over."""
        while self.peek().kind is TokenKind.SPACE:
            self._index += 1
        return self.peek()

    def next(self) -> Token:
        token = self.peek()
        if token.kind is TokenKind.MISTAKE:
            raise self.fail(token.text)
        if token.kind is not TokenKind.END:
            self._index += 1
        return token

    def next_word(self) -> Token:
        self.peek_word()
        return self.next()

    def back(self) -> None:
        self._index -= 1

    def expect(self, kind: TokenKind, context: str) -> Token:
        token = self.next_word()
        if token.kind is not kind:
            raise self.unexpected(token, context)
        return token

    def enter(self) -> None:
        self._nesting += 1
        if self._nesting > MAX_NESTING:
            raise self.fail(f"nested more than {MAX_NESTING} deep")

    def leave(self) -> None:
        self._nesting -= 1

    def pipeline(self, context: str, end: TokenKind = TokenKind.RIGHT) -> Pipeline:
        """Variables to keep the result, if any, then commands up to the end."""
        line = self.peek_word().line
        variables, is_assignment = self._declarations(context)
        commands: list[Command] = []
        while (token := self.next_word()).kind is not end:
            if token.kind not in _OPERANDS and not token.is_keyword(".", "nil"):
                raise self.unexpected(token, context)
            self.back()
            commands.append(self._command())
        if not commands:
            raise self.fail(f"missing value for {context}")
        for stage, command in enumerate(commands[1:], 2):
            if isinstance(command.operands[0], Dot | Nil | Literal):
                raise self.fail(f"non executable command in pipeline stage {stage}")
        return Pipeline(line, tuple(commands), variables, is_assignment)

    def _declarations(self, context: str) -> tuple[tuple[str, ...], bool]:
        variables: list[str] = []
        is_assignment = False
        while self.peek_word().kind is TokenKind.VARIABLE:
            start = self._index
            variable = self.next()
            after = self.peek_word()
            is_last = after.kind in (TokenKind.ASSIGN, TokenKind.DECLARE)
            if not is_last and after.text != ",":
                self._index = start  # an argument, not a declaration
                break
            self.next()
            variables.append(variable.text)
            self._variables.append(variable.text)
            if is_last:
                is_assignment = after.kind is TokenKind.ASSIGN
                break
            if context != "range" or len(variables) > 1:
                raise self.fail(f"too many declarations in {context}")
            if self.peek_word().kind not in (TokenKind.VARIABLE, TokenKind.RIGHT, TokenKind.RIGHT_PAREN):
                raise self.fail("range can only initialize variables")
        return tuple(variables), is_assignment

    def _command(self) -> Command:
        line = self.peek_word().line
        operands: list[Operand] = []
        while True:
            operand = self._operand()
            if operand:
                operands.append(operand)
            token = self.next()
            if token.kind is TokenKind.SPACE:
                continue
            if token.kind in (TokenKind.RIGHT, TokenKind.RIGHT_PAREN):
                self.back()
            elif token.kind is not TokenKind.PIPE:
                raise self.unexpected(token, "operand")
            break
        if not operands:
            raise self.fail("empty command")
        return Command(line, tuple(operands))

    def _operand(self) -> Operand | None:
        term = self._term()
        if term is None or self.peek().kind is not TokenKind.FIELD:
            return term
        line = self.peek().line
        names: list[str] = []
        while self.peek().kind is TokenKind.FIELD:
            names.append(self.next().text[1:])
        match term:
            case Field():
                return Field(line, (*term.names, *names))
            case Variable():
                return Variable(line, term.name, (*term.names, *names))
            case Dot() | Nil() | Literal():
                raise self.fail("unexpected . after a value that has no fields")
            case _:
                return Chain(line, term, tuple(names))

    def _term(self) -> Operand | None:
        token = self.next_word()
        line = token.line
        match token.kind:
            case TokenKind.IDENTIFIER:
                if token.text not in self._functions:
                    raise self.fail(f'function "{token.text}" not defined')
                return Identifier(line, token.text)
            case TokenKind.VARIABLE:
                if token.text not in self._variables:
                    raise self.fail(f'undefined variable "{token.text}"')
                return Variable(line, token.text, ())
            case TokenKind.FIELD:
                return Field(line, (token.text[1:],))
            case TokenKind.BOOLEAN:
                return Literal(line, token.text == "true")
            case TokenKind.CHARACTER | TokenKind.NUMBER | TokenKind.STRING:
                return self._literal(token)
            case TokenKind.LEFT_PAREN:
                self.enter()
                pipeline = self.pipeline("parenthesized pipeline", TokenKind.RIGHT_PAREN)
                self.leave()
                return pipeline
        if token.is_keyword("."):
            return Dot(line)
        if token.is_keyword("nil"):
            return Nil(line)
        if token.kind is not TokenKind.END:
            self.back()
        return None

    def _literal(self, token: Token) -> Literal:
        if token.kind is TokenKind.STRING:
            return Literal(token.line, self.unquoted(token))
        read = character_literal if token.kind is TokenKind.CHARACTER else number_literal
        try:
            return Literal(token.line, read(token.text))
        except ValueError as error:
            raise self.fail(str(error)) from None

    def unquoted(self, token: Token) -> str:
        """The string that a literal means."""
        try:
            return unquote(token.text)
        except ValueError as error:
            raise self.fail(str(error)) from None
