"""Jinja2 templates: sandboxed, strict about undefined names, and limited in steps and output."""

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
from warren.notify.slack_markup import escape_markup_once
from warren.notify.summary import link_to, time_lag_words

SUFFIXES = (".j2", ".jinja", ".jinja2")


@dataclass(frozen=True, slots=True)
class JinjaTemplate:
    """A parsed Jinja2 template; only one thread at a time may render it."""

    name: str
    template: Template
    extras: Mapping[str, str]
    external_url: str | None
    limits: Limits

    def render(self, notification: Notification) -> str:
        """Render a notification; a TemplateError says why it fails."""
        budget = Budget(self.limits)
        assert isinstance(self.template.environment, _Sandbox)
        self.template.environment.budget = budget
        try:
            for piece in self.template.root_render_func(self.template.new_context(variables(notification, self))):
                budget.write(piece)
        except RecursionError:
            raise TemplateError(self.name, 1, "macros call each other too deeply") from None
        except Exception as error:  # noqa: BLE001 - a template can raise anything
            line = _line(error.__traceback__, self.template)
            raise TemplateError(self.name, line, str(error) or type(error).__name__) from None
        return budget.output()


def parse(
    text: str, name: str, extras: Mapping[str, str], external_url: str | None, limits: Limits | None = None
) -> JinjaTemplate:
    """Parse a template; a TemplateError names the mistake and its line."""
    sandbox = _Sandbox(undefined=StrictUndefined, autoescape=False, keep_trailing_newline=True)
    sandbox.filters["slackescape"] = lambda text: escape_markup_once(str(text))
    try:
        return JinjaTemplate(name, sandbox.from_string(text), extras, external_url, limits or Limits())
    except TemplateSyntaxError as error:
        raise TemplateError(name, error.lineno, error.message or "the template cannot be parsed") from None
    except RecursionError:
        raise TemplateError(name, 1, "nested too deeply") from None
    except Exception as error:  # noqa: BLE001 - constant expressions are already evaluated here
        raise TemplateError(name, 1, str(error) or type(error).__name__) from None


def variables(notification: Notification, template: JinjaTemplate) -> dict[str, Any]:
    """All names that a template can use."""
    result = msgspec.to_builtins(notification.result)
    group = {
        "group": notification.group,
        "status": result["status"],
        "totallag": result["totallag"],
        "partitions": len(result["partitions"]),
        "seconds_behind": result["seconds_behind"],
    }
    # Only a storm has these keys, which the API's status does not have.
    groups, group_count = result.pop("groups", [group]), result.pop("group_count", 1)
    return {
        "cluster": notification.cluster,
        "group": notification.group,
        "id": notification.incident,
        "start": datetime.fromtimestamp(notification.opened_ms / 1000, UTC),
        "event": str(notification.event),
        "status": result["status"],
        "why": notification.reason,
        "team": notification.team,
        "channel": notification.channel,
        "extras": template.extras,
        "key": notification.token,
        "link": link_to(notification, template.external_url),
        "result": result,
        "groups": groups,
        "group_count": group_count,
        "time_lag": time_lag_words(notification),
    }


class _CountingGenerator(CodeGenerator):
    """Spends a step of the budget at each entry into a block: each iteration of a loop, each call of a macro.

    A single Python operation is not limited, such as a string times a number or a very wide filter.
    """

    def blockvisit(self, nodes: Iterable[Node], frame: Frame) -> None:
        self.writeline("environment.budget.spend()")
        super().blockvisit(nodes, frame)


class _Sandbox(ImmutableSandboxedEnvironment):
    code_generator_class = _CountingGenerator
    budget = Budget(Limits())


def _line(trace: TracebackType | None, template: Template) -> int:
    """The line of the template that raised; 1 if it is unknown."""
    line = 1
    while trace is not None:
        if trace.tb_frame.f_globals.get("__jinja_template__") is template:
            line = template.get_corresponding_lineno(trace.tb_lineno)
        trace = trace.tb_next
    return line
