"""Runs stages on a worker: puts their arguments together, runs them in whichever thread, and passes pieces on.

How long a stage is expected to take decides where it runs, and how long it has really taken, if that is more: one that
is done in a moment runs in the worker's loop, and others beside it, so that the loop can go on.
"""

from __future__ import annotations

import logging
import traceback
import uuid
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from fairway.engine.serving_messages import Run
from fairway.live.serving.application import ServedWorkflow
from fairway.live.serving.data import Parcel
from fairway.live.serving.held import Held, Value
from fairway.live.serving.models import Models
from fairway.live.serving.side_thread import SideThread
from fairway.live.serving.tally import Tally

_LOG = logging.getLogger(__name__)

_INLINE_SECONDS = 5e-4
"""A stage that takes less runs in the loop."""

_LONG_SECONDS, _LONG_RUNS = 2e-3, 3
"""A stage that has taken so long several times in a row does not, whatever was expected."""

_MOST_SAID = 500

Passer = Callable[[int, Parcel], None]


class Running:
    """How to run the stages of the workflows on one worker."""

    def __init__(
        self, workflows: Sequence[ServedWorkflow], held: Held, models: Models, stages: SideThread, tally: Tally
    ) -> None:
        self._workflows = workflows
        self._held, self._models, self._stages, self._tally = held, models, stages, tally
        self._long_runs: dict[tuple[int, int], int] = {}

    def prepared(self, index: int, run: Run, is_dropped: Callable[[], bool], pass_on: Passer) -> Callable[[], Any]:
        """A function that runs a stage for a request and returns its output; any thread may call it.

        `is_dropped` says whether nobody waits any more; `pass_on` is called in the loop for each piece of a result that
        comes in pieces.
        """
        workflow, stage, key = self._workflows[index], run.stage, run.flow.request.key
        outputs = {}
        for source in workflow.workflow.predecessors[stage]:
            value = self._held.output(key, source)
            assert value is not None, "the engine runs a stage when its inputs are here"
            outputs[source] = value
        given = self._held.input(key) if workflow.takes_input(stage) else None
        model = self._models.of(workflow.model_of(stage))
        if workflow.is_streaming(stage):
            return partial(self._streamed, workflow, stage, model, given, outputs, is_dropped, pass_on)
        return partial(_output, workflow, stage, model, given, outputs)

    def is_long(self, index: int, run: Run) -> bool:
        """Whether a stage has to run beside the loop; pieces do, since each has to go out as it comes."""
        return (
            run.seconds >= _INLINE_SECONDS
            or self._long_runs.get((index, run.stage), 0) >= _LONG_RUNS
            or self._workflows[index].is_streaming(run.stage)
        )

    def took(self, index: int, run: Run, seconds: float) -> None:
        """A stage has run."""
        name = (index, run.stage)
        self._tally.took(index, run.stage, seconds)
        self._long_runs[name] = self._long_runs.get(name, 0) + 1 if seconds >= _LONG_SECONDS else 0

    def _streamed(
        self,
        workflow: ServedWorkflow,
        stage: int,
        model: object,
        given: Value | None,
        outputs: dict[int, Value],
        is_dropped: Callable[[], bool],
        pass_on: Passer,
    ) -> list[object]:
        """Let the client have each piece as it comes; together they are the output."""
        pieces = _output(workflow, stage, model, given, outputs)
        assert isinstance(pieces, Iterator)
        collected: list[object] = []
        for piece in pieces:
            parcel = self._held.buffers.pack(piece)
            self._stages.tell(partial(_hand_on, pass_on, len(collected)), parcel)
            collected.append(piece)
            if is_dropped():
                close = getattr(pieces, "close", None)
                if close is not None:
                    close()
                break
        return collected


def _output(workflow: ServedWorkflow, stage: int, model: object, given: Value | None, outputs: dict[int, Value]) -> Any:
    payload = {} if given is None else given.get()
    arguments = workflow.arguments(stage, payload, {source: value.get() for source, value in outputs.items()})
    (result,) = workflow.run(stage, model, [arguments])
    return result


def _hand_on(pass_on: Passer, index: int, parcel: Parcel, _: BaseException | None) -> None:
    pass_on(index, parcel)


def explained(what: str, problem: BaseException) -> str:
    """What went wrong in one line, with the name under which the log has all of it."""
    trace = uuid.uuid4().hex[:12]
    _LOG.error("%s failed, trace %s\n%s", what, trace, "".join(traceback.format_exception(problem)))
    said = " ".join(str(problem).split())[:_MOST_SAID]
    return f"{what} raised {type(problem).__name__}: {said} (trace {trace}, in the worker's log)"
