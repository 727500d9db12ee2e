"""Runs the serverless engine in virtual time on a stream of requests, and records what happens.

The engine gets all that happens at one moment at once: first the ends of tasks in the order in which they started, then
containers that are ready, then requests. A task that starts at `now` ends at

    now + overhead + cold start + fetch + run        run = profile · exp(noise · draw of its oldest request)

Overhead is a constant or, if wanted, the real time that the decision took; decisions do not wait for each other, and
count on the constant.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any

import numpy as np

from fairway.configure.application import Application
from fairway.configure.configuration import SECONDS_PER_HOUR
from fairway.configure.configurator import Configurator
from fairway.configure.registry import configurator_of
from fairway.engine.containers import ContainerRule
from fairway.engine.serverless import ServerlessEngine
from fairway.engine.serverless_messages import (
    Command,
    ContainerReady,
    Event,
    Reply,
    RequestArrived,
    StartContainer,
    StartTask,
    StopContainer,
    TaskDone,
    TimeReached,
    Wake,
)
from fairway.errors import FairwayError, InputError
from fairway.report.serverless_record import ApplicationFacts, ServerlessRecord
from fairway.sim.observed_configurator import ObservedConfigurator
from fairway.sim.serverless_recorder import ServerlessRecorder
from fairway.sim.serverless_scenario import ServerlessArrivals, ServerlessScenario

_TASK, _CONTAINER, _TIME = 0, 1, 2
"""The order of what happens at one moment."""

_EVENTS_BETWEEN_NEWS = 2048

Progress = Callable[[int, float], None]
"""Called now and then with the number of requests that have ended and the virtual time."""


@dataclass(frozen=True, slots=True)
class ServerlessOptions:
    """How to run.

    Requests that arrive in the first `warmup_seconds` do not count. When the last has arrived, the run goes on for at
    most `drain_seconds`; what has not ended by then never does. With `measured_overhead`, tasks wait for as long as
    their decision really took. Without a rule for `containers`, all functions are warm everywhere.
    """

    warmup_seconds: float = 60.0
    duration_seconds: float = 300.0
    drain_seconds: float = 120.0
    measured_overhead: bool = False
    containers: ContainerRule | None = None
    seed: int = 0

    @property
    def end_seconds(self) -> float:
        """When the last request may arrive."""
        return self.warmup_seconds + self.duration_seconds


def simulate_serverless(
    scenario: ServerlessScenario,
    arrivals: ServerlessArrivals,
    scheduler: str | Configurator,
    options: ServerlessOptions,
    *,
    settings: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> ServerlessRecord:
    """Run the requests under a configurator until all have been answered or the time is up."""
    begin = time.perf_counter()
    world = ServerlessWorld(scenario, arrivals, scheduler, options, progress)
    world.run()
    platform, recorder = scenario.platform, world.recorder
    return ServerlessRecord(
        scheduler if isinstance(scheduler, str) else scheduler.name,
        dict(settings or {}),
        tuple(facts_of(served.application) for served in scenario.applications),
        tuple(function.name for function in scenario.functions),
        scenario.invokers,
        platform.cpu,
        platform.gpu,
        (options.warmup_seconds, options.end_seconds),
        recorder.requests(),
        recorder.tasks(),
        recorder.containers(),
        world.engine.noise.noise,
        world.now,
        np.frombuffer(world.configurator.seconds, np.float64).copy() if world.configurator.seconds else np.empty(0),
        world.events,
        time.perf_counter() - begin,
        prices_known=platform.prices.rate(platform.cpu, platform.gpu) > 0,
    )


class ServerlessWorld:
    """One run: the engine, the requests, and what is to come."""

    def __init__(
        self,
        scenario: ServerlessScenario,
        arrivals: ServerlessArrivals,
        scheduler: str | Configurator,
        options: ServerlessOptions,
        progress: Progress | None = None,
    ) -> None:
        if not all(math.isfinite(each) and each >= 0 for each in (options.warmup_seconds, options.drain_seconds)):
            raise InputError(f"--warmup: {options.warmup_seconds} s given, expected a time of at least 0")
        if not (math.isfinite(options.duration_seconds) and options.duration_seconds > 0):
            raise InputError(f"--duration: {options.duration_seconds} s given, expected a time above 0")
        chosen = configurator_of(scheduler) if isinstance(scheduler, str) else scheduler
        self.configurator = ObservedConfigurator(chosen, by_task=options.measured_overhead)
        self.engine = ServerlessEngine(
            scenario.applications,
            scenario.functions,
            self.configurator,
            scenario.platform,
            scenario.invokers,
            np.random.default_rng([options.seed, 3]),
            options.containers,
        )
        self.recorder = ServerlessRecorder(arrivals)
        self.now = 0.0
        self.events = 0
        self._scenario = scenario
        self._arrivals = arrivals
        self._options = options
        self._progress = progress
        self._slo = [served.application.slo_seconds for served in scenario.applications]
        self._factors = np.exp(scenario.platform.noise * arrivals.draws).tolist()
        self._heap: list[tuple[float, int, int, Event]] = []
        self._number = 0
        self._occupied_until = [0.0] * scenario.invokers
        self._left = len(arrivals)

    def run(self) -> None:
        """Let everything happen until all requests have ended or the time is up."""
        heap, handle = self._heap, self.engine.handle
        times, asked = self._arrivals.time.tolist(), self._arrivals.application.tolist()
        request, count, last = 0, len(times), self._options.end_seconds + self._options.drain_seconds
        happened: list[Event] = []
        while self._left and (heap or request < count):
            now = times[request] if request < count else math.inf
            if heap and heap[0][0] < now:
                now = heap[0][0]
            if now > last:
                break
            happened.clear()
            while heap and heap[0][0] == now:
                happened.append(heappop(heap)[3])
            while request < count and times[request] == now:
                happened.append(RequestArrived(request, asked[request], now + self._slo[asked[request]]))
                request += 1
            self.now = now
            self.events += len(happened)
            if self._options.measured_overhead:
                self.configurator.forget()
            self._do(handle(now, happened))
            if self._progress is not None and not self.events % _EVENTS_BETWEEN_NEWS:
                self._progress(count - self._left, now)
        if self._left and not heap and request >= count:
            raise FairwayError(f"{self._left} requests wait at {self.now:.3f} s, but nothing is to come: a lock-up")

    def _at(self, moment: float, order: int, event: Event) -> None:
        self._number += 1
        heappush(self._heap, (moment, order, self._number, event))

    def _do(self, commands: list[Command]) -> None:
        for command in commands:
            if isinstance(command, StartTask):
                self._start(command)
            elif isinstance(command, Reply):
                self.recorder.finish[command.key] = self.now
                self._left -= 1
            elif isinstance(command, StartContainer):
                ready = self._done_at(command.invoker, self._scenario.functions[command.function].cold_seconds)
                self.recorder.container_begun(self.now, ready, command.function, command.invoker, ahead=command.ahead)
                self._at(ready, _CONTAINER, ContainerReady(command.container))
            elif isinstance(command, StopContainer):
                self._done_at(command.invoker, self._scenario.functions[command.function].stop_seconds)
            elif isinstance(command, Wake):
                self._at(command.at, _TIME, TimeReached())

    def _done_at(self, invoker: int, seconds: float) -> float:
        """When an invoker has created or removed a container."""
        if not self._scenario.one_at_a_time:
            return self.now + seconds
        self._occupied_until[invoker] = max(self.now, self._occupied_until[invoker]) + seconds
        return self._occupied_until[invoker]

    def _start(self, command: StartTask) -> None:
        scenario = self._scenario
        _, cpu, gpu = command.dispatch.configuration
        run = command.profile_seconds * self._factors[command.requests[0]][command.stage]
        cold = 0.0
        if command.cold:
            function = scenario.applications[command.application].functions[command.stage]
            cold = scenario.functions[function].cold_seconds
            self.recorder.container_begun(self.now, self.now + cold, function, command.dispatch.invoker, ahead=False)
        overhead = scenario.platform.overhead_seconds
        if self._options.measured_overhead:
            overhead = self.configurator.seconds_of(command.application, command.stage)
        end = self.now + overhead + cold + command.fetch_seconds + run
        rate = scenario.platform.prices.rate(cpu, gpu) / SECONDS_PER_HOUR
        self.recorder.task_started(self.now, end, command, overhead, cold, run, rate)
        self._at(end, _TASK, TaskDone(command.task, run))


def facts_of(application: Application) -> ApplicationFacts:
    """An application as the numbers know it."""
    fastest = [float(profile.seconds[profile.batch == profile.batch.min()].min()) for profile in application.profiles]
    return ApplicationFacts(
        application.name,
        application.slo_seconds,
        application.workflow.critical_path(fastest).seconds,
        tuple(stage.name for stage in application.workflow.stages),
        application.entries,
    )
