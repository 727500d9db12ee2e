"""An engine's desk: the requests that it plans, queued by stage until floor 2 says how many run at once and how large.

Each pass asks the queues in turn (`batch_choice`) for a batch that can start and its worker; the batch goes there, and
the jobs that follow join their queues when it has ended. A job joins the queue of a stage when all stages before it
have ended for its request. All that falls on one moment is taken in before the pass. A batch holds the CPUs and slices
of its configuration until it ends, and leaves its output on its worker. Where models can be missing, `warming` sees to
copies of them.

Each request gets one answer: a reply or a refusal, unless it is cancelled. A batch may fail for some of its requests,
and the others go on. If a worker is lost, its batches go back to the front of their queues, and requests that had
output there begin again. What was running there runs alone from then on, since one of them may be the reason.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from heapq import heappop, heappush
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from fairway.configure.application import Application
from fairway.configure.budgets.margins import NoiseEstimate
from fairway.configure.capacity import Capacity
from fairway.configure.configurator import Configurator
from fairway.configure.fetches import Fetches
from fairway.configure.fleet_plan import fleet_rules_of
from fairway.configure.platform import Platform
from fairway.configure.queues import Drop, Wait
from fairway.configure.slices.places import Places
from fairway.configure.turns import Turns, recheck_pass, ring_pass, slack_pass
from fairway.engine.serving.batch_choice import BatchChoice, Chosen, Missing
from fairway.engine.serving.fleet_planning import FleetPlanning
from fairway.engine.serving.messages import (
    FAILED,
    IMPOSSIBLE,
    LATE,
    SHED,
    BatchArrived,
    BatchDone,
    BatchStopped,
    Cancelled,
    Forget,
    PeerCopies,
    Refuse,
    Reply,
    RequestArrived,
    Restarted,
)
from fairway.engine.serving.stage_queues import QueuedRequest, StageQueue, StageQueues
from fairway.engine.serving.started import Started, running_at, together
from fairway.engine.serving.station import SHED_REASON
from fairway.engine.serving.warming import Warming
from fairway.made import made
from fairway.place.batch import NOWHERE
from fairway.place.graph import TaskGraph
from fairway.place.placer import BatchPlacer

if TYPE_CHECKING:
    from fairway.engine.serving.engine import ServingEngine

MOST_LOSSES = 3
"""A request that was running on so many workers when they were lost, the last times alone, is not tried again."""

_SHORTEST_WAIT = 1e-6


@dataclass(frozen=True, eq=False)
class DeskOptions:
    """What an engine that plans with a configurator has to know.

    `applications` are the workflows as floor 2 takes them. With `holds_cold`, a batch that finds no copy of its model
    holds its share of the worker while one is loaded; otherwise its jobs wait in their queue. With `prewarms`, copies
    are begun ahead of the batches that will need them. Unless `all_present`, no worker is there before it joins.
    """

    configurator: Configurator
    applications: Mapping[TaskGraph, Application]
    platform: Platform = field(default_factory=Platform)
    holds_cold: bool = False
    prewarms: bool = True
    all_present: bool = True


class Desk:
    """The open requests of an engine that plans, their queues, and what is free at the workers.

    `batches` are those that workers have, by number; `absent` are workers that are gone.
    """

    def __init__(
        self, options: DeskOptions, placer: BatchPlacer, draws: np.random.Generator, *, epoch: int, initial_copies: int
    ) -> None:
        configurator, platform = options.configurator, options.platform
        graphs = list(options.applications)
        fleet = graphs[0].fleet
        places = None if platform.mig is None else Places(platform.mig)
        self.capacity = Capacity.idle(len(fleet), platform.cpu, platform.gpu, places)
        self.noise = NoiseEstimate(prior=platform.noise)
        self.open: dict[int, QueuedRequest] = {}
        self.batches: dict[int, Started] = {}
        self.absent: set[int] = set()
        rules = fleet_rules_of(configurator)
        self.queues = StageQueues(len(fleet.models), by_deadline=rules is not None)
        for graph, application in options.applications.items():
            self.queues.add(graph, application, configurator.prepare(application, platform, draws))
        self.planning: FleetPlanning | None = None
        if rules is not None and rules.planner is not None:
            self.planning = FleetPlanning(rules, self.queues, fleet)
        self.warming: Warming | None = None
        if any(queue.model >= 0 for queue in self.queues.all):
            prewarms = options.prewarms and not options.holds_cold and self.planning is None
            most = platform.gpu or platform.cpu
            self.warming = Warming(fleet, most, prewarms=prewarms, initial=initial_copies, epoch=epoch)
        self._choice = BatchChoice(
            placer,
            self.capacity,
            platform.prices,
            self.warming,
            self.noise,
            holds_cold=options.holds_cold,
            sees_deadlines=rules is not None,
        )
        self._numbers = {graph: number for number, graph in enumerate(graphs)}
        self._applications = list(options.applications.values())
        self._fetches = [Fetches.of(application, platform) for application in self._applications]
        self._holds_cold = options.holds_cold
        self._order = configurator.turns
        self._preempts = rules is not None and rules.preempts
        self._lengths = self.queues.lengths
        self._turns = Turns(len(self._lengths))
        profiles = [profile for application in self._applications for profile in application.profiles]
        self._least = (min(int(each.cpu.min()) for each in profiles), min(int(each.gpu.min()) for each in profiles))
        self._changed = False
        self._due = math.inf
        self._was_lost = False
        self._first_batch = self._next_batch = epoch << 40
        self._lost_batches: set[int] = set()
        self._expiring: list[tuple[float, int]] = []
        self._wakes: list[float] = []
        self._least_times: dict[int, float] = {}
        if not options.all_present:
            for worker in range(len(fleet)):
                self._leave(worker)

    @property
    def waiting(self) -> int:
        """How many jobs are in queues."""
        return sum(self._lengths)

    # What happens

    def arrived(self, engine: ServingEngine, event: RequestArrived) -> None:
        """A request joins the queues of its first stages."""
        self._changed = True
        key, graph, expires, due = event
        now = engine.now
        if key in self.open:
            raise engine.story_error(event.cause, f"{event.cause} arrives but is here already")
        number = self._numbers[graph]
        if expires < math.inf:
            least = self._least_seconds(number)
            if now + least > expires:
                left = max(expires - now, 0.0)
                engine.out.append(
                    Refuse(key, f"it would take {least:.3g} s at least, but has {left:.3g} s", IMPOSSIBLE)
                )
                return
            heappush(self._expiring, (expires, key))
        request = QueuedRequest(key, number, graph, engine.me, min(due, expires))
        self.open[key] = request
        if self.planning is not None:
            self.planning.arrived(number, now)
        for entry in self._applications[number].entries:
            self.queues.join(request, entry, now)
            place = self.queues.first[number] + entry
            queue = self.queues.all[place]
            if self.warming is not None and queue.model >= 0:
                self.warming.entry_arrived(place, queue.model, queue.home, now, engine.tell)

    def batch_done(self, engine: ServingEngine, event: BatchDone) -> None:
        """A batch has ended: what follows for its requests joins its queues, or they are answered."""
        self._changed = True
        started = self.batches.pop(event.number, None)
        if started is None:
            if event.number < self._first_batch or event.number in self._lost_batches:
                return  # the engine that planned it is gone, or its worker was, and other workers have its jobs
            raise engine.story_error(event.cause, f"{event.cause} has ended, but was never started or had ended before")
        number, jobs, configuration, worker, seconds, _, place = started
        queue, now = self.queues.all[number], engine.now
        self.capacity.give(worker, configuration.cpu, configuration.gpu, place)
        if self.warming is not None and queue.model >= 0:
            self.warming.give(queue.model, worker)
        failed = event.failed
        if not failed:  # a batch that was repeated one by one says nothing of its time
            self.noise.add(event.seconds, seconds)
        before = queue.application.workflow.predecessors
        for position, job in enumerate(jobs):
            request = job.request
            if job.attempt != request.attempt:
                continue
            if position in failed:
                self._refuse(engine, request, failed[position], FAILED)
                continue
            ran_on = request.flow.workers
            ran_on[queue.stage] = worker
            request.left -= 1
            if not request.left:
                del self.open[request.key]
                engine.out.append(made(Reply, (request.key, now)))
            for successor in queue.after:
                if NOWHERE not in [ran_on[other] for other in before[successor]]:
                    self.queues.join(request, successor, now)

    def copies_reported(self, engine: ServingEngine, event: PeerCopies) -> None:
        """A worker says how many copies of a model it has; if one failed and none is there, jobs that wait are refused.

        Where batches hold their share meanwhile, no job waits for a copy.
        """
        self._changed = True
        warming = self.warming
        if warming is None or event.worker in self.absent:
            return
        warming.reported(event, engine.now)
        if event.failed is not None and not self._holds_cold and not (warming.there[event.model] > 0).any():
            for queue in self.queues.all:
                if queue.model == event.model:
                    for job in list(queue.jobs):
                        self._refuse(engine, job.request, event.failed, FAILED)

    def cancelled(self, engine: ServingEngine, event: Cancelled) -> None:
        """The client of a request waits no more."""
        self._changed = True
        request = self.open.get(event.key)
        if request is not None:
            self._drop(engine, request)

    def worker_lost(self, engine: ServingEngine, worker: int) -> None:
        """A worker is gone, with its batches and all that batches have put out there."""
        self._changed = True
        if worker in self.absent:
            return
        self._leave(worker)
        lost = [number for number, started in self.batches.items() if started.worker == worker]
        self._lost_batches.update(lost)
        batches = [self.batches.pop(number) for number in lost]
        for request in [job.request for started in batches for job in started.jobs if job.counts]:
            request.losses += 1
            self._was_lost = True
            if request.losses == MOST_LOSSES:  # it may have had several batches there
                reason = f"workers that ran it were lost {request.losses} times, so it is not tried again"
                self._refuse(engine, request, reason, FAILED)
        again = [request for request in self.open.values() if worker in request.ran_on]
        for request in reversed(again):
            self._leave_queues(request)
            request.restart()
            engine.out.append(Restarted(request.key))
            for entry in self._applications[request.workflow].entries:
                self.queues.join(request, entry, engine.now, in_front=True)
        for started in reversed(batches):
            self.queues.put_back(started.queue, [job for job in started.jobs if job.counts])

    def _leave(self, worker: int) -> None:
        """Nothing is placed at a worker until it joins."""
        self._plan_anew()
        self.absent.add(worker)
        self.capacity.leave(worker)
        if self.warming is not None:
            self.warming.worker_lost(worker)

    def worker_joined(self, engine: ServingEngine, worker: int) -> None:
        """A worker is there, or back, with nothing to do."""
        self._changed = True
        if worker not in self.absent:
            self.worker_lost(engine, worker)  # news of its loss did not come: it is another one by the same number
        self.absent.discard(worker)
        self._plan_anew()
        self.capacity.join(worker)
        if self.warming is not None:
            self.warming.worker_joined(worker)

    def time_passed(self, engine: ServingEngine) -> None:
        """It may be time to look again."""
        self._changed |= engine.now >= self._due

    # What follows

    def decide(self, engine: ServingEngine) -> None:
        """Start what can start, and say when to look again; rows of workers that change are no reason to."""
        if not self._changed:
            engine.due = self._due
            return
        self._changed = False
        now = engine.now
        if self._expiring:
            self._expire(engine)
        while self._wakes and self._wakes[0] <= now:
            heappop(self._wakes)
        if self.warming is not None:
            self.warming.time_passed(now, engine.tell)
        if self.planning is not None and now >= self.planning.due and len(self.absent) < len(self.capacity):
            self.planning.make(now, self.absent, self.warming, engine.tell)
        ask = partial(self._ask, engine)
        if self._order == "recheck":
            recheck_pass(self._turns, self._lengths, ask)
        elif self._order == "slack":
            slack_pass(self._turns, self._lengths, lambda number: self._seconds_left(number, now), ask)
        elif self._order == "largest":
            slack_pass(self._turns, self._lengths, lambda number: -self.queues.at_once(number, now), ask)
        else:
            ring_pass(self._turns, self._lengths, ask)
        due = self._wakes[0] if self._wakes else math.inf
        if self.warming is not None:
            due = min(due, self.warming.due)
        if self.planning is not None and self.open and len(self.absent) < len(self.capacity):
            due = min(due, self.planning.due)
        if self._expiring:
            due = min(due, math.nextafter(self._expiring[0][0], math.inf))
        engine.due = self._due = due

    def _seconds_left(self, number: int, now: float) -> float:
        queue = self.queues.all[number]
        return queue.jobs[0].request.deadline - now - queue.reserve

    def _ask(self, engine: ServingEngine, number: int) -> bool:
        """Start a batch of a queue, if one can start; whether it has."""
        if not (self._preempts or self.capacity.has_room(*self._least)):
            return False
        queue = self.queues.all[number]
        running = running_at(self.batches, len(self.capacity), engine.now) if self._preempts else ()
        chosen = self._choice.choose(engine, queue, self._turns.failures.get(number, 0), running)
        if chosen is None:
            return False
        if isinstance(chosen, Wait):
            self._wake(queue, engine.now + max(chosen.seconds, _SHORTEST_WAIT))
            return False
        if isinstance(chosen, Drop):
            retry = self._work_seconds(engine.now)
            for job in tuple(islice(queue.jobs, max(chosen.jobs, 1))):
                self._refuse(engine, job.request, SHED_REASON, SHED, retry)
            return True
        if isinstance(chosen, Missing):
            if self.warming is not None and queue.plan is not None:
                self.warming.settle(queue.model, chosen.near, engine.now, engine.tell)
            elif self.warming is not None:
                waiting = self.queues.waiting[queue.model]
                self.warming.job_waits(queue.model, waiting, chosen.near, engine.now, engine.tell)
            return False
        stopped = self._stop(engine, chosen.worker) if chosen.preempts else None
        self._start(engine, number, chosen)
        if stopped is not None:
            self.queues.put_back(stopped.queue, [job for job in stopped.jobs if job.counts])
        return True

    def _stop(self, engine: ServingEngine, worker: int) -> Started:
        """Stop the batch that runs on a worker; what was done of it is lost."""
        number = next(number for number, started in self.batches.items() if started.worker == worker)
        started = self.batches.pop(number)
        queue, (_, cpu, gpu) = self.queues.all[started.queue], started.configuration
        self.capacity.give(worker, cpu, gpu, started.place)
        if self.warming is not None and queue.model >= 0:
            self.warming.give(queue.model, worker)
        self._lost_batches.add(number)
        engine.tell(worker, BatchStopped(number))
        return started

    def _start(self, engine: ServingEngine, number: int, chosen: Chosen) -> None:
        choice, worker, skip, _ = chosen
        queue, configuration, now = self.queues.all[number], choice.configuration, engine.now
        size, cpu, gpu = configuration
        count = min(size, len(queue.jobs) - skip)
        if self._was_lost:
            count = together(islice(queue.jobs, skip, None), count)
        jobs = self.queues.take(number, count, skip)
        place = self.capacity.take(worker, cpu, gpu)
        seconds = queue.seconds_of(count, cpu, gpu)
        key = self._next_batch
        self._next_batch += 1
        self.batches[key] = made(Started, (number, jobs, configuration, worker, seconds, now + seconds, place))
        flows = tuple([job.request.flow for job in jobs])
        what = (key, engine.me, flows, queue.stage, configuration, seconds, choice.kind)
        engine.tell(worker, made(BatchArrived, what))
        if self.warming is not None and queue.model >= 0:
            self.warming.take(queue.model, worker)
            first = number - queue.stage
            after = [self.queues.all[first + stage].model for stage in queue.after]
            models = [model for model in after if model >= 0]
            self.warming.batch_started(queue.model, worker, models, seconds, now, engine.tell)

    def _plan_anew(self) -> None:
        """The workers are others than those that were planned for."""
        if self.planning is not None:
            self.planning.due = -math.inf

    def _wake(self, queue: StageQueue, at: float) -> None:
        if abs(at - queue.wakes_at) > _SHORTEST_WAIT / 2:
            queue.wakes_at = at
            heappush(self._wakes, at)

    def _least_seconds(self, number: int) -> float:
        """How long a request takes if it is alone and everything is there."""
        found = self._least_times.get(number)
        if found is None:
            application, planned = self._applications[number], self._fetches[number].planned
            fastest = [float(each.seconds.min()) + planned(stage) for stage, each in enumerate(application.profiles)]
            found = self._least_times[number] = application.workflow.critical_path(fastest).seconds
        return found

    def _work_seconds(self, now: float) -> float:
        """How long the workers that are there need for what runs and waits, spread over all of them."""
        work = sum(max(started.until - now, 0.0) for started in self.batches.values())
        for queue in self.queues.all:
            if queue.jobs:
                work += len(queue.jobs) * queue.seconds_each
        return work / max(len(self.capacity) - len(self.absent), 1)

    def _expire(self, engine: ServingEngine) -> None:
        """Refuse the requests whose clients wait no more."""
        while self._expiring and self._expiring[0][0] < engine.now:
            request = self.open.get(heappop(self._expiring)[1])
            if request is not None:
                self._refuse(engine, request, "its time was over before its result was there", LATE)

    def _refuse(
        self, engine: ServingEngine, request: QueuedRequest, reason: str, code: str, retry: float | None = None
    ) -> None:
        engine.out.append(Refuse(request.key, reason, code, retry))
        self._drop(engine, request)

    def _drop(self, engine: ServingEngine, request: QueuedRequest) -> None:
        """Let go of a request; workers that run something for it may stop."""
        del self.open[request.key]
        self._leave_queues(request)
        request.end()
        holders = {each.worker for each in self.batches.values() if any(job.request is request for job in each.jobs)}
        for worker in sorted(holders):
            engine.tell(worker, Forget(request.key))

    def _leave_queues(self, request: QueuedRequest) -> None:
        for number in self.queues.leave(request):
            self._turns.emptied(number)
