"""Stages that are classes: they load a model once, then run it on batches of requests.

    @fairway.stage(model="detector", memory="40MB")
    class Detect:
        def load(self): ...                  # once for each time that a worker takes the model into its memory
        def __call__(self, model, images): ...    # lists in, a list out: one result for each request, in order
        def unload(self, model): ...         # optional: before the model is let go

Making one of the class, with whatever its constructor takes, says how it is used; calling that records one use of it.
The constructor runs wherever a program looks at the workflow, so it should do no more than keep what it is given. A
class without `load` is plain code, and `__call__` gets no model. `load` may take a parameter `threads`: how many it may
use.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from fairway.errors import InputError
from fairway.quantities import bytes_of
from fairway.workflows.arguments import Arguments, columns, results_of
from fairway.workflows.compose import Call
from fairway.workflows.model import GivenSeconds, Model, Stage

UNMEASURED_SECONDS = 1e-3
"""How long a stage is taken to run, where it was neither given nor measured."""


@dataclass(frozen=True, eq=False)
class StageClass:
    """A class that is a stage. `model` may name constructor parameters, as in "reader-{language}"."""

    cls: type
    name: str
    seconds: GivenSeconds = UNMEASURED_SECONDS
    model: str | None = None
    memory_bytes: int | None = None
    input_bytes: int | None = None
    output_bytes: int = 0

    def __post_init__(self) -> None:
        where = f"stage '{self.name}'"
        if "__call__" not in dir(self.cls):
            raise InputError(f"{where}: the class has no __call__; add one that takes a batch and returns a list")
        for method in ("__call__", "load", "unload"):
            if inspect.iscoroutinefunction(getattr(self.cls, method, None)):
                raise InputError(
                    f"{where}: {method} is async; write it with def, as stages run in a thread of their own"
                )
        given = "model" if self.model is not None else "memory" if self.memory_bytes is not None else None
        if given is not None and not self.loads:
            raise InputError(f"{where}: {given} given, but the class has no load; add it, or take {given} out")

    @cached_property
    def loads(self) -> bool:
        """Whether it has a model."""
        return callable(getattr(self.cls, "load", None))

    def __call__(self, *arguments: Any, **named_arguments: Any) -> StageUse:
        """The stage with these constructor arguments; makes one of the class, loads nothing."""
        try:
            bound = inspect.signature(self.cls).bind(*arguments, **named_arguments)
            bound.apply_defaults()
            known = dict(bound.arguments)
            instance = self.cls(*arguments, **named_arguments)
        except TypeError as error:
            raise InputError(f"stage '{self.name}': {error}; give {self.cls.__name__} what it takes") from error
        return StageUse(self, instance, known)


@dataclass(frozen=True, eq=False)
class StageUse:
    """One of a stage's class, as a workflow uses it: calling it records one use in the graph."""

    of: StageClass
    instance: Any
    made_with: Mapping[str, Any]
    name: str = ""
    model_given: str | None = None
    models: tuple[Model, ...] = field(init=False)

    def __post_init__(self) -> None:
        name, size = self.model_name, self.of.memory_bytes
        object.__setattr__(self, "models", () if name is None or size is None else (Model(name, size),))

    def __call__(self, *arguments: Any, **named_arguments: Any) -> Call:
        """Record one use of the stage; runs nothing."""
        return Call(self, arguments, named_arguments)

    @cached_property
    def model_name(self) -> str | None:
        """The name of its model; uses with other constructor arguments have another model unless the author names it.

        Without a name of its own, a model is called as its class, with the constructor's arguments where it has any.
        """
        if not self.of.loads:
            return None
        if self.model_given is not None:
            return self.model_given
        if self.of.model is None:
            shown = ", ".join(f"{name}={value!r}" for name, value in self.made_with.items())
            return f"{self.of.name}({shown})" if shown else self.of.name
        try:
            return self.of.model.format_map(self.made_with)
        except (KeyError, IndexError, ValueError, AttributeError) as error:
            parameters = ", ".join(self.made_with) or "none"
            raise InputError(
                f"stage '{self.of.name}': model '{self.of.model}' given, but {error} is no parameter of the "
                f"constructor; it has {parameters}"
            ) from None

    @cached_property
    def stage(self) -> Stage:
        """What schedulers know of it."""
        of, model = self.of, self.model_name
        return Stage.of(
            self.name or of.name,
            of.seconds,
            models=() if model is None else (model,),
            input_bytes=of.input_bytes,
            output_bytes=of.output_bytes,
        )

    @cached_property
    def streaming(self) -> bool:
        """Whether it yields its result in pieces, for a batch of one."""
        return inspect.isgeneratorfunction(self.of.cls.__call__)

    def same_model_as(self, other: StageUse) -> bool:
        """Whether both load the same thing: the same class, made with equal arguments."""
        return self.of.cls is other.of.cls and _equal(self.made_with, other.made_with)

    def load(self, threads: int = 1) -> object:
        """Make the model, in this process."""
        load = self.instance.load
        return load(threads=threads) if "threads" in inspect.signature(load).parameters else load()

    def unload(self, model: object) -> None:
        """Let the author close what the model holds, before it is dropped."""
        if hasattr(self.instance, "unload"):
            self.instance.unload(model)

    def run(self, model: object, batch: Sequence[Arguments]) -> list[Any]:
        """The results of a batch, one for each request; an iterator of pieces where it yields."""
        lists = columns(batch)
        first = (model,) if self.of.loads else ()
        returned = self.instance(*first, *lists.positional, **lists.named)
        return [returned] if self.streaming else results_of(returned, len(batch), self.stage.name)


def _equal(one: Mapping[str, Any], two: Mapping[str, Any]) -> bool:
    """Whether constructor arguments are equal; those that cannot tell (arrays) must be the same objects."""
    if list(one) != list(two):
        return False
    for name, value in one.items():
        if value is two[name]:
            continue
        try:
            if not bool(value == two[name]):
                return False
        except (TypeError, ValueError):
            return False
    return True


def memory_of(stage: str, given: int | str | None) -> int | None:
    """The declared memory in bytes; an error says of which stage."""
    try:
        return None if given is None else bytes_of(given)
    except InputError as error:
        raise InputError(f"stage '{stage}': memory: {error}") from None
