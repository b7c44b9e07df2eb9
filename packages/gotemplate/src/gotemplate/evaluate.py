"""Evaluates the pipelines of a template."""

from collections.abc import Mapping
from dataclasses import dataclass

from gotemplate.budget import Budget
from gotemplate.errors import CallError, TemplateError
from gotemplate.functions import Function, methods_of
from gotemplate.literals import NumberLiteral
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
from gotemplate.types import ANY, FLOATS, SIGNED, UNSIGNED, Kind, Type, fields_of
from gotemplate.values import MISSING, Value, can_be_nil, indirect, is_true, typed, value_of, zero_of

_SHORT_CIRCUITS = {"and": False, "or": True}


class Variables:
    """The variables in sight, the latest of a name first."""

    def __init__(self, dollar: Value) -> None:
        self._stack: list[tuple[str, Value]] = [("$", dollar)]

    def mark(self) -> int:
        return len(self._stack)

    def drop_since(self, mark: int) -> None:
        del self._stack[mark:]

    def declare(self, name: str, value: Value) -> None:
        self._stack.append((name, value))

    def find(self, name: str) -> int | None:
        for position in range(len(self._stack) - 1, -1, -1):
            if self._stack[position][0] == name:
                return position
        return None

    def assign(self, position: int, value: Value) -> None:
        self._stack[position] = (self._stack[position][0], value)

    def at(self, position: int) -> Value:
        return self._stack[position][1]


@dataclass(frozen=True, slots=True)
class Scope:
    """Where a pipeline is evaluated: the value at hand and the variables."""

    dot: Value
    variables: Variables


class Evaluator:
    """Evaluates pipelines, and knows the line it is at for whoever has to complain."""

    def __init__(self, name: str, functions: Mapping[str, Function], budget: Budget) -> None:
        self._name = name
        self._functions = functions
        self._budget = budget
        self.line = 1

    def fail(self, what: str) -> TemplateError:
        return TemplateError(self._name, self.line, what)

    def pipeline(self, node: Pipeline, scope: Scope) -> Value:
        """The result of the last command, which the variables of the pipeline keep."""
        self.line = node.line
        value: Value | None = None
        for command in node.commands:
            value = self._command(command, scope, value)
            if value.kind is Kind.INTERFACE:  # only nil is still in its interface
                value = MISSING
        assert value is not None
        for name in node.variables:
            if node.is_assignment:
                self.assign(name, value, scope)
            else:
                scope.variables.declare(name, value)
        return value

    def assign(self, name: str, value: Value, scope: Scope) -> None:
        scope.variables.assign(self._position(name, scope), value)

    def _position(self, name: str, scope: Scope) -> int:
        position = scope.variables.find(name)
        if position is None:
            raise self.fail(f"undefined variable: {name}")
        return position

    def _command(self, node: Command, scope: Scope, final: Value | None) -> Value:
        self._budget.spend()
        first, arguments = node.operands[0], node.operands[1:]
        self.line = first.line
        if isinstance(first, Field | Chain | Identifier) or (isinstance(first, Variable) and first.names):
            return self._operand(first, scope, arguments, final)
        if arguments or final is not None:
            raise self.fail("can't give argument to non-function")
        if isinstance(first, Nil):
            raise self.fail("nil is not a command")
        return self._ideal(first) if isinstance(first, Literal) else self._operand(first, scope)

    def _operand(
        self, node: Operand, scope: Scope, arguments: tuple[Operand, ...] = (), final: Value | None = None
    ) -> Value:
        match node:
            case Dot():
                return scope.dot
            case Field():
                return self._fields(scope.dot, node.names, scope, arguments, final)
            case Variable():
                value = scope.variables.at(self._position(node.name, scope))
                return self._fields(value, node.names, scope, arguments, final) if node.names else value
            case Identifier():
                return self._call(self._functions[node.name], (), scope, arguments, final)
            case Pipeline():
                return self.pipeline(node, scope)
            case Chain():
                if isinstance(node.operand, Nil):
                    raise self.fail("indirection through explicit nil")
                value = self._operand(node.operand, scope)
                return self._fields(value, node.names, scope, arguments, final)
        raise self.fail("can't evaluate command")

    def _fields(
        self, value: Value, names: tuple[str, ...], scope: Scope, arguments: tuple[Operand, ...], final: Value | None
    ) -> Value:
        for name in names[:-1]:
            value = self._field(value, name, scope, (), None)
        return self._field(value, names[-1], scope, arguments, final)

    def _field(
        self, value: Value, name: str, scope: Scope, arguments: tuple[Operand, ...], final: Value | None
    ) -> Value:
        if value.kind is Kind.INVALID:
            return MISSING
        target = indirect(value)
        is_nil_pointer = target.kind in (Kind.POINTER, Kind.INTERFACE)
        python = target.type.held.python if target.kind is Kind.POINTER else target.type.python
        if (method := methods_of(python).get(name)) and not is_nil_pointer:
            return self._call(method, (target.data,), scope, arguments, final)
        if is_nil_pointer:
            raise self.fail(f"nil pointer evaluating {value.type.name}.{name}")
        if target.kind is Kind.STRUCT and python and (declared := fields_of(python).get(name)):
            if arguments or final is not None:
                raise self.fail(f"{name} has arguments but cannot be invoked as function")
            return typed(declared, getattr(target.data, name))
        if target.kind is Kind.MAP:
            if arguments or final is not None:
                raise self.fail(f"{name} is not a method but has arguments")
            held = target.data or {}
            return typed(target.type.held, held[name]) if name in held else MISSING
        raise self.fail(f"can't evaluate field {name} in type {value.type.name}")

    def _call(
        self,
        called: Function,
        receiver: tuple[object, ...],
        scope: Scope,
        arguments: tuple[Operand, ...],
        final: Value | None,
    ) -> Value:
        line = self.line
        mistake = called.mistake_in_count(len(arguments) + (final is not None))
        if mistake:
            raise self.fail(mistake)
        if called.name in _SHORT_CIRCUITS:
            return self._short_circuit(_SHORT_CIRCUITS[called.name], scope, arguments, final)
        given = [self._argument(node, called.parameter(place), scope) for place, node in enumerate(arguments)]
        if final is not None:
            given.append(self._assignable(final, called.parameter(len(arguments))))
        for argument in given:
            self._budget.spend_on(argument)
        try:
            result = called.call(given, receiver)
        except (CallError, ArithmeticError, ValueError) as error:
            self.line = line
            raise self.fail(f"error calling {called.name}: {error}") from None
        self._budget.spend_on(result)
        return result

    def _short_circuit(self, ends_at: bool, scope: Scope, arguments: tuple[Operand, ...], final: Value | None) -> Value:
        value = MISSING
        for node in arguments:
            value = self._argument(node, ANY, scope)
            if is_true(value) is ends_at:
                return value
        return value if final is None else final

    def _argument(self, node: Operand, wanted: Type, scope: Scope) -> Value:
        self.line = node.line
        if isinstance(node, Nil):
            if not can_be_nil(wanted):
                raise self.fail(f"cannot assign nil to {wanted.name}")
            return zero_of(wanted)
        if isinstance(node, Literal):
            return self._literal(node, wanted)
        return self._assignable(self._operand(node, scope), wanted)

    def _assignable(self, value: Value, wanted: Type) -> Value:
        if value.kind is Kind.INVALID:
            if not can_be_nil(wanted):
                raise self.fail(f"invalid value; expected {wanted.name}")
            return zero_of(wanted)
        if wanted is ANY or value.type == wanted:
            return value
        if value.kind is Kind.POINTER and value.type.held == wanted:
            if value.data is None:
                raise self.fail(f"dereference of nil pointer of type {wanted.name}")
            return indirect(value)
        raise self.fail(f"wrong type for value; expected {wanted.name}; got {value.type.name}")

    def _ideal(self, node: Literal) -> Value:
        if not isinstance(node.value, NumberLiteral):
            return value_of(node.value)
        if node.value.ideal is None:
            raise self.fail(f"{node.value.text} overflows int")
        return value_of(node.value.ideal)

    def _literal(self, node: Literal, wanted: Type) -> Value:
        literal = node.value
        if wanted is ANY:
            return self._ideal(node)
        if isinstance(literal, bool) and wanted.kind is Kind.BOOL:
            return Value(wanted, literal)
        if isinstance(literal, str) and wanted.kind is Kind.STRING:
            return Value(wanted, literal)
        if isinstance(literal, NumberLiteral):
            number: float | None = None
            if wanted.kind in SIGNED:
                number = literal.integer
            elif wanted.kind in UNSIGNED:
                number = literal.unsigned
            elif wanted.kind in FLOATS:
                number = literal.real
            if number is not None:
                return typed(wanted, number)
        raise self.fail(f"expected {wanted.name}")
