"""Parses the statements of a template, and the templates that it defines."""

from collections.abc import Container

from gotemplate.nodes import (
    Action,
    Body,
    Branch,
    Break,
    Conditional,
    Continue,
    Invocation,
    Range,
    Statement,
    Text,
)
from gotemplate.pipelines import PipelineParser
from gotemplate.tokens import Token, TokenKind, tokens_of


class _Parser(PipelineParser):
    def __init__(self, text: str, name: str, functions: Container[str]) -> None:
        super().__init__(tokens_of(text), name, functions)
        self._definitions: dict[str, Body] = {}
        self._ranges = 0

    def run(self) -> dict[str, Body]:
        statements: list[Statement] = []
        while (token := self.next()).kind is not TokenKind.END:
            if token.kind is TokenKind.TEXT:
                statements.append(Text(token.line, token.text))
                continue
            word = self.next_word()
            if word.is_keyword("define"):
                self._definition()
            elif word.is_keyword("end", "else"):
                self._end_of(word)
                raise self.fail(f"unexpected {{{{{word.text}}}}}")
            else:
                statements.append(self._action(word))
        self._define(self._name, tuple(statements))
        return self._definitions

    def _define(self, name: str, body: Body) -> None:
        if _is_empty(self._definitions.get(name, ())):
            self._definitions[name] = body
        elif not _is_empty(body):
            raise self.fail(f'multiple definition of template "{name}"')

    def _definition(self) -> None:
        name = self.unquoted(self.expect(TokenKind.STRING, "define clause"))
        self.expect(TokenKind.RIGHT, "define clause")
        self._define(name, self._template_body("define clause"))

    def _template_body(self, context: str) -> Body:
        """What stands in a template of its own, which sees no variable and no range around it."""
        outside = self._variables, self._ranges
        self._variables, self._ranges = ["$"], 0
        self.enter()
        body, ending = self._body()
        self.leave()
        if not ending.is_keyword("end"):
            raise self.unexpected(ending, context)
        self._variables, self._ranges = outside
        return body

    def _body(self) -> tuple[Body, Token]:
        """Statements up to an end or else, and which of the two it was."""
        statements: list[Statement] = []
        while True:
            token = self.next_word()
            if token.kind is TokenKind.TEXT:
                statements.append(Text(token.line, token.text))
            elif token.kind is TokenKind.LEFT:
                word = self.next_word()
                if word.is_keyword("end", "else"):
                    self._end_of(word)
                    return tuple(statements), word
                statements.append(self._action(word))
            else:
                raise self.unexpected(token, "input")

    def _end_of(self, word: Token) -> None:
        """Pass over what follows an end or else; an `else if` is read on as an `if`."""
        if word.text == "end" or not self.peek_word().is_keyword("if", "with"):
            self.expect(TokenKind.RIGHT, word.text)

    def _action(self, word: Token) -> Statement:
        if word.is_keyword("if", "with"):
            return self._conditional(word)
        if word.is_keyword("range"):
            return self._range(word)
        if word.is_keyword("break", "continue"):
            self.expect(TokenKind.RIGHT, f"{{{{{word.text}}}}}")
            if not self._ranges:
                raise self.fail(f"{{{{{word.text}}}}} outside {{{{range}}}}")
            return Break(word.line) if word.text == "break" else Continue(word.line)
        if word.is_keyword("template", "block"):
            return self._invocation(word)
        if word.kind is not TokenKind.END:
            self.back()
        return Action(word.line, self.pipeline("command"))

    def _conditional(self, word: Token) -> Conditional:
        visible = len(self._variables)
        branches: list[Branch] = []
        otherwise: Body = ()
        self.enter()
        while True:
            pipeline = self.pipeline(word.text)
            body, ending = self._body()
            branches.append(Branch(pipeline.line, pipeline, body))
            if ending.is_keyword("end"):
                break
            if self.peek().is_keyword(word.text):
                self.next()
                continue
            otherwise = self._otherwise()
            break
        self.leave()
        del self._variables[visible:]
        return Conditional(word.line, tuple(branches), otherwise, is_with=word.text == "with")

    def _otherwise(self) -> Body:
        body, ending = self._body()
        if not ending.is_keyword("end"):
            raise self.fail("expected {{end}}; found a second {{else}}")
        return body

    def _range(self, word: Token) -> Range:
        visible = len(self._variables)
        self.enter()
        pipeline = self.pipeline("range")
        self._ranges += 1
        body, ending = self._body()
        self._ranges -= 1
        otherwise = self._otherwise() if ending.is_keyword("else") else ()
        self.leave()
        del self._variables[visible:]
        return Range(word.line, pipeline, body, otherwise)

    def _invocation(self, word: Token) -> Invocation:
        context = f"{word.text} clause"
        token = self.next_word()
        if token.kind is not TokenKind.STRING:
            raise self.unexpected(token, context)
        name = self.unquoted(token)
        if word.text == "template" and self.peek_word().kind is TokenKind.RIGHT:
            self.next()
            return Invocation(token.line, name, None)
        pipeline = self.pipeline(context)
        if word.text == "block":
            self._define(name, self._template_body(context))
        return Invocation(token.line, name, pipeline)


def _is_empty(body: Body) -> bool:
    return all(isinstance(statement, Text) and not statement.text.strip() for statement in body)


def definitions_of(text: str, name: str, functions: Container[str]) -> dict[str, Body]:
    """The template of a text under its name, and those it defines under theirs."""
    return _Parser(text, name, functions).run()
