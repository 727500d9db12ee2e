"""Runs serving engines in virtual time on a stream of requests, and records what happens.

Every worker has an engine, and so has the one place that plans for all, if the scheduler wants one. The heap of what is
to come holds messages and the number of the engine that gets each; an engine's commands put more there. It does what
`loop` does, in the same total order (time, priority, sequence number), without an object and a call for each event: a
run has millions of them. An engine that plans with a configurator gets all that falls on one moment at once, after the
workers. How long data takes is in `hardware`, how long runs take in `execution`, what goes wrong in `failures`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from heapq import heappop, heappush
from typing import Any

import numpy as np

from fairway.configure.fleet_plan import preempts
from fairway.engine.serving.desk import DeskOptions
from fairway.engine.serving.engine import ServingEngine, ServingEngineOptions
from fairway.engine.serving.messages import (
    NONE_FAILED,
    BatchArrived,
    Command,
    Event,
    Evict,
    InputsArrived,
    Load,
    ModelLoaded,
    Refuse,
    Reply,
    RequestArrived,
    Run,
    Send,
    Stop,
    TaskDone,
    TimePassed,
)
from fairway.engine.serving.schedule import Schedule, schedule_of
from fairway.engine.serving.stage_planning import planned_graphs
from fairway.errors import FairwayError, InputError
from fairway.made import made
from fairway.place.fleet import OUTSIDE
from fairway.place.homes import homes_under
from fairway.place.state import Pushes, StateTable
from fairway.report.serving.record import RequestOutcome, ServingRecord
from fairway.sim.arrivals import Arrivals
from fairway.sim.collector import without_collector
from fairway.sim.execution import Execution, real_work
from fairway.sim.failures import Failure, Failures
from fairway.sim.hardware import Hardware
from fairway.sim.interference import Interference
from fairway.sim.loop import LATE, NORMAL, URGENT
from fairway.sim.observed import ObservedPlacer
from fairway.sim.scenario import Scenario
from fairway.sim.serving_recorder import ServingRecorder
from fairway.stopwatch import TimedConfigurator

WORLD = -2
"""In place of an engine's number: something that happens to the world; the message is what to call."""

_ENDS_BETWEEN_NEWS = 128

_ARRIVALS = LATE + 1
"""Requests come to an engine that plans after all else of the same moment."""

_ASKED_AHEAD = 64
"""Requests go on the heap so many at a time: enough to save their own events, too few to make it deep."""

Progress = Callable[[int, float], None]
"""Called now and then with the number of requests that have ended and the virtual time."""


@dataclass(frozen=True, slots=True)
class ServingOptions:
    """How to run.

    Others see a worker's load and models so many seconds after they change. `noise` is the coefficient of variation of
    run times. With `nic_queues`, a host sends one message at a time. `eviction_copies` goes before the scenario's own.
    The first part of the requests, `discard`, does not count in averages; with a `window` (seconds), those count that
    arrive in it, and the run goes on for at most `drain_seconds` after it. `keep_runs` records every run and copy, as a
    report needs and a sweep does not. A lost worker is noticed after `detection_seconds`. With `measured_overhead`,
    batches wait for as long as their decision really took. `recovers` and `watches_time` are as in the live system;
    decisions are the same without them while no worker fails and nothing takes much longer than expected, as loads do
    that wait for an evicted model to be copied out.
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
    window: tuple[float, float] | None = None
    drain_seconds: float = math.inf
    measured_overhead: bool = False
    recovers: bool = True
    watches_time: bool = True

    def __post_init__(self) -> None:
        if not self.recovers and self.failures:
            raise InputError("failures: given, but without recovery requests would be lost with workers; leave it on")


@without_collector()
def simulate_serving(
    scenario: Scenario,
    arrivals: Arrivals,
    scheduler: str | Schedule,
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
        scheduler=scheduler if isinstance(scheduler, str) else scheduler.name,
        scenario=scenario,
        fleet=world.fleet,
        arrivals=arrivals,
        settings=settings or {},
        discard=options.discard,
        slo_scale=options.slo_scale,
        end=world.now,
        events=world.events,
        wall_seconds=time.perf_counter() - start,
        window=options.window,
        noise=world.noise,
    )


class World:
    """One run: the engines, the hardware, the clients, and what is to come."""

    def __init__(
        self,
        scenario: Scenario,
        arrivals: Arrivals,
        scheduler: str | Schedule,
        options: ServingOptions,
        progress: Progress | None = None,
    ) -> None:
        chosen = schedule_of(scheduler) if isinstance(scheduler, str) else scheduler
        self.fleet = fleet = scenario.fleet()
        slos = [options.slo_scale * scenario.slo_of(workflow) for workflow in scenario.workflows]
        # An SLO that neither the scenario nor the user has given is a measure, and no reason to give up a request.
        asked = [workflow.name in scenario.slo_seconds or options.slo_scale != 1.0 for workflow in scenario.workflows]
        wanted = [slo if given else None for slo, given in zip(slos, asked, strict=True)]
        self.graphs = planned_graphs(chosen.rules, dict(zip(scenario.graphs(fleet), wanted, strict=True)))
        self.recorder = ServingRecorder(
            len(fleet), len(arrivals), keep=options.keep_runs, priced=scenario.prices is not None
        )
        self.centralised = chosen.centralised
        ages = (options.load_staleness_seconds, options.cache_staleness_seconds)
        loads, caches = (Pushes(delay=0.0 if self.centralised else age) for age in ages)
        self.table = StateTable(fleet, loads, caches, homes_under(chosen.rules, self.graphs, fleet))
        self.placer = ObservedPlacer(chosen.placer, self.table, self.recorder)
        self.draws = np.random.default_rng([options.seed, 1])
        copies = scenario.eviction_copies if options.eviction_copies is None else options.eviction_copies
        self.hardware = Hardware(fleet, self.recorder, eviction_copies=copies, nic_queues=options.nic_queues)
        self._arrival, self._inputs_arrival = self.hardware.arrival, self.hardware.inputs_arrival
        self.now = 0.0
        self.events = 0
        self._scenario = scenario
        self._slo = [
            slo if given or not chosen.rules.plans_stages else math.inf for slo, given in zip(slos, asked, strict=True)
        ]
        shares = scenario.fixed_shares(self.graphs)
        self._work, noise = real_work(arrivals, max(map(len, self.graphs)), options.noise, options.seed)
        self.execution = Execution(
            scenario, self.graphs, shares, self.recorder, self._work, noise,
            planned=chosen.configurator is not None, measures=options.measured_overhead,
            stops=preempts(chosen.configurator),
        )  # fmt: skip
        if scenario.sharing.interferes and not preempts(
            chosen.configurator
        ):  # a batch that can be stopped has its worker to itself
            if options.failures:
                raise InputError(
                    "failures: given, but runs that slow each other down cannot be cut short; leave out one"
                )
            self.execution.interference = Interference(self, scenario.sharing.cost)
        self._owner, self._simple = self.execution.owner, self.execution.simple
        self._engine_options = ServingEngineOptions(
            recovers=options.recovers,
            watches_time=options.watches_time,
            publishes=False,
            forgets=False,
            batches=scenario.batches(self.graphs, options.slo_scale) if chosen.rules.batches else {},
            shares=shares,
            desk=self._desk(chosen, options, arrivals),
            initial_copies=scenario.cold.initial,
            keep_alive_seconds=scenario.cold.keep_alive_seconds,
        )
        # The last is that of the one place that plans, if there is one: Python's own -1, as OUTSIDE is.
        self.engines: list[ServingEngine | None] = [self.engine(worker) for worker in range(len(fleet))]
        self.engines.append(self.engine(OUTSIDE) if self.centralised else None)
        self._has_desk = chosen.configurator is not None
        self._to_planner = LATE if self._has_desk else NORMAL
        self._wakes = (
            options.watches_time
            or self._has_desk
            or chosen.rules.plans_stages
            or scenario.cold.keep_alive_seconds < math.inf
        )
        self._dues = [math.inf] * len(self.engines)
        self._heap: list[tuple[float, int, int, int, Any]] = []
        self._certain = [-math.inf] * len(self.engines)  # when each hears for sure of the end of a run or a copy
        self._latency = fleet.links.message_seconds if len(set(fleet.hosts.tolist())) == len(fleet) else None
        self._pulls = fleet.links.pulls
        self._number = 0
        self._times: list[float] = arrivals.time.tolist()
        self._workflows: list[int] = arrivals.workflow.tolist()
        self._ingress: list[float] = arrivals.ingress.tolist()
        self._entry_seconds = [
            0.0 if fleet.links.pulls else float(graph.input_seconds[graph.workflow.topological_order[0]])
            for graph in self.graphs
        ]
        self._left = len(arrivals)
        self._last = math.inf if options.window is None else options.window[1] + options.drain_seconds
        self._progress = progress
        self._failures = Failures(self, options.failures, options.detection_seconds) if options.failures else None
        self._next_request = 0
        if self._times:
            self.at(self._times[0], WORLD, self._arrive, URGENT)
        for worker, engine in enumerate(self.engines):
            if engine is not None and engine.due < math.inf:  # it has copies that will have been idle for too long
                self._wake_at(worker, engine.due)

    @property
    def noise(self) -> float | None:
        """The noise of run times as the engine that plans has measured it."""
        planner = self.engines[OUTSIDE]
        return None if planner is None or planner.desk is None else planner.desk.noise.noise

    def _desk(self, chosen: Schedule, options: ServingOptions, arrivals: Arrivals) -> DeskOptions | None:
        """What the engine that plans has to know, if a configurator makes batches."""
        if chosen.configurator is None:
            if options.measured_overhead:
                raise InputError("--overhead: 'measured' is for schedulers that choose configurations; give a time")
            return None
        scenario, cold = self._scenario, self._scenario.cold
        # Noise is given as floor 2 counts it where requests bring their own draws; else as a coefficient of variation.
        noise = options.noise if arrivals.draws is not None else math.sqrt(math.log1p(options.noise**2))
        applications = scenario.applications(options.slo_scale)
        return DeskOptions(
            TimedConfigurator(chosen.configurator, self.execution.decision_took),
            dict(zip(self.graphs, applications, strict=True)),
            scenario.platform(noise),
            holds_cold=cold.held,
            prewarms=cold.prewarms,
        )

    def engine(self, worker: int, epoch: int = 0) -> ServingEngine:
        """A new engine for a worker."""
        options = self._engine_options if epoch == 0 else replace(self._engine_options, epoch=epoch)
        return ServingEngine(worker, self.placer, self.table, self.draws, options)

    def lose(self, worker: int) -> None:
        """The engine of a worker is gone."""
        self.engines[worker] = None
        self._dues[worker] = math.inf

    def run(self) -> None:
        """Let everything happen until all requests have ended, or the time is up."""
        heap, engines, dues, certain = self._heap, self.engines, self._dues, self._certain
        events, last, wakes = self.events, self._last, self._wakes
        do = self._do_measured if self.execution.measures else self.do
        while heap and self._left:
            now, _, _, target, message = heappop(heap)
            if now > last:
                break
            self.now = now
            events += 1
            if target >= 0:
                engine = engines[target]
                if engine is None:
                    continue
                commands = engine.handle(now, (message,))
            elif target == WORLD:
                message()
                continue
            else:
                engine = engines[target]
                if engine is None:
                    continue
                happened = self._of_this_moment(engine, message)
                events += len(happened) - 1
                commands = engine.handle(now, happened)
            if commands:
                do(target, commands)
            if wakes and (due := engine.due) < dues[target] and not now < certain[target] <= due:
                self._wake_at(target, due)  # else it hears of something before that, and looks again
        self.events = events
        if self._left and not heap:
            raise FairwayError(f"{self._left} requests wait at {self.now:.3f} s, but nothing is to come: a lock-up")
        heap.clear()  # what was still to come names this world: a circle that only Python's collector would find

    def _of_this_moment(self, engine: ServingEngine, message: Event) -> list[Event]:
        """What the engine that plans gets now: with a configurator, all that falls on this moment."""
        heap, now, happened = self._heap, self.now, []
        while True:
            if type(message) is TimePassed:
                self._dues[OUTSIDE] = math.inf
            if type(message) is not TimePassed or engine.due <= now:  # else it wants to look later by now
                happened.append(message)
            if engine.desk is None or not heap or heap[0][0] != now or heap[0][3] != OUTSIDE:
                return happened
            message = heappop(heap)[4]

    def _do_measured(self, target: int, commands: list[Command]) -> None:
        """The same as `do`; batches wait for as long as their decisions took."""
        if self.execution.measures and target == OUTSIDE:
            self.execution.planned(commands)
        self.do(target, commands)

    def _wake_at(self, target: int, due: float) -> None:
        self._dues[target] = due
        if target == OUTSIDE:
            self.at(max(due, self.now), target, TimePassed(), LATE)
        else:
            self.at(max(due, self.now), WORLD, partial(self._wake, target, due), LATE)

    def _wake(self, worker: int, due: float) -> None:
        """An engine wanted to look again at this time, and perhaps still does."""
        if due != self._dues[worker]:
            return  # it wanted to look sooner meanwhile, and what it wanted then is on the heap
        self._dues[worker] = math.inf
        engine = self.engines[worker]
        if engine is None:
            return
        if engine.due <= self.now:
            self.tell(worker, TimePassed())
        elif engine.due < math.inf:
            self._wake_at(worker, engine.due)

    def at(self, moment: float, target: int, message: Any, priority: int = NORMAL) -> None:
        """Let an engine get a message, or the world do something."""
        self._number += 1
        heappush(self._heap, (moment, priority, self._number, target, message))

    def do(self, worker: int, commands: list[Command]) -> None:
        """Do what an engine asks for."""
        now, heap, number = self.now, self._heap, self._number
        self._number = number + len(commands)
        command: Any
        for command in commands:
            number += 1
            kind = type(command)
            if kind is Send:
                to, message = command
                if type(message) is InputsArrived:  # most of them
                    heappush(heap, (self._inputs_arrival(now, worker, to, message), NORMAL, number, to, message))
                else:
                    if self._latency is not None and (self._pulls or type(message) is not BatchArrived):
                        there = now + self._latency
                    else:
                        there = self._arrival(now, worker, to, message)
                    heappush(heap, (there, NORMAL if to >= 0 else self._to_planner, number, to, message))
            elif kind is Run:
                run, flow, stage, seconds, queued, turn, found, mates, batch = command
                if mates or batch or not self._simple:
                    end, seconds = self.execution.run(now, worker, command)
                    if end == math.inf:  # its neighbours have a say in that
                        continue
                else:
                    request = self._owner[flow.request.key]
                    if self._work is not None:
                        seconds *= self._work[request][stage]
                    end = now + seconds
                    self.recorder.ran(worker, request, stage, found, queued, turn, now, end)
                if self._failures is not None:
                    part = self.execution.share(worker, command).part
                    self._failures.runs(worker, run, end, 1 + len(mates), part)
                self._certain[worker] = end
                heappush(heap, (end, NORMAL, number, worker, made(TaskDone, (run, NONE_FAILED, seconds))))
            elif kind is Load:
                copy, model, why = command
                there = self._certain[worker] = self.hardware.load(now, worker, model, why)
                heappush(heap, (there, NORMAL, number, worker, made(ModelLoaded, (copy, model))))
            elif kind is Stop:
                self.execution.stop(now, worker, command.run)
                if self._failures is not None:
                    self._failures.stops(worker, command.run)
            elif kind is Evict:
                self.hardware.evict(now, worker, command.model)
            elif kind is Reply:
                self._end(command.key, command.finished, RequestOutcome.COMPLETED)
            elif kind is Refuse:
                self.recorder.refused(command.reason)
                self._end(command.key, np.nan, RequestOutcome.REFUSED)

    def tell(self, worker: int, event: Event) -> None:
        """Let an engine get a message at once."""
        engine = self.engines[worker]
        if engine is not None:
            self._do_measured(worker, engine.handle(self.now, (event,)))
            if engine.due < self._dues[worker]:
                self._wake_at(worker, engine.due)

    def ask(self, request: int, ingress: int, since: float) -> None:
        """Let a client send its request to a worker, or to the one place that plans."""
        workflow = self._workflows[request]
        key = self.execution.asked(request, len(self.graphs[workflow]))
        self.recorder.asked[request] += 1
        if self._failures is not None:
            self._failures.asked[key] = (request, ingress)
        fields = (key, self.graphs[workflow], math.inf, self._times[request] + self._slo[workflow])
        priority = _ARRIVALS if ingress == OUTSIDE and self._has_desk else NORMAL
        there, event = since + self._entry_seconds[workflow], made(RequestArrived, fields)
        if self._failures is not None and ingress != OUTSIDE:
            self.at(there, WORLD, partial(self._failures.reaches, key, event), priority)
        else:
            self.at(there, ingress, event, priority)

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
        if self._progress is not None and not self._left % _ENDS_BETWEEN_NEWS:
            self._progress(len(self._times) - self._left, self.now)
        if self._failures is not None:
            del self._failures.asked[key]
