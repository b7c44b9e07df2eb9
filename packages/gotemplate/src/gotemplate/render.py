"""Runs the statements of a template and writes their output."""

from collections.abc import Generator, Iterable
from dataclasses import dataclass
from itertools import repeat

from gotemplate.budget import Budget
from gotemplate.evaluate import Evaluator, Scope, Variables
from gotemplate.formatting import printed
from gotemplate.nodes import (
    Action,
    Body,
    Break,
    Conditional,
    Continue,
    Definitions,
    Invocation,
    Range,
    Text,
)
from gotemplate.types import INTEGERS, Kind
from gotemplate.values import MISSING, Value, elements, entries, indirect, is_true, typed, value_of


class _Leave(Exception):  # noqa: N818 - a way out of a body, not an error
    def __init__(self, is_break: bool) -> None:
        self.is_break = is_break


# A statement with a body hands it to the loop below instead of calling itself, so templates may call each other
# deeper than Python's stack goes.
_Walk = Generator["_Walk", None, None]


@dataclass(frozen=True, slots=True)
class Rendering:
    """One rendering of a template and those it defines."""

    definitions: Definitions
    evaluator: Evaluator
    budget: Budget

    def run(self, name: str, data: object) -> None:
        dot = MISSING if data is None else value_of(data)
        walks = [self._body(self.definitions[name], Scope(dot, Variables(dot)), 0)]
        leave: _Leave | None = None
        while walks:
            try:
                inner = walks[-1].throw(leave) if leave else next(walks[-1])
            except StopIteration:
                walks.pop()
                leave = None
            except _Leave as raised:
                walks.pop()
                leave = raised
            else:
                walks.append(inner)
                leave = None

    def _body(self, body: Body, scope: Scope, depth: int) -> _Walk:
        for statement in body:
            self.budget.spend()
            self.evaluator.line = statement.line
            match statement:
                case Text():
                    self.budget.write(statement.text)
                case Action():
                    value = self.evaluator.pipeline(statement.pipeline, scope)
                    if not statement.pipeline.variables:
                        self.evaluator.line = statement.line
                        self.budget.write(printed(value, self.budget.limits.size))
                case Conditional():
                    yield self._conditional(statement, scope, depth)
                case Range():
                    yield self._range(statement, scope, depth)
                case Invocation():
                    yield self._invocation(statement, scope, depth)
                case Break() | Continue():
                    raise _Leave(is_break=isinstance(statement, Break))

    def _conditional(self, node: Conditional, scope: Scope, depth: int) -> _Walk:
        mark = scope.variables.mark()
        chosen, inner = node.otherwise, scope
        for branch in node.branches:
            value = self.evaluator.pipeline(branch.pipeline, scope)
            if is_true(value):
                chosen = branch.body
                inner = Scope(value, scope.variables) if node.is_with else scope
                break
        yield self._body(chosen, inner, depth)
        scope.variables.drop_since(mark)

    def _invocation(self, node: Invocation, scope: Scope, depth: int) -> _Walk:
        if node.name not in self.definitions:
            raise self.evaluator.fail(f'template "{node.name}" not defined')
        if depth == self.budget.limits.depth:
            raise self.evaluator.fail(f"exceeded maximum template depth ({depth})")
        dot = self.evaluator.pipeline(node.pipeline, scope) if node.pipeline else MISSING
        yield self._body(self.definitions[node.name], Scope(dot, Variables(dot)), depth + 1)

    def _range(self, node: Range, scope: Scope, depth: int) -> _Walk:
        outside = scope.variables.mark()
        value = indirect(self.evaluator.pipeline(node.pipeline, scope))
        mark = scope.variables.mark()
        is_empty = True
        for key, element in self._pairs(value, node):
            is_empty = False
            self.budget.spend()
            self._keep(node, key, element, scope, mark)
            try:
                yield self._body(node.body, Scope(element, scope.variables), depth)
            except _Leave as leave:
                if leave.is_break:
                    break
            finally:
                scope.variables.drop_since(mark)
        if is_empty:
            yield self._body(node.otherwise, scope, depth)
        scope.variables.drop_since(outside)

    def _keep(self, node: Range, key: Value, element: Value, scope: Scope, mark: int) -> None:
        """Give the variables of a range the element, and before it the key where there are two."""
        names = node.pipeline.variables
        values = (key, element) if len(names) > 1 else (element,)
        for place, (name, value) in enumerate(zip(names, values, strict=False)):
            if node.pipeline.is_assignment:
                self.evaluator.assign(name, value, scope)
            else:
                scope.variables.assign(mark - len(names) + place, value)

    def _pairs(self, value: Value, node: Range) -> Iterable[tuple[Value, Value]]:
        if value.kind in INTEGERS:
            if len(node.pipeline.variables) > 1:
                raise self.evaluator.fail(f"can't use {value.data} to iterate over more than one variable")
            return zip(repeat(MISSING), (typed(value.type, number) for number in range(value.data)), strict=False)
        if value.kind is Kind.SLICE:
            return ((value_of(place), element) for place, element in enumerate(elements(value)))
        if value.kind is Kind.MAP:
            return ((value_of(key), element) for key, element in entries(value))
        if value.kind is Kind.INVALID:
            return ()
        raise self.evaluator.fail(f"range can't iterate over {printed(value, self.budget.limits.size)}")
