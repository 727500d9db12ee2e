"""How long runs take on simulated machines, what they hold meanwhile, and what they cost.

A task that starts at `now` ends at

    now + overhead + fetch + run        run = expected · the request's own work · noise of the oldest request

where it fetches its inputs itself; else they are there, and it has no overhead.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Sequence

import numpy as np

from fairway.configure.configuration import SECONDS_PER_HOUR
from fairway.configure.queues import KINDS
from fairway.engine.serving.flow import Flow
from fairway.engine.serving.forwarding import Shares
from fairway.engine.serving.messages import BatchArrived, Command, Mate, Run, Send
from fairway.errors import InputError
from fairway.made import made
from fairway.place.graph import TaskGraph
from fairway.sim.arrivals import Arrivals
from fairway.sim.interference import Interference
from fairway.sim.scenario import Scenario
from fairway.sim.serving_recorder import Member, ServingRecorder, Share

Factors = list[list[float]]
"""By request and stage, how many times as long as expected a run takes."""


class Execution:
    """The runs of a simulation. `owner` has, by the key of an attempt of a client, the number of its request.

    `simple` says that a task which runs alone has a whole worker, its inputs are there, and it takes its expected time
    but for its request's own work. With `measures`, batches wait for as long as their decisions really took. `planned`
    says that an engine plans batches, and knows where the inputs of their tasks are; `stops` that it may stop some.
    """

    def __init__(
        self,
        scenario: Scenario,
        graphs: Sequence[TaskGraph],
        shares: Shares,
        recorder: ServingRecorder,
        work: Factors | None,
        noise: Factors | None,
        *,
        planned: bool,
        measures: bool,
        stops: bool = False,
    ) -> None:
        fleet = graphs[0].fleet
        self.owner: list[int] = []
        self.measures = measures
        divided = any(worker.is_divided for worker in fleet.workers)
        self.simple = noise is None and not (fleet.links.pulls or divided)
        self._scenario = scenario
        self._fleet = fleet
        self._graphs = graphs
        self._shares = shares
        self._recorder = recorder
        self._work = work
        self._noise = noise
        self._pulls = fleet.links.pulls
        self._has_plan = planned
        self._ran_on: list[list[int]] = []
        self._fetch_seconds: dict[TaskGraph, list[list[float]]] = {}
        self._took: dict[tuple[int, int], deque[float]] = {}  # by workflow and stage, what decisions took
        self._overheads: dict[int, float] = {}  # by the number of a batch
        self._stops = stops
        self.interference: Interference | None = None
        self._ends: dict[tuple[int, int], tuple[float, int, float]] = {}  # by worker and run: until when, tasks, part

    def asked(self, request: int, stages: int) -> int:
        """A client asks for a request, which may not be the first time; the key of this attempt."""
        self.owner.append(request)
        if self._pulls:
            self._ran_on.append([-1] * stages)
        return len(self.owner) - 1

    def decision_took(self, seconds: float, workflow: int, stage: int) -> None:
        """Floor 2 has decided for a queue."""
        self._recorder.decision_seconds.append(seconds)
        if self.measures:
            self._took.setdefault((workflow, stage), deque()).append(seconds)

    def planned(self, commands: Iterable[Command]) -> None:
        """The engine that plans has sent batches: each waits for its own decision, the first of its queue first."""
        for command in commands:
            if isinstance(command, Send) and isinstance(command.message, BatchArrived):
                batch = command.message
                took = self._took[self._graphs.index(batch.flows[0].graph), batch.stage]
                self._overheads[batch.number] = took.popleft()
        self._took.clear()

    def run(self, now: float, worker: int, run: Run) -> tuple[float, float]:
        """Run a task and its mates at once, on their share of the worker; when they end, and how long the stage runs.

        Where runs slow each other down, no time is known yet at which it ends, and the answer is never.

        Of requests whose work is more than expected, a run takes the mean; its noise is that of the oldest.
        """
        owner, pulls, fetch, overhead = self.owner, self._pulls, 0.0, 0.0
        _, flow, stage, seconds, queued, turn, found, mates, batch = run
        together: list[Mate] = [made(Mate, (flow, queued, turn, found)), *mates]
        if self._work is not None:
            work = [self._work[owner[each.flow.request.key]][stage] for each in together]
            seconds *= sum(work) / len(work)
        if self._noise is not None:
            seconds *= self._noise[owner[flow.request.key]][stage]
        if pulls:
            overhead = self._scenario.overhead_seconds
            if batch is not None and self.measures:
                overhead = self._overheads.pop(batch.number)
        members, local = [], 0
        for flow, queued, turn, found in together:
            if pulls:
                own, local = self._fetch(worker, flow, stage)
                fetch = max(fetch, own)
            members.append(made(Member, (owner[flow.request.key], found, queued, turn, local)))
        end = now + overhead + fetch + seconds
        share, prices = self.share(worker, run), self._scenario.prices
        rate = 0.0 if prices is None else prices.rate(share.cpu, share.gpu) / SECONDS_PER_HOUR
        if pulls and batch is None:
            for each in together:
                self._ran_on[each.flow.request.key][stage] = worker
        if self.interference is not None:
            begins = now + overhead + fetch

            def ended(at: float) -> float:
                bill = rate * (fetch + at - begins)
                self._recorder.ran_together(worker, stage, now, at, members, share, overhead, fetch, bill)
                return at - begins

            part = share.gpu / self._fleet.workers[worker].slices
            model = next(iter(run.flow.graph.workflow.stages[stage].models), None)
            self.interference.begins(worker, run.run, begins, seconds, model, part, ended)
            return math.inf, seconds
        self._recorder.ran_together(worker, stage, now, end, members, share, overhead, fetch, rate * (fetch + seconds))
        if self._stops:
            self._ends[worker, run.run] = (end, len(members), share.part)
        return end, seconds

    def stop(self, now: float, worker: int, run: int) -> None:
        """A run stops before its time."""
        end, tasks, part = self._ends.pop((worker, run))
        self._recorder.cut(worker, now, end, tasks, part)

    def share(self, worker: int, run: Run) -> Share:
        """What a run holds of its worker."""
        machine, batch = self._fleet.workers[worker], run.batch
        if batch is not None:
            planned, cpu, gpu = batch.configuration
            kind = KINDS.index(batch.kind)
        else:
            shares = self._shares.get(run.flow.graph)
            planned, kind = 0, 0
            cpu, gpu = (machine.cpus, machine.slices) if shares is None else shares[run.stage]
        return made(Share, (planned, cpu, gpu, kind, gpu / machine.slices if machine.slices else cpu / machine.cpus))

    def _fetch(self, worker: int, flow: Flow, stage: int) -> tuple[float, int]:
        """How long a task takes to fetch its inputs, and 1 if all of them are on its worker."""
        entry, local, remote = self._fetch_seconds.get(flow.graph) or self._columns(flow.graph)
        before = flow.graph.workflow.predecessors[stage]
        if not before:
            return entry[stage], 0
        ran_on = flow.workers if self._has_plan else self._ran_on[flow.request.key]
        for other in before:
            if ran_on[other] != worker:
                return remote[stage], 0
        return local[stage], 1

    def _columns(self, graph: TaskGraph) -> list[list[float]]:
        """By stage, what its input takes: as the request itself, from its own worker, from another one."""
        links, sizes = self._fleet.links, graph.workflow.input_bytes
        ways = (links.entry_seconds, links.local_seconds, links.between_hosts)
        columns = self._fetch_seconds[graph] = [list(map(seconds, sizes)) for seconds in ways]
        return columns


def real_work(arrivals: Arrivals, stages: int, noise: float, seed: int) -> tuple[Factors | None, Factors | None]:
    """By request and stage, how much longer than expected its run really takes: by its work, and by noise.

    None where nothing does. Noise belongs to the task, not to the moment: it is the same for every scheduler. It is
    lognormal with mean 1, unless requests bring draws of their own.
    """
    if noise < 0:
        raise InputError(f"--noise: {noise} given, expected a number of at least 0")
    work = None if (arrivals.work == 1.0).all() else np.repeat(arrivals.work[:, None], stages, axis=1)
    if noise == 0:
        return None if work is None else work.tolist(), None
    if arrivals.draws is not None:
        return None if work is None else work.tolist(), np.exp(noise * arrivals.draws).tolist()
    sigma = np.sqrt(np.log1p(noise**2))
    draws = np.random.default_rng([seed, 2])
    drawn = draws.lognormal(-(sigma**2) / 2, sigma, (len(arrivals), stages))
    return (drawn if work is None else work * drawn).tolist(), None
