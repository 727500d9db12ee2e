"""The serverless engine: requests for applications in, tasks on invokers out, by the decisions of a configurator.

There is a queue for each stage of each application. Events that fall on one moment are handled together: first they
change the queues and invokers, then one pass asks the queues in turn, and starts what the configurator decides. A job
joins the queue of a stage when all stages before it have ended for its request. A task holds the CPUs and slices of its
configuration until it ends, and leaves its output on its invoker. Which containers there are is seen to by
`container_care`; without a rule for containers, all functions are warm everywhere.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

import numpy as np

from fairway.configure.application import Application
from fairway.configure.configurator import Configurator, QueueConfigurator
from fairway.configure.fetches import Fetches
from fairway.configure.invokers import NOWHERE, Invokers, home_of
from fairway.configure.margins import NoiseEstimate
from fairway.configure.placement import where_it_fits
from fairway.configure.platform import Platform
from fairway.configure.queues import Dispatch, Queue, Wait
from fairway.configure.shares import Shares
from fairway.configure.turns import Turns, recheck_pass, ring_pass, slack_pass
from fairway.engine.container_care import ContainerCare, Function
from fairway.engine.containers import ContainerRule
from fairway.engine.serverless_messages import (
    NO_CONTAINER,
    Command,
    ContainerReady,
    Event,
    Reply,
    RequestArrived,
    StartTask,
    TaskDone,
    Wake,
)
from fairway.errors import FairwayError, InputError

RATE_WINDOW_SECONDS = 1.0
"""The rate of a queue is the number of jobs that joined it in so many seconds."""

_SHORTEST_WAIT = 1e-6


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


class _Request:
    __slots__ = ("application", "deadline", "key", "left", "ran_on", "ready")

    def __init__(self, key: int, application: int, deadline: float, stages: int) -> None:
        self.key = key
        self.application = application
        self.deadline = deadline
        self.left = stages
        self.ran_on = [NOWHERE] * stages
        self.ready = [0.0] * stages


class _Job(NamedTuple):
    request: _Request
    since: float
    sources: tuple[int, ...]


@dataclass(slots=True)
class _StageQueue:
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
    jobs: deque[_Job] = field(default_factory=deque)
    recent: deque[float] = field(default_factory=deque)
    wakes_at: float = -1.0


class _Task(NamedTuple):
    queue: int
    requests: tuple[_Request, ...]
    dispatch: Dispatch
    container: int
    profile_seconds: float


class ServerlessEngine:
    """Hands out tasks for the requests of some applications on so many invokers of one kind."""

    def __init__(
        self,
        applications: Sequence[ServedApplication],
        functions: Sequence[Function],
        configurator: Configurator,
        platform: Platform,
        invokers: int,
        draws: np.random.Generator,
        containers: ContainerRule | None = None,
    ) -> None:
        self.invokers = Invokers.idle(invokers, platform.cpu, platform.gpu)
        self.noise = NoiseEstimate(prior=platform.noise)
        self._applications = applications
        self._workflows = [served.application.workflow for served in applications]
        self._order = configurator.turns
        self._queues: list[_StageQueue] = []
        self._first_queue: list[int] = []
        for number, served in enumerate(applications):
            decider = configurator.prepare(served.application, platform, draws)
            self._first_queue.append(len(self._queues))
            self._queues += _queues_of(number, served, decider, platform, invokers)
        self._lengths = [0] * len(self._queues)
        self._waiting = [0] * len(functions)
        self._turns = Turns(len(self._queues))
        self._tasks: dict[int, _Task] = {}
        self._next_task = 0
        most = platform.gpu or platform.cpu
        self._care = None if containers is None else ContainerCare(containers, functions, invokers, most)
        self._held = containers is not None and containers.held
        profiles = [profile for served in applications for profile in served.application.profiles]
        self._least = (min(int(each.cpu.min()) for each in profiles), min(int(each.gpu.min()) for each in profiles))
        self._is_full = False
        self._seconds: dict[tuple[int, int, int, int, int], float] = {}
        self._now = 0.0
        self._commands: list[Command] = []

    @property
    def waiting(self) -> int:
        """How many jobs are in queues."""
        return sum(self._lengths)

    @property
    def running(self) -> int:
        """How many tasks have started and not ended."""
        return len(self._tasks)

    def handle(self, now: float, events: Sequence[Event]) -> list[Command]:
        """Take note of what has happened at one moment, in this order, then start what can start."""
        self._now = now
        commands = self._commands = []
        for event in events:
            if isinstance(event, TaskDone):
                self._task_done(event)
            elif isinstance(event, RequestArrived):
                self._arrived(event)
            elif isinstance(event, ContainerReady):
                self._container_ready(event)
        if self._care is not None:
            commands += self._care.time_passed(now)
        self._is_full = not self._has_room()
        if self._order == "recheck":
            recheck_pass(self._turns, self._lengths, self._ask)
        elif self._order == "slack":
            slack_pass(self._turns, self._lengths, self._seconds_left, self._ask)
        else:
            ring_pass(self._turns, self._lengths, self._ask)
        return commands

    def _arrived(self, event: RequestArrived) -> None:
        application = self._applications[event.application].application
        request = _Request(event.key, event.application, event.deadline, len(application))
        for entry in application.entries:
            self._join(request, entry)
            queue = self._queues[self._first_queue[event.application] + entry]
            if self._care is not None and queue.function >= 0:
                number = self._first_queue[event.application] + entry
                self._commands += self._care.entry_arrived(number, queue.function, queue.home, self._now)

    def _task_done(self, event: TaskDone) -> None:
        task = self._tasks.pop(event.task, None)
        if task is None:
            raise FairwayError(f"task {event.task} has ended, but it was never started or had ended before")
        queue = self._queues[task.queue]
        configuration, _, invoker, _ = task.dispatch
        self.invokers.give(invoker, configuration.cpu, configuration.gpu)
        if task.container != NO_CONTAINER and self._care is not None:
            self._care.containers.release(task.container, self._now)
        self.noise.add(event.run_seconds, task.profile_seconds)
        predecessors = self._workflows[queue.application].predecessors
        for request in task.requests:
            request.ran_on[queue.stage] = invoker
            request.left -= 1
            if not request.left:
                self._commands.append(Reply(request.key))
            for successor in queue.after:
                if all(request.ran_on[other] != NOWHERE for other in predecessors[successor]):
                    self._join(request, successor)

    def _container_ready(self, event: ContainerReady) -> None:
        if self._care is None:
            raise FairwayError(f"container {event.container} is ready, but all functions are warm")
        self._care.containers.ready(event.container, self._now)

    def _join(self, request: _Request, stage: int) -> None:
        number = self._first_queue[request.application] + stage
        queue = self._queues[number]
        request.ready[stage] = self._now
        queue.jobs.append(_Job(request, self._now, tuple(request.ran_on[other] for other in queue.before)))
        queue.recent.append(self._now)
        self._lengths[number] += 1
        if queue.function >= 0:
            self._waiting[queue.function] += 1

    def _seconds_left(self, number: int) -> float:
        return self._queues[number].jobs[0].request.deadline - self._now

    def _has_room(self) -> bool:
        cpu, gpu = self._least
        return bool(((self.invokers.free_cpu >= cpu) & (self.invokers.free_gpu >= gpu)).any())

    def _ask(self, number: int) -> bool:
        """Let the configurator decide for a queue, and do it; whether a task has started."""
        if self._is_full:
            return False
        queue = self._queues[number]
        jobs, recent, now = queue.jobs, queue.recent, self._now
        while recent and recent[0] <= now - RATE_WINDOW_SECONDS:
            recent.popleft()
        oldest = jobs[0]
        warm = None
        if self._care is not None and queue.function >= 0:
            warm = self._care.containers.warm(queue.function)
            if not self._held and not warm.any():
                self._begin_container(queue, oldest.sources[0] if oldest.sources else queue.home)
                return False
        asked = Queue(
            queue.stage,
            len(jobs),
            oldest.request.deadline - now,
            [job.sources for job in islice(jobs, queue.most_jobs)] if queue.before else (),
            now - oldest.since,
            now - oldest.request.ready[queue.group_head],
            float(len(recent)) / RATE_WINDOW_SECONDS,
            self._turns.failures.get(number, 0),
            warm,
            self.noise.noise,
        )
        decision = queue.decider.decide(asked, self.invokers)
        if isinstance(decision, Dispatch):
            if warm is None:
                self._start(number, decision, NO_CONTAINER, cold=False)
                return True
            return self._start_in_container(number, asked, decision)
        if isinstance(decision, Wait):
            self._wake(queue, now + max(decision.seconds, _SHORTEST_WAIT))
        return False

    def _wake(self, queue: _StageQueue, at: float) -> None:
        if abs(at - queue.wakes_at) > _SHORTEST_WAIT / 2:
            queue.wakes_at = at
            self._commands.append(Wake(at))

    def _start_in_container(self, number: int, asked: Queue, decision: Dispatch) -> bool:
        """Start a task where a container is idle; else have one created, and let the jobs wait."""
        queue, care = self._queues[number], self._care
        assert care is not None
        container = care.containers.take(queue.function, decision.invoker)
        if container is None and asked.warm is not None and asked.warm.any():
            among = Invokers(
                np.where(asked.warm, self.invokers.free_cpu, -1),
                self.invokers.free_gpu,
                self.invokers.cpu,
                self.invokers.gpu,
                self.invokers.everywhere,
            )
            invoker = where_it_fits(asked, decision.configuration.cpu, decision.configuration.gpu, among)
            if invoker != NOWHERE:
                decision = decision._replace(invoker=invoker)
                container = care.containers.take(queue.function, invoker)
        if container is not None:
            self._start(number, decision, container, cold=False)
            return True
        if not self._held:
            self._begin_container(queue, decision.invoker)
            return False
        begun, commands = care.container_for_task(queue.function, decision.invoker, self._now)
        self._commands += commands
        if begun is not None:
            self._start(number, decision, begun, cold=True)
        return begun is not None

    def _profile_seconds(self, queue: _StageQueue, count: int, cpu: int, gpu: int) -> float:
        key = (queue.application, queue.stage, count, cpu, gpu)
        seconds = self._seconds.get(key)
        if seconds is None:
            profile = self._applications[queue.application].application.profiles[queue.stage]
            seconds = self._seconds[key] = profile.seconds_of(count, cpu, gpu)
        return seconds

    def _begin_container(self, queue: _StageQueue, invoker: int) -> None:
        assert self._care is not None
        self._commands += self._care.job_waits(queue.function, self._waiting[queue.function], invoker, self._now)

    def _start(self, number: int, dispatch: Dispatch, container: int, *, cold: bool) -> None:
        queue = self._queues[number]
        configuration, count, invoker, _ = dispatch
        requests = []
        fetch, local = 0.0, 0
        for _ in range(count):
            job = queue.jobs.popleft()
            requests.append(job.request)
            if not job.sources:
                own = queue.fetches.entry[queue.stage]
            elif all(source == invoker for source in job.sources):
                own = queue.fetches.local[queue.stage]
                local += 1
            else:
                own = queue.fetches.remote[queue.stage]
            fetch = max(fetch, own)
        self._lengths[number] -= count
        if queue.function >= 0:
            self._waiting[queue.function] -= count
        self.invokers.take(invoker, configuration.cpu, configuration.gpu)
        self._is_full = not self._has_room()
        seconds = self._profile_seconds(queue, count, configuration.cpu, configuration.gpu)
        key = self._next_task
        self._next_task += 1
        self._tasks[key] = _Task(number, tuple(requests), dispatch, container, seconds)
        keys = tuple(request.key for request in requests)
        self._commands.append(
            StartTask(key, queue.application, queue.stage, keys, dispatch, fetch, seconds, local, container, cold)
        )
        if self._care is not None and queue.function >= 0:
            functions = self._applications[queue.application].functions
            after = [functions[stage] for stage in queue.after if functions[stage] >= 0]
            self._commands += self._care.task_started(queue.function, invoker, after, seconds, self._now)


def _queues_of(
    number: int, served: ServedApplication, decider: QueueConfigurator, platform: Platform, invokers: int
) -> list[_StageQueue]:
    application = served.application
    fetches = Fetches.of(application, platform)
    heads = list(range(len(application)))
    shares = getattr(decider, "shares", None)  # only who plans in groups has any
    if isinstance(shares, Shares):
        for group in shares.groups:
            for stage in group:
                heads[stage] = group[0]
    return [
        _StageQueue(
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


__all__ = ["ContainerRule", "Function", "ServedApplication", "ServerlessEngine"]
