"""Workflows from Python: functions and classes become stages, and calling them on results records the graph.

    @stage(model="opt", seconds=0.561, output_bytes=2048)
    def draft(question): ...

    @stage(model="nli", seconds=0.027)
    def classify(text): ...

    workflow = workflow_of(classify(draft("question")), models={"opt": 6_141_853_204, "nli": 2_297_807_503})

A call runs nothing: it only says whose output goes where. `draft.function` is the function itself. Arguments that are
not results of other stages are kept as they are. A stage that is called twice is two stages of the workflow. Classes
that load a model and run it on batches are in `stage_class`, workflows with inputs in `recording`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from fairway.errors import InputError
from fairway.workflows.arguments import Arguments
from fairway.workflows.graph import Workflow
from fairway.workflows.model import Model, Stage

if TYPE_CHECKING:
    from fairway.workflows.stage_class import StageUse


class Unknown:
    """Stands for a value that is not there yet, while a workflow is being recorded."""

    def _unknown(self) -> TypeError:
        return TypeError(f"{self.described} is not known while a workflow is being recorded; use it in a stage")

    @property
    def described(self) -> str:
        """What it is, for errors."""
        raise NotImplementedError

    def __bool__(self) -> bool:
        raise self._unknown()

    def __iter__(self) -> Iterator[Any]:
        raise self._unknown()

    def __getitem__(self, key: object) -> Any:
        raise self._unknown()

    def __len__(self) -> int:
        raise self._unknown()


@dataclass(frozen=True, eq=False)
class Input(Unknown):
    """What a request brings under this name."""

    name: str

    @property
    def described(self) -> str:
        """What it is, for errors."""
        return f"the input '{self.name}'"


@dataclass(frozen=True, eq=False)
class Call(Unknown):
    """One use of a stage in a workflow: what it was called with, results of other stages among it."""

    of: StageFunction | StageUse
    arguments: tuple[Any, ...]
    named_arguments: Mapping[str, Any]

    @property
    def described(self) -> str:
        """What it is, for errors."""
        return f"the result of stage '{self.of.stage.name}'"

    @property
    def inputs(self) -> tuple[Call, ...]:
        """The calls whose results this one takes, each once, in the order of the arguments."""
        return tuple(dict.fromkeys(calls_in(self._all())))

    @property
    def request_inputs(self) -> tuple[str, ...]:
        """The names of what it takes from the request itself, each once."""
        return tuple(dict.fromkeys(each.name for each in unknowns_in(self._all()) if isinstance(each, Input)))

    def _all(self) -> tuple[Any, ...]:
        return self.arguments, tuple(self.named_arguments.values())


@dataclass(frozen=True, eq=False)
class StageFunction:
    """A function that is a stage: calling it records one use of it. It gets the values of one request at a time."""

    function: Callable[..., Any]
    stage: Stage
    models: tuple[Model, ...]

    def __call__(self, *arguments: Any, **named_arguments: Any) -> Call:
        """Record one use of the stage; runs nothing."""
        return Call(self, arguments, named_arguments)

    @property
    def model_name(self) -> None:
        """A function loads no model: what it names is known to a simulation only."""
        return

    @cached_property
    def streaming(self) -> bool:
        """Whether it yields its result in pieces."""
        return inspect.isgeneratorfunction(self.function)

    def run(self, _model: object, batch: Sequence[Arguments]) -> list[Any]:
        """The results of a batch, one request after the other."""
        return [self.function(*arguments.positional, **arguments.named) for arguments in batch]


def workflow_of(*results: Call, models: Mapping[str, Model | int] | None = None, name: str = "workflow") -> Workflow:
    """The workflow that ends in these results: every call that they depend on, inputs first.

    `models` gives the bytes of each model that stages know by name alone.
    """
    calls = in_order(results)
    names = own_names(calls)
    known = declared_models(calls)
    for called, size in (models or {}).items():
        known[called] = size if isinstance(size, Model) else _model(called, size)
    return Workflow(
        stages=tuple(replace(call.of.stage, name=names[call]) for call in calls),
        edges=tuple((names[source], names[call]) for call in calls for source in call.inputs),
        models=known,
        name=name,
    )


def declared_models(calls: Sequence[Call]) -> dict[str, Model]:
    """The models whose bytes the stages themselves give; refuses two sizes for one."""
    known: dict[str, Model] = {}
    for model in (model for call in calls for model in call.of.models):
        if known.setdefault(model.name, model) != model:
            raise InputError(
                f"model '{model.name}': {model.bytes} and {known[model.name].bytes} bytes given; choose one"
            )
    return known


def _model(name: str, size: object) -> Model:
    if isinstance(size, bool) or not isinstance(size, int) or size < 0:
        raise InputError(f"models.{name}: {size} given, expected a whole number >= 0 (bytes)")
    return Model(name, size)


def unknowns_in(value: object) -> Iterator[Unknown]:
    """The calls and inputs in an argument, inside lists, tuples and dictionaries too."""
    if isinstance(value, Unknown):
        yield value
    elif isinstance(value, list | tuple):
        for member in value:
            yield from unknowns_in(member)
    elif isinstance(value, dict):
        yield from unknowns_in(tuple(value.values()))


def calls_in(value: object) -> Iterator[Call]:
    """The calls in an argument, inside lists, tuples and dictionaries too."""
    return (each for each in unknowns_in(value) if isinstance(each, Call))


def in_order(results: Sequence[Call]) -> list[Call]:
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


def own_names(calls: Sequence[Call]) -> dict[Call, str]:
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
