"""Runs a stage for a batch of requests, so that each gets its own result or its own problem.

If a batch of several raises, its members run again one by one: only those that raise alone have failed. A stage may run
for a request more than once in any case, since workers may be lost.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from fairway.live.serving.application.definition import ServedWorkflow
from fairway.workflows import Arguments

_LOG = logging.getLogger(__name__)


class Outcome(NamedTuple):
    """What a stage has put out for a request, or what it raised."""

    value: Any = None
    problem: BaseException | None = None


def run_batch(
    workflow: ServedWorkflow, stage: int, model: object | None, members: Sequence[Callable[[], Arguments]]
) -> list[Outcome]:
    """The outcome of each member; a member is a function that puts its arguments together, which may fail too."""
    if len(members) == 1:  # by far the most
        try:
            (value,) = workflow.run(stage, model, [members[0]()])
        except BaseException as error:  # a stage may raise anything, and the worker outlives it
            return [Outcome(problem=error)]
        return [Outcome(value)]
    outcomes: list[Outcome] = [Outcome()] * len(members)
    batch: dict[int, Arguments] = {}
    for position, member in enumerate(members):
        try:
            batch[position] = member()
        except BaseException as error:  # what another process has pickled may raise anything
            outcomes[position] = Outcome(problem=error)
    for position, outcome in zip(batch, _run(workflow, stage, model, list(batch.values())), strict=True):
        outcomes[position] = outcome
    return outcomes


def _run(workflow: ServedWorkflow, stage: int, model: object | None, batch: list[Arguments]) -> list[Outcome]:
    if not batch:
        return []
    try:
        return [Outcome(value) for value in workflow.run(stage, model, batch)]
    except BaseException as error:  # a stage may raise anything, and the worker outlives it
        if len(batch) == 1:
            return [Outcome(problem=error)]
        name = workflow.workflow.stages[stage].name
        _LOG.info(
            "stage '%s' raised %s for a batch of %d, which run one by one now", name, type(error).__name__, len(batch)
        )
    return [outcome for arguments in batch for outcome in _run(workflow, stage, model, [arguments])]
