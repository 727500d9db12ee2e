"""Workflows from Python: functions become stages, and calling them on each other's results records the graph.

    @stage(model="opt", seconds=0.561, output_bytes=2048)
    def draft(question): ...

    @stage(model="nli", seconds=0.027)
    def classify(text): ...

    workflow = workflow_of(classify(draft("question")), models={"opt": 6_141_853_204, "nli": 2_297_807_503})

A call runs nothing: it only says whose output goes where. `draft.function` is the function itself. Arguments that are
not results of other stages are kept as they are. A stage that is called twice is two stages of the workflow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fairway.errors import InputError
from fairway.workflows.graph import Workflow
from fairway.workflows.model import GivenSeconds, Model, Stage


@dataclass(frozen=True, eq=False)
class Call:
    """One use of a stage in a workflow: what it was called with, results of other stages among it."""

    of: StageFunction
    arguments: tuple[Any, ...]
    named_arguments: Mapping[str, Any]

    @property
    def inputs(self) -> tuple[Call, ...]:
        """The calls whose results this one takes, each once, in the order of the arguments."""
        return tuple(dict.fromkeys(_calls_in((self.arguments, tuple(self.named_arguments.values())))))

    def __bool__(self) -> bool:
        raise TypeError(f"the result of stage '{self.of.stage.name}' is not known while a workflow is being recorded")


@dataclass(frozen=True, eq=False)
class StageFunction:
    """A function that is a stage: calling it records one use of it."""

    function: Callable[..., Any]
    stage: Stage
    models: tuple[Model, ...]

    def __call__(self, *arguments: Any, **named_arguments: Any) -> Call:
        """Record one use of the stage; runs nothing."""
        return Call(self, arguments, named_arguments)


def stage(
    *,
    seconds: GivenSeconds,
    model: str | Model | None = None,
    models: Sequence[str | Model] = (),
    input_bytes: int | None = None,
    output_bytes: int = 0,
    name: str | None = None,
) -> Callable[[Callable[..., Any]], StageFunction]:
    """Make a stage of a function; its name is the function's unless another is given."""
    needed = (*(() if model is None else (model,)), *models)

    def decorate(function: Callable[..., Any]) -> StageFunction:
        called = function.__name__ if name is None else name
        recorded = Stage.of(
            called,
            seconds,
            models=[each.name if isinstance(each, Model) else each for each in needed],
            input_bytes=input_bytes,
            output_bytes=output_bytes,
        )
        return StageFunction(function, recorded, tuple(each for each in needed if isinstance(each, Model)))

    return decorate


def workflow_of(*results: Call, models: Mapping[str, Model | int] | None = None, name: str = "workflow") -> Workflow:
    """The workflow that ends in these results: every call that they depend on, inputs first.

    `models` gives the bytes of each model that stages know by name alone.
    """
    calls = _in_order(results)
    names = _own_names(calls)
    known: dict[str, Model] = {}
    for model in (model for call in calls for model in call.of.models):
        if known.setdefault(model.name, model) != model:
            raise InputError(
                f"model '{model.name}': {model.bytes} and {known[model.name].bytes} bytes given; choose one"
            )
    for called, size in (models or {}).items():
        known[called] = size if isinstance(size, Model) else _model(called, size)
    return Workflow(
        stages=tuple(replace(call.of.stage, name=names[call]) for call in calls),
        edges=tuple((names[source], names[call]) for call in calls for source in call.inputs),
        models=known,
        name=name,
    )


def _model(name: str, size: object) -> Model:
    if isinstance(size, bool) or not isinstance(size, int) or size < 0:
        raise InputError(f"models.{name}: {size} given, expected a whole number >= 0 (bytes)")
    return Model(name, size)


def _calls_in(value: object) -> Iterator[Call]:
    """The calls in an argument, inside lists, tuples and dictionaries too."""
    if isinstance(value, Call):
        yield value
    elif isinstance(value, list | tuple):
        for member in value:
            yield from _calls_in(member)
    elif isinstance(value, dict):
        yield from _calls_in(tuple(value.values()))


def _in_order(results: Sequence[Call]) -> list[Call]:
    """Every call that the results depend on, each after its inputs; without recursion, as chains may be long."""
    order: dict[Call, None] = {}
    waiting = [(call, False) for call in reversed(results)]
    while waiting:
        call, ready = waiting.pop()
        if not isinstance(call, Call):
            raise InputError(f"{call!r} given, expected what a stage returns when it is called")
        if call in order:
            continue
        if ready:
            order[call] = None
        else:
            waiting.append((call, True))
            waiting.extend((source, False) for source in reversed(call.inputs))
    return list(order)


def _own_names(calls: Sequence[Call]) -> dict[Call, str]:
    """A name for each call: that of its stage, with a number from the second use on."""
    names: dict[Call, str] = {}
    taken = {call.of.stage.name for call in calls}
    uses: dict[str, int] = {}
    for call in calls:
        name = base = call.of.stage.name
        uses[base] = uses.get(base, 0) + 1
        if uses[base] > 1:
            while (name := f"{base}-{uses[base]}") in taken:
                uses[base] += 1
            taken.add(name)
        names[call] = name
    return names
