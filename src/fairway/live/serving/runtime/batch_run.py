"""Runs a stage for a batch of requests, so that each gets its own result or its own problem.

If a batch of several raises, its members run again one by one: only those that raise alone have failed. A stage may run
for a request more than once in any case, since workers may be lost. A request that workers have died of before runs
after the others, and alone, so that it takes none of them along.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple, Protocol

from fairway.live.serving.runtime.explanation import explained, kind_of
from fairway.workflows import Arguments, Workflow

_LOG = logging.getLogger(__name__)

Begin = Callable[[Sequence[int]], None]
"""Is called with the positions of the members that are about to run."""


class Runner(Protocol):
    """Runs the stages of a workflow: in this process (`ServedWorkflow`), or in that of a model's copy (`InSlice`)."""

    @property
    def workflow(self) -> Workflow:
        """Its graph."""
        ...

    def run(self, stage: int, model: object | None, batch: Sequence[Arguments]) -> list[Any]:
        """A result for each; raises what the stage raises."""
        ...


class Outcome(NamedTuple):
    """What a stage has put out for a request, or why it has put out nothing."""

    value: Any = None
    problem: str | None = None


def run_batch(
    workflow: Runner,
    stage: int,
    model: object | None,
    members: Sequence[Callable[[], Arguments]],
    begin: Begin = lambda _: None,
    suspects: Collection[int] = (),
) -> list[Outcome]:
    """The outcome of each member; a member is a function that puts its arguments together, which may fail too.

    `suspects` are the positions of those that run alone.
    """
    if len(members) == 1:  # by far the most
        begin((0,))
        try:
            (value,) = workflow.run(stage, model, [members[0]()])
        except BaseException as error:  # a stage may raise anything, and the worker outlives it
            return [Outcome(problem=_Run(workflow, stage, model, begin).why(error))]
        return [Outcome(value)]
    run = _Run(workflow, stage, model, begin)
    outcomes: list[Outcome] = [Outcome()] * len(members)
    batch: dict[int, Arguments] = {}
    for position, member in enumerate(members):
        begin((position,))
        try:
            batch[position] = member()
        except BaseException as error:  # what another process has pickled may raise anything
            outcomes[position] = Outcome(problem=run.why(error))
    together = {position: arguments for position, arguments in batch.items() if position not in suspects}
    run.together(together, outcomes)
    for position in [position for position in batch if position not in together]:
        run.together({position: batch[position]}, outcomes)
    return outcomes


class _Run:
    """One run of a stage, for requests by their position."""

    def __init__(self, workflow: Runner, stage: int, model: object | None, begin: Begin) -> None:
        self._workflow, self._stage, self._model, self._begin = workflow, stage, model, begin
        self._name = workflow.workflow.stages[stage].name

    def why(self, error: BaseException) -> str:
        return explained(f"stage '{self._name}'", error)

    def together(self, batch: dict[int, Arguments], outcomes: list[Outcome]) -> None:
        if not batch:
            return
        self._begin(tuple(batch))
        try:
            values = self._workflow.run(self._stage, self._model, list(batch.values()))
        except BaseException as error:  # a stage may raise anything, and the worker outlives it
            if len(batch) == 1:
                outcomes[next(iter(batch))] = Outcome(problem=self.why(error))
                return
            kind = kind_of(error)
            _LOG.info("stage '%s' raised %s for a batch of %d, which run one by one now", self._name, kind, len(batch))
            for position, arguments in batch.items():
                self.together({position: arguments}, outcomes)
            return
        for position, value in zip(batch, values, strict=True):
            outcomes[position] = Outcome(value)
