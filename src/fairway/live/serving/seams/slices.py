"""Copies of models that run in slices of a worker: each in a process of its own, which is held to its slice.

Where a machine can hold a process to a part of its CPUs, its memory or its accelerator, and how, is behind this seam;
what it cannot hold, it says. A copy may die, of what the author's code does or since it needed more than its slice has:
that is an error of the run that it was in, and no other process notices.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from fairway.configure.slices.parts import Slice
from fairway.errors import FairwayError
from fairway.workflows import Arguments


class SliceEndedError(FairwayError):
    """A process with a slice has ended while a stage ran in it, and why."""


class StageRaisedError(FairwayError):
    """What a stage has raised in its slice, in words: the exception itself stays where it was raised."""


class SlicedModel(Protocol):
    """A copy of a model in a slice; one thread at a time may ask it to run something."""

    def run(self, workflow: str, stage: int, batch: Sequence[Arguments], seconds: float) -> list[Any]:
        """Run a stage, for so many seconds at most: a result for each, or one iterator of pieces.

        Raises `SliceEndedError` if the process has ended, by itself or since it took longer. The next run finds a new
        one, with the model loaded again.
        """
        ...

    def close(self) -> None:
        """Let the model go, and end the process."""
        ...


class SliceHost(Protocol):
    """Makes copies of models in slices of one worker."""

    @property
    def not_enforced(self) -> tuple[str, ...]:
        """What processes are not held to here, a sentence each."""
        ...

    def load(self, model: str, held: Slice) -> SlicedModel:
        """Load a model in a process of its own, which is held to its slice; raises what the loader raised, in words."""
        ...
