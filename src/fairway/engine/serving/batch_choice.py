"""How large the next batch of a queue is, and where it runs: floor 2 says which sizes may start, floor 3 where.

Floor 2 (`configure`) sees one queue and the free capacity, and answers with sizes or with a time to wait. Floor 3
(`place`) is asked for a worker with room for one of them: the first that has one or, where floor 2 values what is left
free, the one that is worth most. Where models can be missing, a worker with an idle copy goes first; if there is none,
a copy has to be begun, and meanwhile the jobs stay in their queue, unless batches hold their share while they wait.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from fairway.configure.arrays import BoolArray
from fairway.configure.budgets.margins import NoiseEstimate
from fairway.configure.capacity import Capacity
from fairway.configure.configuration import Prices
from fairway.configure.queues import Candidates, Choice, Drop, Preempt, Queue, Running, Wait
from fairway.engine.serving.stage_queues import StageQueue
from fairway.engine.serving.warming import Warming
from fairway.made import made
from fairway.place.batch import NOWHERE, Batch, Room
from fairway.place.placer import BatchPlacer

if TYPE_CHECKING:
    from fairway.engine.serving.engine import ServingEngine

RATE_WINDOW_SECONDS = 1.0
"""The rate of a queue is the number of jobs that joined it in so many seconds."""


class Chosen(NamedTuple):
    """A batch of the jobs after the first `skip` starts in this size on this worker, in place of what runs there."""

    choice: Choice
    worker: int
    skip: int = 0
    preempts: bool = False


class Missing(NamedTuple):
    """No worker that could run the batch has an idle copy of its model; one would be of use near this worker."""

    near: int


class BatchChoice:
    """Asks both floors about a queue; `noise` is how far run times were from their profiles so far."""

    __slots__ = ("_capacity", "_holds_cold", "_placer", "_room", "_sees_deadlines", "_warming", "noise")

    def __init__(
        self,
        placer: BatchPlacer,
        capacity: Capacity,
        prices: Prices,
        warming: Warming | None,
        noise: NoiseEstimate,
        *,
        holds_cold: bool,
        sees_deadlines: bool = False,
    ) -> None:
        self._sees_deadlines = sees_deadlines
        self.noise = noise
        self._placer = placer
        self._capacity = capacity
        self._room = Room(capacity.free_cpu, capacity.free_gpu, prices.cpu, prices.gpu)
        self._warming = warming
        self._holds_cold = holds_cold

    def choose(
        self, engine: ServingEngine, queue: StageQueue, failures: int, running: Sequence[Running | None] = ()
    ) -> Chosen | Missing | Wait | Drop | None:
        """What to do for a queue that has jobs; None if nothing fits. Nothing has fitted `failures` times in a row."""
        jobs, recent, now = queue.jobs, queue.recent, engine.now
        while recent and recent[0] <= now - RATE_WINDOW_SECONDS:
            recent.popleft()
        oldest = jobs[0]
        warm = None
        if self._warming is not None and queue.model >= 0:
            warm = self._warming.warm(queue.model)
            if queue.plan is not None:
                planned = queue.plan.workers
                warm = warm & planned
                if not self._holds_cold and planned.any() and not warm.any() and not self._preemptible(queue, running):
                    empty = planned & (self._warming.there[queue.model] == 0)
                    return Missing(int(np.argmax(empty))) if empty.any() else None
            elif not self._holds_cold and not warm.any():
                return Missing(oldest.sources[0] if oldest.sources else queue.home)
        sources = [job.sources for job in islice(jobs, queue.most_jobs)] if queue.before else ()
        asked = made(
            Queue,
            (
                queue.stage,
                len(jobs),
                oldest.request.deadline - now,
                sources,
                now - oldest.since,
                now - oldest.request.ready[queue.group_head],
                float(len(recent)) / RATE_WINDOW_SECONDS,
                failures,
                warm,
                self.noise.noise,
                [job.request.deadline - now for job in islice(jobs, 2 * queue.most_jobs)]
                if self._sees_deadlines
                else (),
                queue.plan,
                self._with_copy(queue, running),
            ),
        )
        decision = queue.decider.decide(asked, self._capacity)
        if isinstance(decision, Wait | Drop):
            return decision
        if isinstance(decision, Preempt):
            return Chosen(decision.choice, decision.worker, decision.skip, preempts=True)
        chosen = self._placed(engine, queue, asked, decision)
        if chosen is None or warm is None or warm[chosen.worker]:
            return chosen
        warmer = self._worker(engine, queue, asked, chosen.choice, warm, chosen.skip)
        if warmer != NOWHERE:
            return chosen._replace(worker=warmer)
        return chosen if self._holds_cold else Missing(chosen.worker)

    def _placed(self, engine: ServingEngine, queue: StageQueue, asked: Queue, decision: Candidates) -> Chosen | None:
        """The size in which a batch starts, and its worker; None if it fits nowhere."""
        best, most, value = None, -math.inf, decision.value
        for position, choice in enumerate(decision.choices):
            worker = self._worker(engine, queue, asked, choice, decision.among, decision.skip)
            if worker == NOWHERE:
                continue
            if value is None:
                return Chosen(choice, worker, decision.skip)
            _, cpu, gpu = choice.configuration
            worth = value(position, self._capacity.free_cpu[worker] - cpu, self._capacity.free_gpu[worker] - gpu)
            if worth > most:
                best, most = Chosen(choice, worker, decision.skip), worth
        return best

    def _preemptible(self, queue: StageQueue, running: Sequence[Running | None]) -> bool:
        """Whether a batch that runs beside a copy of the queue's model could be stopped for it."""
        return any(self._with_copy(queue, running))

    def _with_copy(self, queue: StageQueue, running: Sequence[Running | None]) -> Sequence[Running | None]:
        """By worker, the batch that may be stopped for one of this queue: the model has to be there."""
        if not running or self._warming is None or queue.model < 0:
            return running
        there = self._warming.there[queue.model].tolist()
        return [each if copies else None for each, copies in zip(running, there, strict=True)]

    def _worker(
        self,
        engine: ServingEngine,
        queue: StageQueue,
        asked: Queue,
        choice: Choice,
        among: BoolArray | None = None,
        skip: int = 0,
    ) -> int:
        """The worker that floor 3 finds for a batch of this size, of these workers if they are named."""
        size, cpu, gpu = choice.configuration
        jobs = min(size, asked.length - skip)
        room = self._room if among is None else self._room._replace(cpu=np.where(among, self._room.cpu, -1))
        batch = made(
            Batch,
            (
                queue.graph,
                queue.stage,
                queue.jobs[skip].request.key,
                queue.seconds_of(jobs, cpu, gpu),
                cpu,
                gpu,
                asked.sources[skip : skip + jobs],
                queue.home,
                asked.warm,
            ),
        )
        return self._placer.place_batch(batch, room, engine.view(), engine.now, engine.draws)
