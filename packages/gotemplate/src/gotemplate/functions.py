"""Functions and methods that templates can call, with the types of their parameters."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from inspect import Parameter, isfunction, signature
from typing import get_type_hints

from gotemplate.foreign import Foreign, has_foreign
from gotemplate.types import ANY, Kind, Type, type_of_hint
from gotemplate.values import Value, typed


@dataclass(frozen=True, slots=True)
class Function:
    """A Python function under its Go name; `rest` is the type of any number of last arguments."""

    name: str
    implementation: Callable[..., object]
    parameters: tuple[Type, ...]
    rest: Type | None
    result: Type

    def parameter(self, position: int) -> Type:
        if position < len(self.parameters):
            return self.parameters[position]
        assert self.rest is not None
        return self.rest

    def mistake_in_count(self, count: int) -> str | None:
        """Say what is wrong with a number of arguments, or None."""
        wanted = len(self.parameters)
        if count == wanted or (self.rest and count > wanted):
            return None
        return f"wrong number of args for {self.name}: want {'at least ' if self.rest else ''}{wanted} got {count}"

    def call(self, arguments: list[Value], receiver: tuple[object, ...] = ()) -> Value:
        """Call it; a parameter of any type gets the value itself, the others get their data.

        A text that it makes of foreign text is foreign. A function that returns a `Value` must see to that itself.
        """
        given = [
            argument if self.parameter(position) is ANY else argument.data
            for position, argument in enumerate(arguments)
        ]
        result = typed(self.result, self.implementation(*receiver, *given))
        if self.result.kind is not Kind.STRING or isinstance(result.data, Foreign):
            return result
        is_foreign = has_foreign(receiver) or any(has_foreign(argument.data) for argument in arguments)
        return Value(result.type, Foreign(result.data)) if is_foreign else result


def _type_of(hint: object) -> Type:
    return ANY if hint is Value else type_of_hint(hint)


def function(name: str, implementation: Callable[..., object], is_method: bool = False) -> Function:
    """A function by the annotations of a Python one; `Value` means any type."""
    hints = get_type_hints(implementation, include_extras=True)
    parameters = list(signature(implementation).parameters.values())[1 if is_method else 0 :]
    rest = [_type_of(hints[each.name]) for each in parameters if each.kind is Parameter.VAR_POSITIONAL]
    fixed = [_type_of(hints[each.name]) for each in parameters if each.kind is not Parameter.VAR_POSITIONAL]
    return Function(name, implementation, tuple(fixed), rest[0] if rest else None, _type_of(hints["return"]))


def functions_of(implementations: Mapping[str, Callable[..., object]]) -> dict[str, Function]:
    """A table of functions by the names that templates call them."""
    return {name: function(name, implementation) for name, implementation in implementations.items()}


@cache
def methods_of(python: type | None) -> Mapping[str, Function]:
    """The methods of a class that templates can call: those with a capital letter."""
    if python is None:
        return {}
    names = [name for name in dir(python) if name[0].isupper() and isfunction(getattr(python, name))]
    return {name: function(name, getattr(python, name), is_method=True) for name in names}


def has_string(value: Value) -> bool:
    """Whether a value says itself how it reads, with a method String."""
    target = value.type.element if value.type.element and value.kind == "ptr" else value.type
    return "String" in methods_of(target.python)
