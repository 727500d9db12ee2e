"""A small simulator of invokers that run what a configurator decides, by the pinned order of events; for tests only."""

from __future__ import annotations

import heapq
from collections import deque
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import numpy as np

from fairway.configure.configurator import Configurator
from fairway.configure.invokers import Invokers
from fairway.configure.queues import Dispatch, Queue
from fairway.configure.turns import Turns, recheck_pass, ring_pass, slack_pass
from tests.configure.scenario import Scenario

MOST_SOURCES = 32


@dataclass
class Request:
    number: int
    arrival: float
    application: int
    ran_on: dict[int, int] = field(default_factory=dict)
    left: int = 0
    finish: float = float("inf")
    cost: float = 0.0


@dataclass
class Task:
    start: float
    application: int
    stage: int
    jobs: list[Request]
    decision: Dispatch
    end: float
    cost: float

    def row(self) -> list[float]:
        """As in the published lists: times in milliseconds."""
        b, c, g = self.decision.configuration
        first = self.jobs[0].number
        where = self.decision.invoker
        times = (self.start * 1e3, self.end * 1e3)
        return [times[0], self.application, self.stage, first, len(self.jobs), b, c, g, where, times[1]]


class Run:
    """One run of a configurator; `tasks` are those that have started."""

    def __init__(
        self,
        scenario: Scenario,
        configurator: Configurator,
        load: str,
        *,
        seed: int = 1,
        end: float = 70.0,
        apps: str = "chains",
        drain: float = 120.0,
    ) -> None:
        self.scenario, self.end, self.drain = scenario, end, drain
        self.configurator = configurator
        draws = np.random.default_rng(0)
        ids = scenario.document["app_sets"][apps]
        self.deciders = {app: configurator.prepare(scenario.applications[app], scenario.platform, draws) for app in ids}
        self.queues = [(app, stage) for app in ids for stage in range(len(scenario.applications[app]))]
        self.index = {queue: number for number, queue in enumerate(self.queues)}
        self.waiting: list[deque[tuple[Request, float]]] = [deque() for _ in self.queues]
        self.recent: list[deque[float]] = [deque() for _ in self.queues]
        self.lengths = [0] * len(self.queues)
        self.turns = Turns(len(self.queues))
        self.invokers = Invokers.idle(scenario.invokers, scenario.platform.cpu, scenario.platform.gpu)
        self.tasks: list[Task] = []
        self.kinds: dict[str, int] = {}
        self.ends: list[tuple[float, int, Task]] = []
        self.sequence = count()
        self.now = 0.0
        generator = np.random.Generator(np.random.PCG64(seed))
        low, high = scenario.document["gap_ms"][load]
        self.requests: list[Request] = []
        time = 0.0
        while True:
            time += generator.uniform(low, high)
            if time >= end * 1e3:
                break
            app = ids[generator.integers(0, len(ids))]
            self.requests.append(Request(len(self.requests), time / 1e3, app, left=len(scenario.applications[app])))
        self.z = generator.standard_normal((len(self.requests), 8))

    def enqueue(self, request: Request, stage: int) -> None:
        queue = self.index[request.application, stage]
        self.waiting[queue].append((request, self.now))
        self.recent[queue].append(self.now)
        self.lengths[queue] += 1

    def seconds_left(self, queue: int) -> float:
        request, _ = self.waiting[queue][0]
        return request.arrival + self.scenario.applications[request.application].slo_seconds - self.now

    def ask(self, number: int) -> bool:
        app, stage = self.queues[number]
        application = self.scenario.applications[app]
        waiting, recent = self.waiting[number], self.recent[number]
        while recent and recent[0] <= self.now - 1.0:
            recent.popleft()
        before = application.workflow.predecessors[stage]
        sources = [tuple(request.ran_on[other] for other in before) for request, _ in list(waiting)[:MOST_SOURCES]]
        queue = Queue(
            stage,
            len(waiting),
            self.seconds_left(number),
            sources if before else (),
            self.now - waiting[0][1],
            rate=float(len(recent)),
            failures=self.turns.failures.get(number, 0),
        )
        decision = self.deciders[app].decide(queue, self.invokers)
        if not isinstance(decision, Dispatch):
            return False
        self.start(app, stage, number, decision)
        return True

    def start(self, app: int, stage: int, number: int, decision: Dispatch) -> None:
        scenario, application = self.scenario, self.scenario.applications[app]
        jobs = [self.waiting[number].popleft()[0] for _ in range(decision.jobs)]
        self.lengths[number] -= len(jobs)
        _, cpu, gpu = decision.configuration
        size = application.workflow.input_bytes[stage]
        transfers = scenario.platform.transfers
        before = application.workflow.predecessors[stage]
        fetch = 0.0
        for job in jobs:
            if not before:
                own = transfers.entry_seconds(size)
            elif all(job.ran_on[other] == decision.invoker for other in before):
                own = transfers.local_seconds(size)
            else:
                own = transfers.remote_seconds(size)
            fetch = max(fetch, own)
        run = application.profiles[stage].seconds_of(len(jobs), cpu, gpu)
        run *= float(np.exp(scenario.platform.noise * self.z[jobs[0].number, stage]))
        cost = scenario.platform.prices.rate(cpu, gpu) * (fetch + run) / 3600
        task = Task(
            self.now, app, stage, jobs, decision, self.now + scenario.platform.overhead_seconds + fetch + run, cost
        )
        self.invokers.take(decision.invoker, cpu, gpu)
        heapq.heappush(self.ends, (task.end, next(self.sequence), task))
        self.tasks.append(task)
        for job in jobs:
            job.cost += cost / len(jobs)
        self.kinds[decision.kind] = self.kinds.get(decision.kind, 0) + 1

    def finish(self, task: Task) -> None:
        _, cpu, gpu = task.decision.configuration
        self.invokers.give(task.decision.invoker, cpu, gpu)
        workflow = self.scenario.applications[task.application].workflow
        for job in task.jobs:
            job.ran_on[task.stage] = task.decision.invoker
            job.left -= 1
            if not job.left:
                job.finish = self.now
            for after in workflow.successors[task.stage]:
                if all(other in job.ran_on for other in workflow.predecessors[after]):
                    self.enqueue(job, after)

    def go(self, most_tasks: int | None = None) -> Run:
        """Run to the end, or until so many tasks have started."""
        arrivals = deque(self.requests)
        while self.ends or arrivals:
            self.now = min(self.ends[0][0] if self.ends else np.inf, arrivals[0].arrival if arrivals else np.inf)
            if self.now > self.end + self.drain:
                break
            while self.ends and self.ends[0][0] == self.now:
                self.finish(heapq.heappop(self.ends)[2])
            while arrivals and arrivals[0].arrival == self.now:
                request = arrivals.popleft()
                for entry in self.scenario.applications[request.application].entries:
                    self.enqueue(request, entry)
            match self.configurator.turns:
                case "recheck":
                    recheck_pass(self.turns, self.lengths, self.ask)
                case "slack":
                    slack_pass(self.turns, self.lengths, self.seconds_left, self.ask)
                case _:
                    ring_pass(self.turns, self.lengths, self.ask)
            if most_tasks is not None and len(self.tasks) >= most_tasks:
                break
        return self

    def totals(self, begin: float) -> dict[str, Any]:
        """Hit rate and dollars per 1000 requests, of the requests that arrived from `begin` on."""
        measured = [request for request in self.requests if request.arrival >= begin]
        slo = [self.scenario.applications[request.application].slo_seconds for request in measured]
        hits = [r.finish <= r.arrival + limit + 1e-9 for r, limit in zip(measured, slo, strict=True)]
        return {
            "hit": sum(hits) / len(hits),
            "cost_per_1k": 1e3 * sum(request.cost for request in measured) / len(measured),
            "tasks": len([task for task in self.tasks if begin <= task.start]),
        }
