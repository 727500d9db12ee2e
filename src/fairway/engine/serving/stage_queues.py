"""The queues of an engine that plans: one for each stage of each workflow, with the jobs that wait for a batch (ESG).

A job is a stage of a request. It joins its queue at the end, or before those with a later deadline, and leaves it from
the front, with a batch. A job whose batch was lost with its worker goes back to the front; the jobs of a request that
is over leave from wherever they are.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

from fairway.configure.application import Application
from fairway.configure.budgets.shares import Shares
from fairway.configure.configurator import QueueConfigurator
from fairway.configure.fleet_plan import StagePlan
from fairway.engine.serving.flow import Flow
from fairway.made import made
from fairway.place.batch import NOWHERE
from fairway.place.fits import home_of
from fairway.place.graph import TaskGraph
from fairway.place.plan import Request

_OVER = -1

AtOnce = Callable[[int, Sequence[float], StagePlan | None], int]
"""By stage, the seconds that its jobs have left and its plan: how many of them could start at once, in time."""


class QueuedRequest:
    """A request and how far it is: by stage, where it ran (`flow.workers`) and since when it is ready to.

    `attempt` counts how often it has begun; what belongs to an earlier attempt does not count. `losses` is how often a
    batch of it was lost with its worker.
    """

    __slots__ = ("attempt", "deadline", "flow", "key", "left", "losses", "ready", "workflow")

    def __init__(self, key: int, workflow: int, graph: TaskGraph, planner: int, deadline: float) -> None:
        self.key = key
        self.workflow = workflow
        self.deadline = deadline
        self.attempt = 0
        self.losses = 0
        self.left = len(graph)
        request = made(Request, (key, graph, planner, None, deadline, False, deadline))
        self.flow = Flow(request, graph, [NOWHERE] * len(graph))
        self.ready = [0.0] * len(graph)

    @property
    def ran_on(self) -> list[int]:
        """By stage, the worker that ran it; `NOWHERE` if it has not ended."""
        return self.flow.workers

    def restart(self) -> None:
        """Begin again."""
        flow = self.flow
        self.attempt += 1
        self.left = len(flow.workers)
        self.flow = Flow(flow.request, flow.graph, [NOWHERE] * self.left, self.attempt)

    def end(self) -> None:
        """Its client waits no more."""
        self.attempt = _OVER


class Job(NamedTuple):
    """A stage of an attempt at a request, waiting since then; `sources` are the workers that hold its inputs."""

    request: QueuedRequest
    since: float
    sources: tuple[int, ...]
    attempt: int

    @property
    def counts(self) -> bool:
        """Whether its result is still of use."""
        return self.attempt == self.request.attempt


@dataclass(slots=True)
class StageQueue:
    """The waiting jobs of a stage and all that a decision needs to know of it; `model` is -1 if it needs none.

    `reserve` is what its own run and later stages take of the time that a request has left, where its configurator
    tells; `plan` is the stage's part of a plan for all queues, where there is one; `at_once` says how many jobs could
    start together, where that decides whose turn it is.
    """

    workflow: int
    stage: int
    graph: TaskGraph
    application: Application
    decider: QueueConfigurator
    before: tuple[int, ...]
    after: tuple[int, ...]
    model: int
    group_head: int
    most_jobs: int
    home: int
    reserve: float = 0.0
    plan: StagePlan | None = None
    jobs: deque[Job] = field(default_factory=deque)
    recent: deque[float] = field(default_factory=deque)
    wakes_at: float = -1.0
    at_once: AtOnce | None = None
    _seconds: dict[tuple[int, int, int], float] = field(default_factory=dict)

    @property
    def seconds_each(self) -> float:
        """What a job takes of a worker in the batch that is best for that."""
        profile = self.application.profiles[self.stage]
        return float((profile.seconds / profile.batch).min())

    def seconds_of(self, jobs: int, cpu: int, gpu: int) -> float:
        """How long so many jobs take together on so many CPUs and slices, by the profile."""
        size = (jobs, cpu, gpu)
        seconds = self._seconds.get(size)
        if seconds is None:
            seconds = self._seconds[size] = self.application.profiles[self.stage].seconds_of(*size)
        return seconds


class StageQueues:
    """All queues; `lengths` counts the jobs of each, `waiting` those of each model; the most urgent `by_deadline`."""

    def __init__(self, models: int, *, by_deadline: bool = False) -> None:
        self._by_deadline = by_deadline
        self.all: list[StageQueue] = []
        self.first: list[int] = []
        self.lengths: list[int] = []
        self.waiting = [0] * models

    def add(self, graph: TaskGraph, application: Application, decider: QueueConfigurator) -> None:
        """Those of one more workflow."""
        number, workflow = len(self.first), application.workflow
        self.first.append(len(self.all))
        self.lengths += [0] * len(application)
        heads = _group_heads(application, decider)
        reserves = getattr(decider, "reserves", None) or [0.0] * len(application)
        self.all += [
            StageQueue(
                number,
                stage,
                graph,
                application,
                decider,
                workflow.predecessors[stage],
                workflow.successors[stage],
                int(needed[0]) if len(needed) else -1,
                heads[stage],
                int(application.profiles[stage].batch.max()),
                home_of(application.key, len(graph.fleet)),
                reserves[stage],
                at_once=getattr(decider, "at_once", None),
            )
            for stage, needed in enumerate(graph.needed)
        ]

    def join(self, request: QueuedRequest, stage: int, now: float, *, in_front: bool = False) -> None:
        """A stage of a request is ready to run."""
        number = self.first[request.workflow] + stage
        queue, ran_on = self.all[number], request.flow.workers
        request.ready[stage] = now
        job = made(Job, (request, now, tuple([ran_on[other] for other in queue.before]), request.attempt))
        if in_front:
            queue.jobs.appendleft(job)
        else:
            queue.jobs.append(job)
            queue.recent.append(now)
            if self._by_deadline:
                _let_pass(queue.jobs)
        self._count(number, 1)

    def put_back(self, number: int, jobs: Iterable[Job]) -> None:
        """Jobs that had left a queue go to its front, in their order, or before those with a later deadline."""
        waiting = self.all[number].jobs
        for job in reversed(tuple(jobs)):
            waiting.appendleft(job)
            self._count(number, 1)
        if self._by_deadline:
            ordered = sorted(waiting, key=lambda each: each.request.deadline)
            waiting.clear()
            waiting.extend(ordered)

    def take(self, number: int, count: int, skip: int = 0) -> tuple[Job, ...]:
        """The oldest jobs but for the first few leave a queue."""
        jobs = self.all[number].jobs
        jobs.rotate(-skip)
        taken = tuple([jobs.popleft() for _ in range(count)])
        jobs.rotate(skip)
        self._count(number, -count)
        return taken

    def at_once(self, number: int, now: float) -> int:
        """How many jobs of a queue could start at once, by its configurator."""
        queue = self.all[number]
        left = [job.request.deadline - now for job in islice(queue.jobs, 2 * queue.most_jobs)]
        return 0 if queue.at_once is None else queue.at_once(queue.stage, left, queue.plan)

    def leave(self, request: QueuedRequest) -> list[int]:
        """All jobs of a request leave; returns the numbers of queues that are empty now."""
        emptied = []
        first = self.first[request.workflow]
        for number in range(first, first + len(request.flow.workers)):
            jobs = self.all[number].jobs
            for job in [job for job in jobs if job.request is request]:
                jobs.remove(job)
                self._count(number, -1)
                if not jobs:
                    emptied.append(number)
        return emptied

    def _count(self, number: int, jobs: int) -> None:
        self.lengths[number] += jobs
        model = self.all[number].model
        if model >= 0:
            self.waiting[model] += jobs


def _let_pass(jobs: deque[Job]) -> None:
    """Put the last job before those whose deadline is later."""
    place, job = len(jobs) - 1, jobs[-1]
    while place and jobs[place - 1].request.deadline > job.request.deadline:
        place -= 1
    if place < len(jobs) - 1:
        jobs.pop()
        jobs.insert(place, job)


def _group_heads(application: Application, decider: QueueConfigurator) -> list[int]:
    """By stage, the first stage of the group that it is planned with."""
    heads = list(range(len(application)))
    shares = getattr(decider, "shares", None)  # only a configurator that plans in groups has any
    if isinstance(shares, Shares):
        for group in shares.groups:
            for stage in group:
                heads[stage] = group[0]
    return heads
