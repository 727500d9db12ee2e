"""Workflows with inputs: a function that calls stages on what a request brings is recorded as a graph, and can be run.

    @fairway.workflow(name="read-document", slo="2s")
    def read_document(image: bytes):
        page = Decode()(image)
        return Join()(Read()(Detect()(page)), page)

The function is called once, with something that stands for each input; the stages that it calls record the graph. What
it returns, results inside lists, tuples and dictionaries too, is what a request is answered with. A workflow that is
called in another one becomes part of it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, overload

from fairway.errors import InputError
from fairway.quantities import seconds_of
from fairway.workflows.compose import Input
from fairway.workflows.execution import run_alone
from fairway.workflows.recording import PLAIN_TYPES, Recording, Samples


@dataclass(frozen=True, eq=False)
class WorkflowFunction:
    """A function that is a workflow: `recorded` is its graph, `run` runs it in this process."""

    function: Callable[..., Any]
    name: str
    slo_seconds: float | None = None
    samples: Samples | None = None

    def __call__(self, *arguments: Any, **named_arguments: Any) -> Any:
        """Record its stages as part of another workflow; runs nothing."""
        return self.function(*arguments, **named_arguments)

    @cached_property
    def recorded(self) -> Recording:
        """The workflow as a graph; refuses a function that cannot be recorded."""
        where = f"workflow '{self.name}'"
        parameters = _parameters(self.function, where)
        inputs = {name: Input(name) for name in parameters}
        try:
            returned = self.function(**inputs)
        except (InputError, TypeError) as error:
            raise InputError(f"{where}: {error}") from error
        except Exception as error:
            raise InputError(f"{where} cannot be recorded: {type(error).__name__}: {error}") from error
        return Recording(
            name=self.name,
            inputs=tuple(parameters),
            returned=returned,
            slo_seconds=self.slo_seconds,
            input_types={
                name: parameter.annotation
                for name, parameter in parameters.items()
                if parameter.annotation in PLAIN_TYPES
            },
            defaults={
                name: parameter.default
                for name, parameter in parameters.items()
                if parameter.default is not inspect.Parameter.empty
            },
            samples=self.samples,
        )

    def run(self, **inputs: Any) -> Any:
        """Run it in this process, without any server: loads its models, runs its stages, lets the models go."""
        return run_alone(self.recorded, inputs)


@overload
def workflow(function: Callable[..., Any], /) -> WorkflowFunction: ...
@overload
def workflow(
    *, name: str | None = ..., slo: float | str | None = ..., samples: Samples | None = ...
) -> Callable[[Callable[..., Any]], WorkflowFunction]: ...


def workflow(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    slo: float | str | None = None,
    samples: Samples | None = None,
) -> Any:
    """Make a workflow of a function; its name is the function's, with hyphens, unless another is given.

    `slo` is how soon a request should be answered, as in "2s". `samples` makes inputs to measure the workflow with.
    """

    def decorate(function: Callable[..., Any]) -> WorkflowFunction:
        called = function.__name__.replace("_", "-") if name is None else name
        if not called:
            raise InputError("@workflow: an empty name given, expected text of at least one character")
        try:
            seconds = None if slo is None else seconds_of(slo)
        except InputError as error:
            raise InputError(f"workflow '{called}': slo: {error}") from None
        return WorkflowFunction(function, called, seconds, samples)

    return decorate if function is None else decorate(function)


def _parameters(function: Callable[..., Any], where: str) -> dict[str, inspect.Parameter]:
    try:
        signature = inspect.signature(function, eval_str=True)
    except (NameError, SyntaxError, TypeError):  # annotations that only a type checker understands
        signature = inspect.signature(function)
    for name, parameter in signature.parameters.items():
        if parameter.kind not in {inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY}:
            raise InputError(f"{where}: parameter '{name}' has no name that a request could use; write it out by name")
    return dict(signature.parameters)
