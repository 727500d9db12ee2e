"""The serverless engine: requests for applications in, tasks on invokers out, by the decisions of a configurator.

There is a queue for each stage of each application. Events that fall on one moment are handled together: first they
change the queues and invokers, then one pass asks the queues in turn, and starts what the configurator decides. A job
joins the queue of a stage when all stages before it have ended for its request. A task holds the CPUs and slices of its
configuration until it ends, and leaves its output on its invoker. Which containers there are is seen to by
`container_care`; without a rule for containers, all functions are warm everywhere.

Each request gets one answer: a reply or a refusal, unless it is cancelled. A task may fail for some of its requests,
and the others go on. If an invoker is lost, its tasks go back to the front of their queues, and requests that had
output there begin again. What was running there runs alone from then on, since one of them may be the reason.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from heapq import heappop, heappush
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from fairway.configure.configurator import Configurator
from fairway.configure.invokers import NOWHERE, Invokers
from fairway.configure.margins import NoiseEstimate
from fairway.configure.placement import where_it_fits
from fairway.configure.platform import Platform
from fairway.configure.queues import Dispatch, Queue, Wait
from fairway.configure.turns import Turns, recheck_pass, ring_pass, slack_pass
from fairway.engine.container_care import ContainerCare, Function
from fairway.engine.containers import ContainerRule, Containers
from fairway.engine.serverless_messages import (
    NO_CONTAINER,
    Command,
    ContainerFailed,
    ContainerReady,
    Event,
    InvokerJoined,
    InvokerLost,
    Reply,
    RequestArrived,
    Restarted,
    StartContainer,
    StartTask,
    StopContainer,
    TaskDone,
    TimeReached,
    Wake,
)
from fairway.engine.serving_messages import FAILED, HOPELESS, LATE, Cancelled, Refuse
from fairway.engine.stage_queues import Job, RequestInProgress, ServedApplication, StageQueue, StageQueues
from fairway.errors import FairwayError
from fairway.made import made

RATE_WINDOW_SECONDS = 1.0
"""The rate of a queue is the number of jobs that joined it in so many seconds."""

MOST_LOSSES = 3
"""A request that was running on so many invokers when they were lost, the last times alone, is not tried again."""

_SHORTEST_WAIT = 1e-6


class _Task(NamedTuple):
    queue: int
    jobs: tuple[Job, ...]
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
        self._requests: dict[int, RequestInProgress] = {}
        self._expiring: list[tuple[float, int]] = []
        self._queues = StageQueues(len(functions))
        for served in applications:
            self._queues.add(served, configurator.prepare(served.application, platform, draws), platform, invokers)
        self._lengths = self._queues.lengths
        self._turns = Turns(len(self._lengths))
        self._tasks: dict[int, _Task] = {}
        self._next_task = 0
        most = platform.gpu or platform.cpu
        self._care = None if containers is None else ContainerCare(containers, functions, invokers, most)
        self._held = containers is not None and containers.held
        profiles = [profile for served in applications for profile in served.application.profiles]
        self._least = (min(int(each.cpu.min()) for each in profiles), min(int(each.gpu.min()) for each in profiles))
        self._is_full = False
        self._absent: set[int] = set()
        self._was_lost = False
        self._least_times: dict[int, float] = {}
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
                self._containers(event).ready(event.container, now)
            elif not isinstance(event, TimeReached):
                _LESS_OFTEN[type(event)](self, event)
        if self._expiring:
            self._expire()
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
        key, number, deadline, expires = event
        if key in self._requests:
            raise FairwayError(f"request {key} arrives, but is here already")
        application = self._applications[number].application
        if expires < math.inf:
            least = self._least_seconds(number)
            if self._now + least > expires:
                left = max(expires - self._now, 0.0)
                self._commands.append(
                    Refuse(key, f"it would take {least:.3g} s at least, but has {left:.3g} s", HOPELESS)
                )
                return
            heappush(self._expiring, (expires, key))
        request = RequestInProgress(key, number, min(deadline, expires), len(application))
        self._requests[key] = request
        for entry in application.entries:
            self._queues.join(request, entry, self._now)
            queue_number = self._queues.first[number] + entry
            queue = self._queues.all[queue_number]
            if self._care is not None and queue.function >= 0:
                self._commands += self._care.entry_arrived(queue_number, queue.function, queue.home, self._now)

    def _least_seconds(self, number: int) -> float:
        """How long a request takes if it is alone and everything is there."""
        found = self._least_times.get(number)
        if found is None:
            application = self._applications[number].application
            planned = self._queues.all[self._queues.first[number]].fetches.planned
            fastest = [float(each.seconds.min()) + planned(stage) for stage, each in enumerate(application.profiles)]
            found = self._least_times[number] = application.workflow.critical_path(fastest).seconds
        return found

    def _task_done(self, event: TaskDone) -> None:
        task = self._tasks.pop(event.task, None)
        if task is None:
            raise FairwayError(f"task {event.task} has ended, but it was never started or had ended before")
        queue = self._queues.all[task.queue]
        configuration, _, invoker, _ = task.dispatch
        self.invokers.give(invoker, configuration.cpu, configuration.gpu)
        if task.container != NO_CONTAINER and self._care is not None:
            self._care.containers.release(task.container, self._now)
        if not event.failed:  # a batch that was repeated one by one says nothing of its time
            self.noise.add(event.run_seconds, task.profile_seconds)
        failed = dict(event.failed)
        predecessors = self._workflows[queue.application].predecessors
        for job in task.jobs:
            request = job.request
            if job.attempt != request.attempt:
                continue
            if request.key in failed:
                self._refuse(request, failed[request.key], FAILED)
                continue
            request.ran_on[queue.stage] = invoker
            request.left -= 1
            if not request.left:
                del self._requests[request.key]
                self._commands.append(Reply(request.key))
            for successor in queue.after:
                if all(request.ran_on[other] != NOWHERE for other in predecessors[successor]):
                    self._queues.join(request, successor, self._now)

    def _containers(self, event: ContainerReady | ContainerFailed) -> Containers:
        if self._care is None:
            what = "is ready" if isinstance(event, ContainerReady) else "has failed"
            raise FairwayError(f"container {event.container} {what}, but all functions are warm")
        return self._care.containers

    def _container_failed(self, event: ContainerFailed) -> None:
        """Unless another container of the function has come to be, all who wait for one are told."""
        containers = self._containers(event)
        function = containers.fail(event.container).function
        if containers.idle[function].any() or containers.busy[function].any():
            return
        for queue in self._queues.all:
            if queue.function == function:
                for job in list(queue.jobs):
                    self._refuse(job.request, event.reason, FAILED)

    def _invoker_lost(self, event: InvokerLost) -> None:
        invoker = event.invoker
        if invoker in self._absent:
            return
        self._absent.add(invoker)
        self.invokers.leave(invoker)
        if self._care is not None:
            self._care.invoker_lost(invoker)
            # What was wanted of it a moment ago is not wanted of the one that takes its place.
            self._commands[:] = [
                each
                for each in self._commands
                if not isinstance(each, StartContainer | StopContainer) or each.invoker != invoker
            ]
        lost = [key for key, task in self._tasks.items() if task.dispatch.invoker == invoker]
        tasks = [self._tasks.pop(key) for key in lost]
        for request in [job.request for task in tasks for job in task.jobs if job.counts]:
            request.losses += 1
            self._was_lost = True
            if request.losses == MOST_LOSSES:  # it may have had several tasks there
                reason = f"workers that ran it were lost {request.losses} times, so it is not tried again"
                self._refuse(request, reason, FAILED)
        again = [request for request in self._requests.values() if invoker in request.ran_on]
        for request in reversed(again):
            self._leave(request)
            request.restart()
            self._commands.append(Restarted(request.key))
            for entry in self._applications[request.application].application.entries:
                self._queues.join(request, entry, self._now, in_front=True)
        for task in reversed(tasks):
            self._queues.put_back(task.queue, [job for job in task.jobs if job.counts])

    def _invoker_joined(self, event: InvokerJoined) -> None:
        invoker = event.invoker
        if invoker not in self._absent:
            raise FairwayError(f"invoker {invoker} joins, but is here already")
        self._absent.discard(invoker)
        self.invokers.join(invoker)
        if self._care is not None:
            self._commands += self._care.invoker_joined(invoker, event.functions, self._now)

    def _cancelled(self, event: Cancelled) -> None:
        request = self._requests.get(event.key)
        if request is not None:
            self._drop(request)

    def _expire(self) -> None:
        """Refuse those that nobody waits for any more."""
        while self._expiring and self._expiring[0][0] < self._now:
            request = self._requests.get(heappop(self._expiring)[1])
            if request is not None:
                self._refuse(request, "its time was over before its result was there", LATE)

    def _refuse(self, request: RequestInProgress, reason: str, code: str) -> None:
        self._commands.append(Refuse(request.key, reason, code))
        self._drop(request)

    def _drop(self, request: RequestInProgress) -> None:
        """Forget a request; what runs for it ends for nothing."""
        del self._requests[request.key]
        self._leave(request)
        request.end()

    def _leave(self, request: RequestInProgress) -> None:
        for number in self._queues.leave(request):
            self._turns.emptied(number)

    def _seconds_left(self, number: int) -> float:
        return self._queues.all[number].jobs[0].request.deadline - self._now

    def _has_room(self) -> bool:
        cpu, gpu = self._least
        return bool(((self.invokers.free_cpu >= cpu) & (self.invokers.free_gpu >= gpu)).any())

    def _ask(self, number: int) -> bool:
        """Let the configurator decide for a queue, and do it; whether a task has started."""
        if self._is_full:
            return False
        queue = self._queues.all[number]
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

    def _wake(self, queue: StageQueue, at: float) -> None:
        if abs(at - queue.wakes_at) > _SHORTEST_WAIT / 2:
            queue.wakes_at = at
            self._commands.append(Wake(at))

    def _start_in_container(self, number: int, asked: Queue, decision: Dispatch) -> bool:
        """Start a task where a container is idle; else have one created, and let the jobs wait."""
        queue, care = self._queues.all[number], self._care
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

    def _profile_seconds(self, queue: StageQueue, count: int, cpu: int, gpu: int) -> float:
        key = (queue.application, queue.stage, count, cpu, gpu)
        seconds = self._seconds.get(key)
        if seconds is None:
            profile = self._applications[queue.application].application.profiles[queue.stage]
            seconds = self._seconds[key] = profile.seconds_of(count, cpu, gpu)
        return seconds

    def _begin_container(self, queue: StageQueue, invoker: int) -> None:
        assert self._care is not None
        self._commands += self._care.job_waits(queue.function, self._queues.waiting[queue.function], invoker, self._now)

    def _start(self, number: int, dispatch: Dispatch, container: int, *, cold: bool) -> None:
        queue = self._queues.all[number]
        if self._was_lost:
            dispatch = dispatch._replace(jobs=_together(queue.jobs, dispatch.jobs))
        configuration, count, invoker, _ = dispatch
        fetch, local = 0.0, 0
        jobs = self._queues.take(number, count)
        for job in jobs:
            if not job.sources:
                own = queue.fetches.entry[queue.stage]
            elif all(source == invoker for source in job.sources):
                own = queue.fetches.local[queue.stage]
                local += 1
            else:
                own = queue.fetches.remote[queue.stage]
            fetch = max(fetch, own)
        self.invokers.take(invoker, configuration.cpu, configuration.gpu)
        self._is_full = not self._has_room()
        seconds = self._profile_seconds(queue, count, configuration.cpu, configuration.gpu)
        key = self._next_task
        self._next_task += 1
        self._tasks[key] = made(_Task, (number, jobs, dispatch, container, seconds))
        keys = tuple([job.request.key for job in jobs])
        waited = tuple([self._now - job.since for job in jobs])
        what = (key, queue.application, queue.stage, keys, dispatch, fetch, seconds, local, container, cold, waited)
        self._commands.append(made(StartTask, what))
        if self._care is not None and queue.function >= 0:
            functions = self._applications[queue.application].functions
            after = [functions[stage] for stage in queue.after if functions[stage] >= 0]
            self._commands += self._care.task_started(queue.function, invoker, after, seconds, self._now)


_LESS_OFTEN: dict[type, Callable[[ServerlessEngine, Any], None]] = {
    Cancelled: ServerlessEngine._cancelled,
    ContainerFailed: ServerlessEngine._container_failed,
    InvokerLost: ServerlessEngine._invoker_lost,
    InvokerJoined: ServerlessEngine._invoker_joined,
}


def _together(jobs: Iterable[Job], count: int) -> int:
    """How many of the oldest jobs may share a task: one that was on an invoker when that was lost runs alone."""
    for position, job in enumerate(islice(jobs, count)):
        if job.request.losses:
            return max(position, 1)
    return count


__all__ = ["ContainerRule", "Function", "ServedApplication", "ServerlessEngine"]
