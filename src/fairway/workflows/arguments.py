"""What a stage is called with: positional and named values, for one request; and batches of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from fairway.errors import FairwayError


class StageError(FairwayError):
    """A stage has not done what a stage has to do, such as returning one result for each request."""


class Arguments(NamedTuple):
    """The values that a stage is called with, for one request."""

    positional: tuple[Any, ...] = ()
    named: Mapping[str, Any] = {}


def columns(batch: Sequence[Arguments]) -> Arguments:
    """The arguments of a batch, each as a list with the value of every request, in order."""
    first = batch[0]
    if len(batch) == 1:  # by far the most
        return Arguments(
            tuple([[value] for value in first.positional]), {name: [value] for name, value in first.named.items()}
        )
    return Arguments(
        tuple([arguments.positional[position] for arguments in batch] for position in range(len(first.positional))),
        {name: [arguments.named[name] for arguments in batch] for name in first.named},
    )


def results_of(returned: object, batch: int, stage: str) -> list[Any]:
    """What a stage returned for a batch, as a list; refuses anything but one result for each request."""
    if type(returned) is list and len(returned) == batch:
        return returned
    if isinstance(returned, str | bytes | bytearray | Mapping) or not hasattr(returned, "__iter__"):
        raise StageError(
            f"stage '{stage}' returned {type(returned).__name__} for a batch of {batch}, expected a list with one "
            "result for each request"
        )
    results = list(returned)
    if len(results) != batch:
        raise StageError(
            f"stage '{stage}' returned {len(results)} results for a batch of {batch}, expected one for each request"
        )
    return results
