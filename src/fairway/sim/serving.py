"""Runs one serving engine per worker in virtual time on a stream of requests, and records what happens.

The heap of what is to come holds messages and the number of the engine that gets each; an engine's commands put more
there. It does what `loop` does, in the same total order (time, priority, sequence number), without an object and a call
for each event: a run has millions of them. What hardware does is in `hardware`, what goes wrong in `failures`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from typing import Any

import numpy as np

from fairway.engine.serving import ServingEngine, ServingEngineOptions
from fairway.engine.serving_messages import (
    NONE_FAILED,
    Command,
    Event,
    Evict,
    Load,
    Mate,
    ModelLoaded,
    Refuse,
    Reply,
    RequestArrived,
    Run,
    Send,
    TaskDone,
)
from fairway.errors import InputError
from fairway.made import made
from fairway.place.fleet import OUTSIDE
from fairway.place.homes import homes_under
from fairway.place.registry import scheduler_of
from fairway.place.state import Pushes, StateTable
from fairway.report.serving_record import RequestOutcome, ServingRecord
from fairway.sim.arrivals import Arrivals
from fairway.sim.collector import without_collector
from fairway.sim.failures import Failure, Failures
from fairway.sim.hardware import Hardware
from fairway.sim.loop import NORMAL, URGENT
from fairway.sim.observed import Observed
from fairway.sim.scenario import Scenario
from fairway.sim.serving_recorder import ServingRecorder

WORLD = -2
"""In place of an engine's number: something that happens to the world; the message is what to call."""

_EVENTS_BETWEEN_NEWS = 2048

_ASKED_AHEAD = 64
"""Requests go on the heap so many at a time: enough to save their own events, too few to make it deep."""

Progress = Callable[[int, float], None]
"""Called now and then with the number of requests that have ended and the virtual time."""


@dataclass(frozen=True, slots=True)
class ServingOptions:
    """How to run.

    Others see a worker's load and models so many seconds after they change. `noise` is the coefficient of variation of
    run times. With `nic_queues`, a host sends one message at a time. `eviction_copies` goes before the scenario's own.
    The first part of the requests, `discard`, does not count in averages. `keep_runs` records every run and copy, which
    a report needs and a sweep does not. A lost worker is noticed after `detection_seconds`.
    """

    load_staleness_seconds: float = 0.001
    cache_staleness_seconds: float = 0.001
    noise: float = 0.0
    nic_queues: bool = False
    eviction_copies: bool | None = None
    discard: float = 0.1
    slo_scale: float = 1.0
    seed: int = 0
    keep_runs: bool = False
    failures: tuple[Failure, ...] = ()
    detection_seconds: float = 0.3


@without_collector()
def simulate_serving(
    scenario: Scenario,
    arrivals: Arrivals,
    scheduler: str,
    options: ServingOptions,
    *,
    settings: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> ServingRecord:
    """Run the requests under a scheduler until all have been answered."""
    start = time.perf_counter()
    world = World(scenario, arrivals, scheduler, options, progress)
    world.run()
    return world.recorder.record(
        scheduler=scheduler,
        scenario=scenario,
        fleet=world.fleet,
        arrivals=arrivals,
        settings=settings or {},
        discard=options.discard,
        slo_scale=options.slo_scale,
        end=world.now,
        events=world.events,
        wall_seconds=time.perf_counter() - start,
    )


class World:
    """One run: the engines, the hardware, the clients, and what is to come."""

    def __init__(
        self,
        scenario: Scenario,
        arrivals: Arrivals,
        scheduler: str,
        options: ServingOptions,
        progress: Progress | None = None,
    ) -> None:
        chosen = scheduler_of(scheduler)
        self.fleet = fleet = scenario.fleet()
        self.graphs = scenario.graphs(fleet)
        self.recorder = ServingRecorder(len(fleet), len(arrivals), keep=options.keep_runs)
        self.centralised = chosen.rules.centralised
        ages = (options.load_staleness_seconds, options.cache_staleness_seconds)
        loads, caches = (Pushes(delay=0.0 if self.centralised else age) for age in ages)
        self.table = StateTable(fleet, loads, caches, homes_under(chosen.rules, self.graphs, fleet))
        self.scheduler = Observed(chosen, self.table, self.recorder)
        self.draws = np.random.default_rng([options.seed, 1])
        copies = scenario.eviction_copies if options.eviction_copies is None else options.eviction_copies
        self.hardware = Hardware(fleet, self.recorder, eviction_copies=copies, nic_queues=options.nic_queues)
        self.now = 0.0
        self.events = 0
        self._engine_options = ServingEngineOptions(
            recovers=bool(options.failures),
            publishes=False,
            batches=scenario.batches(self.graphs, options.slo_scale) if chosen.rules.batches else {},
        )
        # The last is that of the one place that plans, if there is one: Python's own -1, as OUTSIDE is.
        self.engines: list[ServingEngine | None] = [self.engine(worker) for worker in range(len(fleet))]
        self.engines.append(self.engine(OUTSIDE) if self.centralised else None)
        self._heap: list[tuple[float, int, int, int, Any]] = []
        self._number = 0
        self._times: list[float] = arrivals.time.tolist()
        self._workflows: list[int] = arrivals.workflow.tolist()
        self._ingress: list[float] = arrivals.ingress.tolist()
        self._entry_seconds = [float(graph.input_seconds[graph.workflow.topological_order[0]]) for graph in self.graphs]
        self._work = _real_work(arrivals, max(map(len, self.graphs)), options)
        self._owner: list[int] = []
        self._left = len(arrivals)
        self._progress = progress
        self._failures = Failures(self, options.failures, options.detection_seconds) if options.failures else None
        self._next_request = 0
        if self._times:
            self.at(self._times[0], WORLD, self._arrive, URGENT)

    def engine(self, worker: int, epoch: int = 0) -> ServingEngine:
        """A new engine for a worker."""
        options = self._engine_options if epoch == 0 else replace(self._engine_options, epoch=epoch)
        return ServingEngine(worker, self.scheduler, self.table, self.draws, options)

    def run(self) -> None:
        """Let everything happen until all requests have ended."""
        heap, engines, do, progress = self._heap, self.engines, self.do, self._progress
        events = self.events
        while heap and self._left:
            now, _, _, target, message = heappop(heap)
            self.now = now
            events += 1
            if target == WORLD:
                message()
            else:
                engine = engines[target]
                if engine is not None:
                    commands = engine.handle(now, message)
                    if commands:
                        do(target, commands)
            if progress is not None and not events % _EVENTS_BETWEEN_NEWS:
                progress(len(self._times) - self._left, now)
        self.events = events

    def at(self, moment: float, target: int, message: Any, priority: int = NORMAL) -> None:
        """Let an engine get a message, or the world do something."""
        self._number += 1
        heappush(self._heap, (moment, priority, self._number, target, message))

    def do(self, worker: int, commands: list[Command]) -> None:
        """Do what an engine asks for."""
        now, heap, hardware, number = self.now, self._heap, self.hardware, self._number
        self._number += len(commands)
        command: Any
        for command in commands:
            number += 1
            kind = type(command)
            if kind is Send:
                to, message = command
                heappush(heap, (hardware.arrival(now, worker, to, message), NORMAL, number, to, message))
            elif kind is Run:
                run, flow, stage, seconds, queued, turn, found, mates = command
                if mates:
                    end = self._run_together(worker, command)
                else:
                    request = self._owner[flow.request.key]
                    end = now + (seconds if self._work is None else seconds * self._work[request][stage])
                    self.recorder.ran(worker, request, stage, found, queued, turn, now, end)
                if self._failures is not None:
                    self._failures.runs_until[worker] = (end, 1 + len(mates))
                heappush(heap, (end, NORMAL, number, worker, made(TaskDone, (run, NONE_FAILED))))
            elif kind is Load:
                there = hardware.load(now, worker, command.model)
                heappush(heap, (there, NORMAL, number, worker, made(ModelLoaded, command)))
            elif kind is Evict:
                hardware.evict(now, worker, command.model)
            elif kind is Reply:
                self._end(command.key, command.finished, RequestOutcome.COMPLETED)
            elif kind is Refuse:
                self.recorder.refused(command.reason)
                self._end(command.key, np.nan, RequestOutcome.REFUSED)

    def _run_together(self, worker: int, run: Run) -> float:
        """Run a task and its mates at once; when they end. More than expected is the mean of what each has of that."""
        together: list[Run | Mate] = [run, *run.mates]
        members = [(self._owner[each.flow.request.key], each.found, each.queued, each.turn) for each in together]
        seconds = run.seconds
        if self._work is not None:
            seconds *= sum(self._work[request][run.stage] for request, *_ in members) / len(members)
        end = self.now + seconds
        self.recorder.ran_together(worker, run.stage, self.now, end, members)
        return end

    def tell(self, worker: int, event: Event) -> None:
        """Let an engine get a message at once."""
        engine = self.engines[worker]
        if engine is not None:
            self.do(worker, engine.handle(self.now, event))

    def ask(self, request: int, ingress: int, since: float) -> None:
        """Let a client send its request to a worker, or to the one place that plans."""
        key = len(self._owner)
        self._owner.append(request)
        self.recorder.asked[request] += 1
        workflow = self._workflows[request]
        if self._failures is not None:
            self._failures.asked[key] = (request, ingress)
        self.at(since + self._entry_seconds[workflow], ingress, RequestArrived(key, self.graphs[workflow]))

    def _arrive(self) -> None:
        """Let the next requests come, and those after them be next: one by one where it matters who is there."""
        times, workers, failures = self._times, len(self.fleet.workers), self._failures
        first = self._next_request
        self._next_request = after = min(first + (_ASKED_AHEAD if failures is None else 1), len(times))
        for request in range(first, after):
            ingress = OUTSIDE if self.centralised else int(self._ingress[request] * workers)
            if failures is not None:
                failures.arrived(request, ingress)
            else:
                self.ask(request, ingress, times[request])
        if after < len(times):
            self.at(times[after], WORLD, self._arrive, URGENT)

    def _end(self, key: int, finished: float, outcome: RequestOutcome) -> None:
        request = self._owner[key]
        self.recorder.finish[request] = finished
        self.recorder.outcome[request] = outcome
        self._left -= 1
        if self._failures is not None:
            del self._failures.asked[key]


def _real_work(arrivals: Arrivals, stages: int, options: ServingOptions) -> list[list[float]] | None:
    """By request and stage, how much longer than expected the run really takes; None where nothing does.

    Noise is lognormal with mean 1. It belongs to the task, not to the moment: the same for every scheduler.
    """
    if options.noise < 0:
        raise InputError(f"--noise: {options.noise} given, expected a number of at least 0")
    if options.noise == 0 and (arrivals.work == 1.0).all():
        return None
    factor = np.repeat(arrivals.work[:, None], stages, axis=1)
    if options.noise > 0:
        sigma = np.sqrt(np.log1p(options.noise**2))
        draws = np.random.default_rng([options.seed, 2])
        factor = factor * draws.lognormal(-(sigma**2) / 2, sigma, factor.shape)
    return factor.tolist()  # type: ignore[no-any-return]
