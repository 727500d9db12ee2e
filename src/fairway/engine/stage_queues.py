"""The queues of the serverless engine: one for each stage of each application, with the jobs that wait for a task.

A job is a stage of a request. It joins its queue at the end and leaves it from the front, with a task. A job whose task
was lost with its invoker goes back to the front; the jobs of a request that is over leave from wherever they are.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from fairway.configure.application import Application
from fairway.configure.configurator import QueueConfigurator
from fairway.configure.fetches import Fetches
from fairway.configure.invokers import NOWHERE, home_of
from fairway.configure.platform import Platform
from fairway.configure.shares import Shares
from fairway.errors import InputError
from fairway.made import made

_OVER = -1


@dataclass(frozen=True, eq=False)
class ServedApplication:
    """An application and, by stage, the number of the function that it runs; -1 where it needs no container."""

    application: Application
    functions: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(self.functions) != len(self.application):
            raise InputError(
                f"application '{self.application.name}': {len(self.functions)} functions given for "
                f"{len(self.application)} stages, expected one each"
            )


class RequestInProgress:
    """A request and how far it is: by stage, where it ran and since when it is ready to.

    `attempt` counts how often it has begun; what belongs to an earlier attempt does not count. `losses` is how often a
    task of it was lost with its invoker.
    """

    __slots__ = ("application", "attempt", "deadline", "key", "left", "losses", "ran_on", "ready")

    def __init__(self, key: int, application: int, deadline: float, stages: int) -> None:
        self.key = key
        self.application = application
        self.deadline = deadline
        self.attempt = 0
        self.losses = 0
        self.left = stages
        self.ran_on = [NOWHERE] * stages
        self.ready = [0.0] * stages

    def restart(self) -> None:
        """Begin again."""
        self.attempt += 1
        self.left = len(self.ran_on)
        self.ran_on = [NOWHERE] * self.left

    def end(self) -> None:
        """Nobody waits for it any more."""
        self.attempt = _OVER


class Job(NamedTuple):
    """A stage of an attempt at a request, waiting since then; `sources` are the invokers that hold its inputs."""

    request: RequestInProgress
    since: float
    sources: tuple[int, ...]
    attempt: int

    @property
    def counts(self) -> bool:
        """Whether somebody still waits for its result."""
        return self.attempt == self.request.attempt


@dataclass(slots=True)
class StageQueue:
    """The waiting jobs of a stage and all that a decision needs to know of it."""

    application: int
    stage: int
    decider: QueueConfigurator
    fetches: Fetches
    before: tuple[int, ...]
    after: tuple[int, ...]
    function: int
    group_head: int
    most_jobs: int
    home: int
    jobs: deque[Job] = field(default_factory=deque)
    recent: deque[float] = field(default_factory=deque)
    wakes_at: float = -1.0


class StageQueues:
    """All queues; `lengths` counts the jobs of each, `waiting` those of each function."""

    def __init__(self, functions: int) -> None:
        self.all: list[StageQueue] = []
        self.first: list[int] = []
        self.lengths: list[int] = []
        self.waiting = [0] * functions

    def add(self, served: ServedApplication, decider: QueueConfigurator, platform: Platform, invokers: int) -> None:
        """Those of one more application."""
        number, application = len(self.first), served.application
        self.first.append(len(self.all))
        self.lengths += [0] * len(application)
        fetches, heads = Fetches.of(application, platform), _group_heads(application, decider)
        self.all += [
            StageQueue(
                number,
                stage,
                decider,
                fetches,
                application.workflow.predecessors[stage],
                application.workflow.successors[stage],
                served.functions[stage],
                heads[stage],
                int(application.profiles[stage].batch.max()),
                home_of(application.key, invokers),
            )
            for stage in range(len(application))
        ]

    def join(self, request: RequestInProgress, stage: int, now: float, *, in_front: bool = False) -> None:
        """A stage of a request is ready to run."""
        number = self.first[request.application] + stage
        queue = self.all[number]
        request.ready[stage] = now
        ran_on = request.ran_on
        job = made(Job, (request, now, tuple([ran_on[other] for other in queue.before]), request.attempt))
        if in_front:
            queue.jobs.appendleft(job)
        else:
            queue.jobs.append(job)
            queue.recent.append(now)
        self.lengths[number] += 1
        if queue.function >= 0:
            self.waiting[queue.function] += 1

    def put_back(self, number: int, jobs: Iterable[Job]) -> None:
        """Jobs that had left a queue go to its front, the first of them first."""
        for job in reversed(tuple(jobs)):
            self.all[number].jobs.appendleft(job)
            self._count(number, 1)

    def take(self, number: int, count: int) -> tuple[Job, ...]:
        """The oldest jobs leave a queue."""
        jobs = self.all[number].jobs
        taken = tuple([jobs.popleft() for _ in range(count)])
        self._count(number, -count)
        return taken

    def leave(self, request: RequestInProgress) -> list[int]:
        """All jobs of a request leave; returns the numbers of queues that are empty now."""
        emptied = []
        first = self.first[request.application]
        for number in range(first, first + len(request.ran_on)):
            jobs = self.all[number].jobs
            for job in [job for job in jobs if job.request is request]:
                jobs.remove(job)
                self._count(number, -1)
                if not jobs:
                    emptied.append(number)
        return emptied

    def _count(self, number: int, jobs: int) -> None:
        self.lengths[number] += jobs
        function = self.all[number].function
        if function >= 0:
            self.waiting[function] += jobs


def _group_heads(application: Application, decider: QueueConfigurator) -> list[int]:
    """By stage, the first stage of the group that it is planned with."""
    heads = list(range(len(application)))
    shares = getattr(decider, "shares", None)  # only who plans in groups has any
    if isinstance(shares, Shares):
        for group in shares.groups:
            for stage in group:
                heads[stage] = group[0]
    return heads
