"""Runs stages on a worker: puts their arguments together, runs them in whichever thread, and keeps what they put out.

How long a stage is expected to take decides where it runs, and how long it has really taken, if that is more: one that
is done in a moment runs in the worker's loop, since handing it to a thread would take longer; others run beside it, so
that the loop can go on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from fairway.engine.serving.messages import Run, TaskDone
from fairway.live.serving.application.definition import ServedWorkflow
from fairway.live.serving.runtime.background_thread import INLINE_SECONDS
from fairway.live.serving.runtime.batch_run import Begin, Outcome, Runner, run_batch
from fairway.live.serving.runtime.explanation import explained
from fairway.live.serving.runtime.in_slices import Copy, InSlice, Slices
from fairway.live.serving.runtime.limits import Limits
from fairway.live.serving.runtime.models import Models
from fairway.live.serving.runtime.request_values import RequestValues, Value
from fairway.live.serving.runtime.spans import Spans
from fairway.live.serving.runtime.streams import collected
from fairway.live.serving.runtime.tally import Tally
from fairway.live.serving.seams.background import Background
from fairway.live.serving.seams.run_record import NO_MARK, Lane
from fairway.live.serving.seams.values import Parcel
from fairway.place.graph import TaskGraph
from fairway.place.plan import Request
from fairway.workflows import Arguments
from fairway.workflows.stage_class import UNMEASURED_SECONDS

_LONG_SECONDS, _LONG_RUNS = 2e-3, 3
"""A stage that has taken so long several times in a row does not run in the loop, whatever was expected."""

_STREAM_TIMES = 10.0

Passer = Callable[[Request, int, Parcel], None]


class _Stage:
    """What is looked up of a stage at every run, how often in a row it has taken long, and how long at most."""

    __slots__ = (
        "before", "in_reply", "is_sliced", "long_runs", "longest", "model", "name", "number", "streams", "takes_input",
        "workflow", "workflow_number",
    )  # fmt: skip

    def __init__(self, workflow_number: int, workflow: ServedWorkflow, number: int, slices: Slices | None) -> None:
        self.workflow_number, self.workflow, self.number = workflow_number, workflow, number
        self.name = workflow.workflow.stages[number].name
        self.model = workflow.model_of(number)
        self.is_sliced = slices is not None and self.model in slices
        self.before = workflow.workflow.predecessors[number]
        self.takes_input = workflow.takes_input(number)
        self.streams = workflow.is_streaming(number)
        self.in_reply = number in workflow.exits
        self.long_runs = 0
        self.longest = 0.0


class StageRunner:
    """How to run the stages of the workflows on one worker, for a request or for several at once.

    `background` is where stages run that take a while. `happened` tells the engine how a run went; `is_dropped` says,
    in any thread, whether the client of one of the requests that run now has gone; `pass_on` gets each piece of a
    result that comes in pieces. The first and the last are called in the loop. What runs is written in the `lane`, with
    the time until which it may; requests that workers have died of (`is_suspect`, by mark) run alone. One that was put
    aside before (`may_hang`) may take a while: `takes_until` hears of that.
    """

    def __init__(
        self,
        workflows: dict[TaskGraph, ServedWorkflow],
        values: RequestValues,
        models: Models,
        tally: Tally,
        spans: Spans,
        background: Background,
        now: Callable[[], float],
        *,
        happened: Callable[[TaskDone], None],
        is_dropped: Callable[[int], bool],
        pass_on: Passer,
        lane: Lane,
        limits: Limits,
        is_suspect: Callable[[bytes], bool],
        may_hang: Callable[[bytes], bool],
        takes_until: Callable[[float], None],
        slices: Slices | None = None,
    ) -> None:
        self._values, self._models, self._tally, self._spans = values, models, tally, spans
        self._background, self._now = background, now
        self._happened, self._is_dropped, self._pass_on = happened, is_dropped, pass_on
        self._lane, self._limits, self._is_suspect = lane, limits, is_suspect
        self._may_hang, self._takes_until = may_hang, takes_until
        self._by_graph = {
            graph: [_Stage(number, workflow, stage, slices) for stage in range(len(graph))]
            for number, (graph, workflow) in enumerate(workflows.items())
        }

    def run(self, run: Run) -> None:
        """Run what the engine says, here and now or in the background."""
        now, flow, mates = self._now(), run.flow, run.mates
        stage = self._by_graph[flow.graph][run.stage]
        requests = [flow.request, *[mate.flow.request for mate in mates]] if mates else [flow.request]
        self._tally.ran(stage.workflow_number, stage.number, run.found, now - run.queued, len(requests))
        for mate in mates:
            self._tally.waited(stage.workflow_number, stage.number, now - mate.queued)
        copy: Copy | None = None
        try:
            copy = self._models.take(stage.model) if stage.is_sliced and stage.model is not None else None
            work = self._prepared(run, stage, requests, now, copy)
        except Exception as error:  # the models and inputs should be here: if not, the worker outlives that too
            outcomes = [Outcome(problem=explained(f"stage '{stage.name}'", error))] * len(requests)
            self._ended(run, stage, requests, now, outcomes, copy)
            return
        # Pieces have to go out as they come, so they are made in the background, too.
        if copy is None and run.seconds < INLINE_SECONDS and stage.long_runs < _LONG_RUNS and not stage.streams:
            self._ended(run, stage, requests, now, work())
            return

        def ended(outcomes: list[Outcome] | None, problem: BaseException | None) -> None:
            if outcomes is None:
                assert problem is not None
                outcomes = [Outcome(problem=explained(f"stage '{stage.name}'", problem))] * len(requests)
            self._ended(run, stage, requests, now, outcomes, copy)

        (self._background if copy is None else copy.background).run(work, ended, run.seconds)

    def _prepared(
        self, run: Run, stage: _Stage, requests: list[Request], now: float, copy: Copy | None
    ) -> Callable[[], list[Outcome]]:
        """A function that runs a stage; any thread may call it."""
        model = self._models.of(stage.model) if copy is None else None
        known_marks = self._values.marks
        members = [self._arguments(stage, request.key) for request in requests]
        marks = [known_marks.get(request.key, NO_MARK) for request in requests]
        # If several clients wait, it may take as long as the last of them does.
        latest = max([request.deadline for request in requests]) if run.mates else requests[0].deadline
        is_known = run.seconds != UNMEASURED_SECONDS
        seconds = self._limits.of_stage(run.seconds, is_known=is_known, left=latest - now)
        if copy is not None:  # what it dies of, or hangs in, is its own: the worker's supervisor need not know
            runner = InSlice(stage.workflow, copy.model, seconds)
            if stage.streams:
                return partial(
                    self._streamed, stage, runner, model, members[0], requests[0], _nothing, seconds, copy.background
                )
            return partial(run_batch, runner, stage.number, model, members)
        overdue = self._limits.overdue_after(run.seconds, is_known=is_known, longest=stage.longest)
        if any(map(self._may_hang, marks)):
            self._takes_until(now + min(2.0 * overdue, seconds))

        def begin(positions: Sequence[int]) -> None:
            now = self._now()
            among = marks if len(positions) == len(marks) else [marks[position] for position in positions]
            self._lane.begin(stage.workflow_number, stage.number, now, now + seconds, among, run.run, now + overdue)

        if stage.streams:
            return partial(
                self._streamed, stage, stage.workflow, model, members[0], requests[0], begin, seconds, self._background
            )
        suspects = [position for position, mark in enumerate(marks) if self._is_suspect(mark)] if run.mates else []
        return partial(run_batch, stage.workflow, stage.number, model, members, begin, suspects)

    def _arguments(self, stage: _Stage, key: int) -> Callable[[], Arguments]:
        """A function that puts together what a stage is called with for a request; any thread may call it."""
        outputs: dict[int, Value] = {}
        for source in stage.before:
            value = self._values.output(key, source)
            if value is None:  # its maker died before it was opened here: the request fails, or runs elsewhere by now
                return partial(_raise, FileNotFoundError(f"what '{stage.name}' takes is gone with its maker"))
            outputs[source] = value
        given = self._values.input(key) if stage.takes_input else None
        return partial(arguments_of, stage.workflow, stage.number, given, outputs)

    def _ended(
        self,
        run: Run,
        stage: _Stage,
        requests: list[Request],
        began: float,
        outcomes: list[Outcome],
        copy: Copy | None = None,
    ) -> None:
        """Keep what a stage has put out for each request, and tell the engine how it went."""
        now = self._now()
        if copy is not None:
            assert stage.model is not None
            self._models.give_back(stage.model, copy)
        else:
            # Not before: a stage may have done something to its process that shows only now. Another may have begun.
            self._lane.end(now, run.run)
        seconds = now - began
        self._tally.took(stage.workflow_number, stage.number, seconds)
        stage.longest = max(stage.longest, seconds)
        stage.long_runs = stage.long_runs + 1 if seconds >= _LONG_SECONDS else 0
        kept, failed, ran = self._values, {}, self._tally.recent.stages
        flow, number, size = stage.workflow_number, stage.number, len(requests)
        for position, request in enumerate(requests):
            queued = run.mates[position - 1].queued if position else run.queued
            ran.append((request.key, flow, number, run.found, queued, began, now, size, position))
            key, (value, problem) = request.key, outcomes[position]
            self._spans.ran(key, stage.name, began, now, problem)
            if problem is None:
                kept.keep_output(key, stage.number, Value(kept.values, value, in_reply=stage.in_reply))
            elif self._is_dropped(position):
                failed[position] = "its client has gone"
            else:
                self._tally.failures += 1
                failed[position] = problem
        self._happened(TaskDone(run.run, failed, seconds))

    def _streamed(
        self,
        stage: _Stage,
        runner: Runner,
        model: object,
        arguments: Callable[[], Arguments],
        request: Request,
        begin: Begin,
        seconds: float,
        background: Background,
    ) -> list[Outcome]:
        """Let the client have each piece as it comes; together they are the output.

        Each piece has the time of a run; all of them together have several times that, since the others wait.
        """
        until = self._now() + _STREAM_TIMES * seconds

        def hand_on(index: int, piece: object) -> None:
            parcel = self._values.values.pack(piece)
            background.report(partial(self._hand_on, request, index), parcel)
            if self._now() > until:
                raise TimeoutError(f"pieces came for more than {_STREAM_TIMES * seconds:.3g} s, and were not all")
            begin((0,))

        begin((0,))
        try:
            (pieces,) = runner.run(stage.number, model, [arguments()])
            assert isinstance(pieces, Iterator)
            return [Outcome(collected(pieces, hand_on, partial(self._is_dropped, 0)))]
        except BaseException as error:  # a stage may raise anything, and the worker outlives it
            return [Outcome(problem=explained(f"stage '{stage.name}'", error))]

    def _hand_on(self, request: Request, index: int, parcel: Parcel, _: BaseException | None) -> None:
        self._pass_on(request, index, parcel)


def _nothing(_: Sequence[int]) -> None:
    """A run in a slice is in no lane."""


def _raise(error: OSError) -> Arguments:
    raise error


def arguments_of(workflow: ServedWorkflow, stage: int, given: Value | None, outputs: dict[int, Value]) -> Arguments:
    """What a stage is called with for a request, which brought `given`; `outputs` are those of the stages before."""
    payload: dict[str, Any] = {} if given is None else given.get()
    return workflow.arguments(stage, payload, {source: value.get() for source, value in outputs.items()})
