"""Go's text/template in Python, so that templates written for Burrow work unchanged."""

from collections.abc import Mapping
from dataclasses import dataclass

from gotemplate.budget import Budget, Limits
from gotemplate.errors import CallError, LimitReached, TemplateError
from gotemplate.evaluate import Evaluator
from gotemplate.foreign import Foreign, Part, Source, parts_of
from gotemplate.functions import Function
from gotemplate.nodes import Definitions
from gotemplate.parser import definitions_of
from gotemplate.render import Rendering
from gotemplate.standard import STANDARD
from gotemplate.values import to_bytes

__all__ = ["Foreign", "Limits", "Part", "Source", "Template", "TemplateError", "parse"]


@dataclass(frozen=True, slots=True)
class Template:
    """A parsed template, which can be rendered any number of times."""

    name: str
    definitions: Definitions
    functions: Mapping[str, Function]
    limits: Limits

    def render(self, data: object) -> str:
        """Render the template with some data; a TemplateError says why it fails."""
        return to_bytes(self._output(data)).decode("utf-8", "replace")

    def render_parts(self, data: object) -> tuple[Part, ...]:
        """The parts of what it renders: those that come from a `Foreign` of the data, and all others."""
        return parts_of(self._output(data))

    def _output(self, data: object) -> str:
        budget = Budget(self.limits)
        evaluator = Evaluator(self.name, self.functions, budget)
        try:
            Rendering(self.definitions, evaluator, budget).run(self.name, data)
        except (CallError, LimitReached) as error:
            raise evaluator.fail(str(error)) from None
        except RecursionError:
            raise evaluator.fail("the data is nested too deeply") from None
        return budget.output()


def parse(
    text: str,
    name: str = "template",
    functions: Mapping[str, Function] | None = None,
    limits: Limits | None = None,
) -> Template:
    """Parse a template; a TemplateError names the mistake and its line."""
    known = {**STANDARD, **(functions or {})}
    try:
        return Template(name, definitions_of(text, name, known), known, limits or Limits())
    except RecursionError:
        raise TemplateError(name, 1, "nested too deeply") from None
