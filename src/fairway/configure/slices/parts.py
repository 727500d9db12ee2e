"""Which part of a worker each model has, and what follows for the stages that run it: their times, and what they hold.

A part is counted in thousandths of a worker, and may come with so much device memory. A stage holds the part of its
model while it runs; one whose model has none holds the whole worker, and plain code, which runs in the worker's own
process, the least part that is counted. The times of a stage on a part are those that were measured there, under the
name of the accelerator and the part, as in `cpu@0.25`; where none were, the part is taken to be a slower worker:

    seconds on a part  =  seconds on the whole worker / part
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from fairway.errors import InputError
from fairway.options import nearest
from fairway.quantities import bytes_of
from fairway.workflows import Stage, Workflow
from fairway.workflows.stage_class import UNMEASURED_SECONDS

WHOLE = 1000
"""The thousandths of a worker."""

_AT = "@"
_NUMBER = re.compile(r"\d+(\.\d*)?|\.\d+")
_EXAMPLES = "a part, a size of memory or both, as in detector=0.25, detector=200MB or detector=0.25:200MB"


@dataclass(frozen=True, slots=True)
class Slice:
    """A part of a worker, in thousandths, and how much memory it has; None for that part of the worker's."""

    thousandths: int
    memory_bytes: int | None = None

    @property
    def part(self) -> float:
        """The part, at most 1."""
        return self.thousandths / WHOLE

    def __str__(self) -> str:
        memory = "" if self.memory_bytes is None else f", {self.memory_bytes / 1e6:g} MB"
        return f"{self.part:g} of a worker{memory}"


Slices = Mapping[str, Slice]
"""By the name of a model; models that are not in it have a whole worker."""


def slices_of(given: Iterable[str], worker_memory_bytes: float | None = None) -> dict[str, Slice]:
    """What options like `detector=0.25` say; a size of memory alone is that part of the worker's memory."""
    slices: dict[str, Slice] = {}
    for text in given:
        name, _, size = text.rpartition("=")
        if not name:
            raise InputError(f"'{text}' given, expected a model and {_EXAMPLES}")
        if name in slices:
            raise InputError(f"model '{name}' has two slices; keep one")
        try:
            slices[name] = _slice(size, worker_memory_bytes)
        except InputError as error:
            raise InputError(f"{name}: {error}") from None
    return slices


def _slice(text: str, worker_memory_bytes: float | None) -> Slice:
    first, _, second = (word.strip() for word in text.partition(":"))
    try:
        if _NUMBER.fullmatch(first):
            memory = bytes_of(second) if second else None
        else:
            memory = bytes_of("" if second else first)
    except InputError:
        raise InputError(f"'{text}' given, expected {_EXAMPLES}") from None
    if memory is None or second:
        return Slice(_thousandths(first), memory)
    if worker_memory_bytes is None:
        raise InputError(f"{first} of memory given, of workers without a budget; give --memory, or a part as in 0.25")
    if not 0 < memory <= worker_memory_bytes:
        raise InputError(f"{first} of memory given, but a worker has {worker_memory_bytes / 1e6:g} MB")
    return Slice(max(1, -int(-WHOLE * memory // worker_memory_bytes)), memory)


def part_of(text: str) -> Slice:
    """Read a part alone, as in `0.25`."""
    if not _NUMBER.fullmatch(text):
        raise InputError(f"'{text}' given, expected a part of a worker, as in 0.25")
    return Slice(_thousandths(text))


def _thousandths(text: str) -> int:
    part = float(text)
    if not 0 < part <= 1:
        raise InputError(f"a part of {text} given, which no worker has; expected one above 0, up to 1")
    if abs(part * WHOLE - round(part * WHOLE)) > 1e-6:
        raise InputError(f"a part of {text} given, expected one in thousandths, as in {max(round(part, 3), 0.001):g}")
    return round(part * WHOLE)


def check_slices(slices: Slices, model_bytes: Mapping[str, int], worker_memory_bytes: float | None = None) -> None:
    """Refuse slices of models that there are not, or that are too small for theirs, or larger than a worker."""
    for name, own in slices.items():
        if name not in model_bytes:
            known = ", ".join(model_bytes) or "none"
            raise InputError(f"slices: no model '{name}'{nearest(name, model_bytes)}; models: {known}")
        if not 0 < own.thousandths <= WHOLE:
            raise InputError(f"slices: {name}: {own.part:g} of a worker given, expected a part above 0, up to 1")
        if own.memory_bytes is None:
            continue
        if own.memory_bytes < model_bytes[name]:
            raise InputError(
                f"slices: {name}: {own.memory_bytes / 1e6:g} MB given, but the model alone needs "
                f"{model_bytes[name] / 1e6:g} MB"
            )
        if worker_memory_bytes is not None and own.memory_bytes > worker_memory_bytes:
            raise InputError(
                f"slices: {name}: {own.memory_bytes / 1e6:g} MB given, but a worker has "
                f"{worker_memory_bytes / 1e6:g} MB"
            )


def accelerator_on(accelerator: str, own: Slice) -> str:
    """The name under which profiles have the times of a slice of an accelerator, as in `cpu@0.25`."""
    return accelerator if own.thousandths == WHOLE else f"{accelerator}{_AT}{own.part:g}"


def on_slices(workflow: Workflow, slices: Slices) -> Workflow:
    """The workflow with the times that its stages have on the slices of their models."""
    if not slices:
        return workflow
    return replace(workflow, stages=tuple(_on_slice(stage, slices) for stage in workflow.stages))


def shares_of(workflow: Workflow, slices: Slices, worker: tuple[int, int]) -> tuple[tuple[int, int], ...]:
    """The CPUs and slices that each stage holds of workers that have `worker` of both, slices in thousandths."""
    return tuple(_share(stage, slices, worker) for stage in workflow.stages)


def copies_within(slices: Slices, model_bytes: Mapping[str, int]) -> float:
    """The bytes of as many copies of all models as could ever run beside each other on one worker."""
    return float(sum(size * (WHOLE // slices[name].thousandths if name in slices else 1)
                     for name, size in model_bytes.items()))  # fmt: skip


def whole_only(seconds: Mapping[str, Mapping[int, float]]) -> dict[str, Mapping[int, float]]:
    """The times on whole accelerators."""
    return {accelerator: times for accelerator, times in seconds.items() if _AT not in accelerator}


def _own(stage: Stage, slices: Slices) -> Slice | None:
    return next((slices[model] for model in stage.models if model in slices), None)


def _share(stage: Stage, slices: Slices, worker: tuple[int, int]) -> tuple[int, int]:
    if not stage.models:
        return (0, 1)
    own = _own(stage, slices)
    return worker if own is None else (0, own.thousandths)


def _on_slice(stage: Stage, slices: Slices) -> Stage:
    own = _own(stage, slices)
    whole = whole_only(stage.seconds)
    if own is None or not whole:
        return replace(stage, seconds=whole or stage.seconds)
    times = {}
    for accelerator, by_batch in whole.items():
        measured = stage.seconds.get(accelerator_on(accelerator, own))
        times[accelerator] = by_batch if own.thousandths == WHOLE else measured or _shrunk(by_batch, own)
    return replace(stage, seconds=times)


def _shrunk(by_batch: Mapping[int, float], own: Slice) -> dict[int, float]:
    # What was never measured is a guess that stays one.
    return {
        size: seconds if seconds == UNMEASURED_SECONDS else seconds / own.part for size, seconds in by_batch.items()
    }
