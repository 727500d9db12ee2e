"""The experiment of Compass's authors as their own simulator runs it, to compare with published numbers.

It is another machine than the engine's, on purpose: what follows is how that program works, mistakes included, and
nothing of it should have to be thought of anywhere else. Together with the `compat` option of a scheduler it repeats
published runs task by task.

- Each workflow has a client. One generator makes all draws in the order of events: as a request is created the gap to
  the next of its client, then its ingress; for Hash, which has one scheduler for all, the worker of each task as the
  request reaches it.
- Workflows share no models. A load is what waits, without the task that runs. A planner sees the others' loads as they
  are, but its own as of a moment ago.
- A task with several inputs joins the queue with the last of them. A model is there once it is copied; only then do
  older ones go until all fit, each by a copy to the host before the task can run.
- Nothing is adjusted. The run ends when enough requests have begun their last task; averages are over these.

One thing cannot be repeated: two tasks of a request that reach a worker at the same moment come in an order there that
nothing in a published run explains. Here it is the order of the stages.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from fairway.errors import InputError
from fairway.place.fleet import OUTSIDE, Fleet
from fairway.place.graph import TaskGraph
from fairway.place.plan import Request
from fairway.place.registry import scheduler_of
from fairway.place.state import NEVER, StateTable, View
from fairway.report.serving_record import RequestOutcome, ServingRecord
from fairway.sim.arrivals import Arrivals
from fairway.sim.loop import Loop
from fairway.sim.scenario import Scenario
from fairway.sim.serving import Progress, ServingOptions
from fairway.sim.serving_recorder import ServingRecorder
from fairway.workflows import Model, Workflow

MORE_CREATED = 11
"""Requests are created until there are so many more than have to complete."""


def is_compat(scheduler: str) -> bool:
    """Whether a scheduler is to be run as the authors' simulator does."""
    return bool(getattr(scheduler_of(scheduler), "compat", False))


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
        end=run.loop.now,
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


class _OldOwnLoad(StateTable):
    """The rows as that simulator reads them: the others' loads as they are, the reader's own as of a moment ago."""

    def __init__(self, fleet: Fleet, age: float) -> None:
        super().__init__(fleet)
        self._age = age
        self._past: list[deque[tuple[float, float]]] = [deque([(NEVER, 0.0)]) for _ in fleet.workers]

    def write_load(self, worker: int, queued: float, busy_until: float, now: float) -> None:
        """Set a worker's load, and remember it."""
        super().write_load(worker, queued, busy_until, now)
        self._past[worker].append((now, queued))

    def view(self, me: int, now: float) -> View:
        """What a planner sees."""
        seen = super().view(me, now)
        if me == OUTSIDE:
            return seen
        past = self._past[me]
        while len(past) > 1 and past[1][0] < now - self._age:
            past.popleft()
        return seen._replace(own_queued=past[0][1])


@dataclass(slots=True)
class _Job:
    number: int
    client: int
    graph: TaskGraph
    created: float
    workers: list[int] = field(default_factory=list)
    arrived: list[int] = field(default_factory=list)
    queued: list[float] = field(default_factory=list)


@dataclass(slots=True)
class _Worker:
    waiting: deque[tuple[_Job, int]] = field(default_factory=deque)
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
        self.loop = Loop()
        self.fleet = scenario.fleet()
        self.recorder = ServingRecorder(len(self.fleet), requests + MORE_CREATED, keep=options.keep_runs)
        self._graphs = scenario.graphs(self.fleet)
        self._scheduler = scheduler_of(scheduler)
        # Hash draws where all requests come together; so does a planner of which there is only one.
        self._central = self._scheduler.name == "hash" or self._scheduler.rules.centralised
        self._table = _OldOwnLoad(self.fleet, options.load_staleness_seconds)
        self._draws = _Draws(options.seed, len(self.fleet))
        self._workers = [_Worker() for _ in self.fleet.workers]
        self._load = [0.0] * len(self.fleet)
        self._to_host = [self.fleet.links.to_host(model.bytes) for model in self.fleet.models]
        self._jobs: list[_Job] = []
        self._to_complete = requests
        self._completed = 0
        self._progress = progress
        self._gap = len(self._graphs) / rate
        for client in range(len(self._graphs)):
            self._create(client, client * self._gap / len(self._graphs))

    def arrivals(self) -> Arrivals:
        """The requests that were created by the end, in order; so are the columns of the recorder from now on."""
        sent = sorted((job for job in self._jobs if job.created <= self.loop.now), key=lambda job: job.created)
        self.recorder.reorder([job.number for job in sent])
        return Arrivals(
            time=np.array([job.created for job in sent]),
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
        self.loop.after(float(job.graph.input_seconds[0]), partial(self._plan, job, ingress))

    def _plan(self, job: _Job, ingress: int) -> None:
        now = self.loop.now
        begin = time.perf_counter()
        request = Request(job.number, job.graph, ingress)
        plan = self._scheduler.plan(request, self._table.view(ingress, now), now, self._draws)
        self.recorder.decision_seconds.append(time.perf_counter() - begin)
        job.workers = plan.workers.tolist()
        job.arrived = [0] * len(job.workers)
        job.queued = [0.0] * len(job.workers)
        first = job.workers[0]
        delay = 0.0 if first == ingress else float(job.graph.input_seconds[0])
        self.loop.after(delay, partial(self._enqueue, job, 0))

    def _enqueue(self, job: _Job, stage: int) -> None:
        job.arrived[stage] += 1
        if job.arrived[stage] < len(job.graph.workflow.predecessors[stage]):
            return
        number = job.workers[stage]
        worker = self._workers[number]
        job.queued[stage] = self.loop.now
        worker.waiting.append((job, stage))
        if worker.busy:
            self._change_load(number, float(job.graph.seconds[stage, number]))
        else:
            self._start(number)

    def _change_load(self, number: int, seconds: float) -> None:
        load = self._load[number] = max(0.0, self._load[number] + seconds) if self._workers[number].waiting else 0.0
        self._table.write_load(number, load, NEVER, self.loop.now)

    def _start(self, number: int) -> None:
        worker, now = self._workers[number], self.loop.now
        was_busy = worker.busy
        worker.busy = bool(worker.waiting)
        if not worker.waiting:
            return
        job, stage = worker.waiting.popleft()
        seconds = float(job.graph.seconds[stage, number])
        if was_busy:  # otherwise it has never waited
            self._change_load(number, -seconds)
        ready, found = now, -1
        for model in job.graph.needed[stage].tolist():
            found = int(model in worker.resident)
            if not found:
                ready = self._fetch(number, model, now)
        self.recorder.ran(number, job.number, stage, found, job.queued[stage], now, ready, ready + seconds)
        self.loop.at(ready + seconds, partial(self._end, number, job, stage))
        if not job.graph.workflow.successors[stage]:
            self._complete(job, ready + seconds)

    def _fetch(self, number: int, model: int, now: float) -> float:
        """Bring a model in, then let others go; when the task can run."""
        worker, sizes = self._workers[number], self.fleet.model_bytes
        there = now + float(self.fleet.fetch_seconds[model])
        self.recorder.fetched(number, model, now, there)
        worker.resident.append(model)
        worker.used += float(sizes[model])
        changes, ready = [(model, True)], there
        while worker.used > self.fleet.memory[number]:
            victim = worker.resident.pop(0)
            worker.used -= float(sizes[victim])
            changes.append((victim, False))
            self.recorder.evicted(number, victim, ready, ready + self._to_host[victim])
            ready += self._to_host[victim]
        self.loop.at(there, partial(self._show, number, changes))
        return ready

    def _show(self, number: int, changes: list[tuple[int, bool]]) -> None:
        for model, held in changes:
            self._table.write_cache(number, model, held, self.loop.now)

    def _end(self, number: int, job: _Job, stage: int) -> None:
        for successor in job.graph.workflow.successors[stage]:
            near = job.workers[successor] == number
            delay = 0.0 if near else float(job.graph.far_seconds[stage])
            if near:
                self._enqueue(job, successor)
            else:
                self.loop.after(delay, partial(self._enqueue, job, successor))
        self._start(number)

    def _complete(self, job: _Job, end: float) -> None:
        self.recorder.finish[job.number] = end
        self.recorder.outcome[job.number] = RequestOutcome.COMPLETED
        self._completed += 1
        if self._progress is not None:
            self._progress(self._completed, self.loop.now)
        if self._completed == self._to_complete:
            self.loop.stop()
