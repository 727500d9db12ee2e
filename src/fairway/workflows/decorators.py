"""The decorator `stage`: makes a stage of a function or of a class."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, Protocol, overload

from fairway.errors import InputError
from fairway.workflows.compose import StageFunction
from fairway.workflows.model import GivenSeconds, Model, Stage
from fairway.workflows.stage_class import UNMEASURED_SECONDS, StageClass, memory_of


class StageDecorator(Protocol):
    """Makes a stage of what it decorates."""

    @overload
    def __call__(self, target: type) -> StageClass: ...  # type: ignore[overload-overlap]
    @overload
    def __call__(self, target: Callable[..., Any]) -> StageFunction: ...


@overload
def stage(target: type, /) -> StageClass: ...  # type: ignore[overload-overlap]
@overload
def stage(target: Callable[..., Any], /) -> StageFunction: ...
@overload
def stage(
    *,
    seconds: GivenSeconds = ...,
    model: str | Model | None = ...,
    models: Sequence[str | Model] = ...,
    memory: int | str | None = ...,
    input_bytes: int | None = ...,
    output_bytes: int = ...,
    name: str | None = ...,
) -> StageDecorator: ...


def stage(
    target: Any = None,
    /,
    *,
    seconds: GivenSeconds = UNMEASURED_SECONDS,
    model: str | Model | None = None,
    models: Sequence[str | Model] = (),
    memory: int | str | None = None,
    input_bytes: int | None = None,
    output_bytes: int = 0,
    name: str | None = None,
) -> Any:
    """Make a stage of a function or a class; its name is theirs unless another is given.

    `seconds` is how long it takes, for simulations and until it is measured. A class that loads a model may name it
    (`model`) and say how much memory it needs (`memory`, as in "40MB"); `fairway profile` measures both times and
    memory. `models` are for functions in simulations, which may need several.
    """

    def decorate(target: Any) -> StageFunction | StageClass:
        if not callable(target):
            raise InputError(f"@stage: {target!r} given, expected a function or a class; write options by name")
        called = target.__name__ if name is None else name
        if not isinstance(target, type):
            return _function(target, called)
        if models or isinstance(model, Model):
            raise InputError(f"stage '{called}': a class has one model; give its name as model and its size as memory")
        return StageClass(target, called, seconds, model, memory_of(called, memory), input_bytes, output_bytes)

    def _function(function: Callable[..., Any], called: str) -> StageFunction:
        if memory is not None:
            raise InputError(
                f"stage '{called}': memory given, but a function loads no model; make it a class with load"
            )
        if inspect.iscoroutinefunction(function):
            raise InputError(f"stage '{called}' is async; write it with def, as stages run in a thread of their own")
        needed = (*(() if model is None else (model,)), *models)
        recorded = Stage.of(
            called,
            seconds,
            models=[each.name if isinstance(each, Model) else each for each in needed],
            input_bytes=input_bytes,
            output_bytes=output_bytes,
        )
        return StageFunction(function, recorded, tuple(each for each in needed if isinstance(each, Model)))

    return decorate if target is None else decorate(target)
