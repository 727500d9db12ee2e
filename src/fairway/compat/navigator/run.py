"""The experiment of Compass's authors as their own simulator runs it, to compare with its numbers.

It is another machine than the engine's, on purpose: what follows is how that program works, mistakes included, and
nothing of it should have to be thought of anywhere else. Together with the `compat` option of a scheduler it repeats
recorded runs of that simulator task by task.

- Each workflow has a client. One generator makes all draws in the order of events: as a request is created the gap to
  the next of its client, then its ingress; for Hash, which has one scheduler for all, the worker of each task as the
  request reaches it.
- Workflows share no models. A load is what waits, without the task that runs. Who sees what of it is in
  `navigator_rows`.
- A task with several inputs joins the queue with the last of them. A model is there once it is copied; only then do
  older ones go until all fit, each by a copy to the host before the task can run.
- What a task puts out is sent off when it starts, with the time at which it will be there. Where it goes is decided
  then too, as of that task's end. Nothing moves unless the scheduler has `adjust`; for that, the task that starts still
  counts as waiting.
- The run ends when enough requests have begun their last task; averages are over these.
- Times are in milliseconds. Events are ordered by time alone, so that which of two at the same time comes first depends
  on how they lie in the heap.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from heapq import heappop, heappush
from typing import Any

import numpy as np

from fairway.compat.navigator.past_rows import PastRows
from fairway.engine.serving.schedule import AnySchedule, schedule_of
from fairway.errors import InputError
from fairway.place.fleet import OUTSIDE
from fairway.place.graph import TaskGraph
from fairway.place.plan import Request
from fairway.place.registry import placer_of
from fairway.report.serving.record import RequestOutcome, ServingRecord
from fairway.sim.arrivals import Arrivals
from fairway.sim.scenario import Scenario
from fairway.sim.serving import Progress, ServingOptions
from fairway.sim.serving_recorder import ServingRecorder
from fairway.workflows import Model, Workflow

MORE_CREATED = 11
"""Requests are created until there are so many more than have to complete."""


def is_compat(scheduler: AnySchedule) -> bool:
    """Whether a scheduler is to be run as the authors' simulator does."""
    return bool(getattr(schedule_of(scheduler).placer, "compat", False))


def simulate_navigator(
    scenario: Scenario,
    requests: int,
    rate: float,
    scheduler: str,
    options: ServingOptions,
    *,
    settings: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> ServingRecord:
    """Run until so many requests have begun their last task; `rate` is that of all clients together."""
    if options.failures or options.noise or options.nic_queues:
        raise InputError(f"scheduler '{scheduler}': compat has neither failures nor noise nor network queues")
    begin = time.perf_counter()
    apart = replace(scenario, workflows=tuple(map(_apart, range(len(scenario.workflows)), scenario.workflows)))
    run = _Experiment(apart, requests, rate, scheduler, options, progress)
    run.loop.run()
    record = run.recorder.record(
        scheduler=scheduler,
        scenario=apart,
        fleet=run.fleet,
        arrivals=run.arrivals(),
        settings=settings or {},
        discard=0.0,
        slo_scale=options.slo_scale,
        end=run.loop.now / 1000,
        events=run.loop.events,
        wall_seconds=time.perf_counter() - begin,
    )
    done = np.flatnonzero(record.requests.outcome == RequestOutcome.COMPLETED)
    counted = np.zeros(len(record.requests), dtype=bool)
    counted[done[int(options.discard * len(done)) :]] = True
    return replace(record, requests=replace(record.requests, counted=counted))


def _apart(number: int, workflow: Workflow) -> Workflow:
    """The workflow with models that only it knows."""
    names = {name: f"{number}/{name}" for name in workflow.models}
    return replace(
        workflow,
        stages=tuple(replace(stage, models=tuple(names[name] for name in stage.models)) for stage in workflow.stages),
        models={names[name]: Model(names[name], model.bytes) for name, model in workflow.models.items()},
    )


def _in_milliseconds(graph: TaskGraph) -> TaskGraph:
    """The graph with times that are whole numbers if they are that in milliseconds, so that equals stay equal."""
    fleet = replace(graph.fleet, fetch_seconds=1000 * graph.fleet.fetch_seconds)
    return replace(
        graph,
        fleet=fleet,
        seconds=np.round(1000 * graph.seconds, 9),
        near_seconds=1000 * graph.near_seconds,
        far_seconds=1000 * graph.far_seconds,
        input_seconds=1000 * graph.input_seconds,
    )


class _Due:
    """Something that will happen."""

    __slots__ = ("action", "time")

    def __init__(self, time: float, action: Callable[[], None]) -> None:
        self.time = time
        self.action = action

    def __lt__(self, other: _Due) -> bool:
        return self.time < other.time


class _Heap:
    """What is to come: a binary heap by time alone.

    Which of two at the same time comes first depends on all that lies in the heap with them. So everything that the
    other program puts there has to be put here, and nothing else.
    """

    def __init__(self) -> None:
        self.now = 0.0
        self.events = 0
        self._due: list[_Due] = []
        self._stopped = False

    def at(self, time: float, action: Callable[[], None]) -> None:
        """Let something happen."""
        heappush(self._due, _Due(time, action))

    def stop(self) -> None:
        """Let nothing more happen."""
        self._stopped = True

    def run(self) -> None:
        """Let everything happen."""
        while self._due and not self._stopped:
            due = heappop(self._due)
            self.now = due.time
            self.events += 1
            due.action()


@dataclass(slots=True)
class _Job:
    number: int
    client: int
    graph: TaskGraph
    created: float
    request: Request | None = None
    workers: list[int] = field(default_factory=list)
    arrived: list[int] = field(default_factory=list)
    queued: list[float] = field(default_factory=list)


@dataclass(slots=True)
class _Worker:
    waiting: deque[tuple[_Job, int, float]] = field(default_factory=deque)
    busy: bool = False
    resident: list[int] = field(default_factory=list)
    used: float = 0.0


class _Draws:
    """The one generator; asked for a part of the row of workers, it answers as the other program chooses a worker."""

    def __init__(self, seed: int, workers: int) -> None:
        self.state = np.random.RandomState(seed)
        self._workers = workers

    def worker(self) -> int:
        return int(self.state.randint(0, self._workers))

    def random(self) -> float:
        return (self.worker() + 0.5) / self._workers


class _Experiment:
    """The world of one run."""

    def __init__(
        self,
        scenario: Scenario,
        requests: int,
        rate: float,
        scheduler: str,
        options: ServingOptions,
        progress: Progress | None,
    ) -> None:
        self.loop = _Heap()
        self.fleet = scenario.fleet()
        self.recorder = ServingRecorder(len(self.fleet), requests + MORE_CREATED, keep=options.keep_runs)
        self._graphs = [_in_milliseconds(graph) for graph in scenario.graphs(self.fleet)]
        self._scheduler = placer_of(scheduler)
        # Hash draws where all requests come together; so does a planner of which there is only one.
        self._central = self._scheduler.name == "hash" or self._scheduler.rules.centralised
        self._adjusts = bool(getattr(self._scheduler, "adjust", False))
        ages = (options.load_staleness_seconds, options.cache_staleness_seconds)
        self._rows = PastRows(self.fleet, *(1000 * age for age in ages))
        self._draws = _Draws(options.seed, len(self.fleet))
        self._workers = [_Worker() for _ in self.fleet.workers]
        self._fetch: list[float] = (1000 * self.fleet.fetch_seconds).tolist()
        self._to_host = [1000 * self.fleet.links.to_host(model.bytes) for model in self.fleet.models]
        self._jobs: list[_Job] = []
        self._to_complete = requests
        self._completed = 0
        self._progress = progress
        self._gap = 1000 * len(self._graphs) / rate
        for client in range(len(self._graphs)):
            self._create(client, client * self._gap / len(self._graphs))

    def arrivals(self) -> Arrivals:
        """The requests that were created by the end, in order; so are the columns of the recorder from now on."""
        sent = sorted((job for job in self._jobs if job.created <= self.loop.now), key=lambda job: job.created)
        self.recorder.reorder([job.number for job in sent])
        return Arrivals(
            time=np.array([job.created for job in sent]) / 1000,
            workflow=np.array([job.client for job in sent], dtype=np.int64),
            ingress=np.zeros(len(sent)),
            work=np.ones(len(sent)),
        )

    def _create(self, client: int, created: float) -> None:
        job = _Job(len(self._jobs), client, self._graphs[client], created)
        self._jobs.append(job)
        self.loop.at(created, partial(self._send, job))

    def _send(self, job: _Job) -> None:
        if len(self._jobs) >= self._to_complete + MORE_CREATED:
            return
        self._create(job.client, job.created + self._draws.state.exponential(self._gap))
        ingress = OUTSIDE if self._central else self._draws.worker()
        self.recorder.asked[job.number] = 1
        self.loop.at(self.loop.now + float(job.graph.input_seconds[0]), partial(self._plan, job, ingress))

    def _plan(self, job: _Job, ingress: int) -> None:
        now = self.loop.now
        view = self._rows.view(ingress, now, now)
        begin = time.perf_counter()
        request = job.request = Request(job.number, job.graph, ingress)
        plan = self._scheduler.plan(request, view, now, self._draws)
        self.recorder.decision_seconds.append(time.perf_counter() - begin)
        job.workers = plan.workers.tolist()
        job.arrived = [0] * len(job.workers)
        job.queued = [0.0] * len(job.workers)
        first = job.workers[0]
        delay = 0.0 if first == ingress else float(job.graph.input_seconds[0])
        self.loop.at(now + delay, partial(self._enqueue, job, 0, first))

    def _receive(self, job: _Job, stage: int, number: int) -> None:
        """A worker gets an input of a task; with the last, the task joins the queue."""
        job.arrived[stage] += 1
        if job.arrived[stage] == len(job.graph.workflow.predecessors[stage]):
            self.loop.at(self.loop.now, partial(self._enqueue, job, stage, number))

    def _enqueue(self, job: _Job, stage: int, number: int) -> None:
        worker = self._workers[number]
        job.queued[stage] = self.loop.now
        worker.waiting.append((job, stage, float(job.graph.seconds[stage, number])))
        self._write_load(number)
        if not worker.busy:
            self._start(number)

    def _write_load(self, number: int) -> None:
        queued = 0.0
        for _, _, duration in self._workers[number].waiting:  # added up anew each time: as exact as over there
            queued += duration
        self._rows.set_load(number, queued, self.loop.now)

    def _start(self, number: int) -> None:
        """Run the next task, if one waits, and send off at once what it will put out at its end."""
        worker, now = self._workers[number], self.loop.now
        worker.busy = bool(worker.waiting)
        if not worker.waiting:
            return
        job, stage, duration = worker.waiting[0]
        ready, found = now, -1
        for model in job.graph.needed[stage].tolist():
            found = int(model in worker.resident)
            if not found:
                ready = self._bring(number, model, now)
        end = ready + duration
        times = [time / 1000 for time in (job.queued[stage], now, ready, end)]
        self.recorder.ran(number, job.number, stage, found, *times)
        for successor in job.graph.workflow.successors[stage]:
            target = self._next_worker(job, successor, number, end)
            delay = 0.0 if target == number else float(job.graph.far_seconds[stage])
            self.loop.at(end + delay, partial(self._receive, job, successor, target))
        self.loop.at(end, partial(self._start, number))
        worker.waiting.popleft()
        self._write_load(number)
        if not job.graph.workflow.successors[stage]:
            self._complete(job, end)

    def _next_worker(self, job: _Job, stage: int, number: int, end: float) -> int:
        planned = job.workers[stage]
        if not self._adjusts or job.request is None:
            return planned
        view = self._rows.view(number, end, self.loop.now)
        return self._scheduler.next_worker(job.request, stage, planned, view, end, self._draws)

    def _bring(self, number: int, model: int, now: float) -> float:
        """Bring a model in, then let others go; when the task can run."""
        worker, sizes = self._workers[number], self.fleet.model_bytes
        there = now + self._fetch[model]
        self.recorder.fetched(number, model, now / 1000, there / 1000)
        worker.resident.append(model)
        worker.used += float(sizes[model])
        self._rows.change_memory(number, model, True, there)
        ready = there
        while worker.used > self.fleet.memory[number]:
            victim = worker.resident.pop(0)
            worker.used -= float(sizes[victim])
            self._rows.change_memory(number, victim, False, there)
            begin, ready = ready, ready + self._to_host[victim]
            self.recorder.evicted(number, victim, begin / 1000, ready / 1000)
        return ready

    def _complete(self, job: _Job, end: float) -> None:
        self.recorder.finish[job.number] = end / 1000
        self.recorder.outcome[job.number] = RequestOutcome.COMPLETED
        self._completed += 1
        if self._progress is not None:
            self._progress(self._completed, self.loop.now / 1000)
        if self._completed == self._to_complete:
            self.loop.stop()
