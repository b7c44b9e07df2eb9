"""Templates in Jinja2: in a sandbox, where a name that is not there is a mistake, and within bounds."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from types import TracebackType
from typing import Any

import msgspec
from jinja2 import StrictUndefined, Template, TemplateSyntaxError
from jinja2.compiler import CodeGenerator, Frame
from jinja2.nodes import Node
from jinja2.sandbox import ImmutableSandboxedEnvironment

from gotemplate import Limits, TemplateError
from gotemplate.budget import Budget
from warren.incidents.model import Notification
from warren.notify.links import Links

SUFFIXES = (".j2", ".jinja", ".jinja2")


@dataclass(frozen=True, slots=True)
class JinjaTemplate:
    """A template that has been read; one thread at a time may render it."""

    name: str
    template: Template
    extras: Mapping[str, str]
    links: Links
    limits: Limits

    def render(self, letter: Notification) -> str:
        """What the template says of a letter; a TemplateError says why it cannot."""
        budget = Budget(self.limits)
        assert isinstance(self.template.environment, _Sandbox)
        self.template.environment.budget = budget
        try:
            for piece in self.template.root_render_func(self.template.new_context(names_of(letter, self))):
                budget.write(piece)
        except RecursionError:
            raise TemplateError(self.name, 1, "macros call each other too deeply") from None
        except Exception as error:  # noqa: BLE001 - a template can make any error there is
            line = _line(error.__traceback__, self.template)
            raise TemplateError(self.name, line, str(error) or type(error).__name__) from None
        return budget.output()


def parse(text: str, name: str, extras: Mapping[str, str], links: Links, limits: Limits | None = None) -> JinjaTemplate:
    """Read a template; a TemplateError says what is wrong with it and on which line."""
    sandbox = _Sandbox(undefined=StrictUndefined, autoescape=False, keep_trailing_newline=True)
    try:
        return JinjaTemplate(name, sandbox.from_string(text), extras, links, limits or Limits())
    except TemplateSyntaxError as error:
        raise TemplateError(name, error.lineno, error.message or "cannot be read") from None
    except RecursionError:
        raise TemplateError(name, 1, "nested too deeply") from None
    except Exception as error:  # noqa: BLE001 - what is constant is computed here already
        raise TemplateError(name, 1, str(error) or type(error).__name__) from None


def names_of(letter: Notification, template: JinjaTemplate) -> dict[str, Any]:
    """All that a template can speak of."""
    result = msgspec.to_builtins(letter.result)
    alone = {
        "group": letter.group,
        "status": result["status"],
        "totallag": result["totallag"],
        "partitions": len(result["partitions"]),
    }
    groups, group_count = result.pop("groups", [alone]), result.pop("group_count", 1)
    return {
        "cluster": letter.cluster,
        "group": letter.group,
        "id": letter.incident,
        "start": datetime.fromtimestamp(letter.opened_ms / 1000, UTC),
        "event": str(letter.event),
        "status": result["status"],
        "why": letter.reason,
        "team": letter.team,
        "channel": letter.channel,
        "extras": template.extras,
        "key": letter.token,
        "link": template.links.to(letter),
        "result": result,
        "groups": groups,
        "group_count": group_count,
    }


class _Counted(CodeGenerator):
    """Makes each entry into a block, and so each turn of a loop and each call of a macro, a step of the budget.

    What one operation of Python makes is not bounded, such as a text times a number or a very wide filter.
    """

    def blockvisit(self, nodes: Iterable[Node], frame: Frame) -> None:
        self.writeline("environment.budget.spend()")
        super().blockvisit(nodes, frame)


class _Sandbox(ImmutableSandboxedEnvironment):
    code_generator_class = _Counted
    budget = Budget(Limits())


def _line(trace: TracebackType | None, template: Template) -> int:
    """The line of the template that was at work; the first where none is known."""
    line = 1
    while trace is not None:
        if trace.tb_frame.f_globals.get("__jinja_template__") is template:
            line = template.get_corresponding_lineno(trace.tb_lineno)
        trace = trace.tb_next
    return line
