"""Workers that are lost and come back again and again, and messages that take their time: every request is answered.

Messages from one worker to another keep their order, others overtake each other as chance has it. As in a live system,
all see at once in the table who is there, everybody is told of a loss before the lost one comes back, and what others
have said before is heard before the news that it is back.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Hashable
from typing import Any

import numpy as np
import pytest

from fairway import Fleet, StateTable, TaskGraph, Worker, scheduler_of
from fairway.engine.batch_rule import graph_batches
from fairway.engine.serving import ServingEngine, ServingEngineOptions
from fairway.engine.serving_messages import (
    InputsArrived,
    Load,
    ModelLoaded,
    PeerJoined,
    PeerLost,
    Refuse,
    Reply,
    RequestArrived,
    Run,
    SendAgain,
    StageDone,
    StageMoved,
    TaskDone,
)
from tests.engine.test_serving import DIAMOND, MODELS, Cluster, chain, planned, recovering
from tests.engine.test_serving_batches import JOIN, staged

WORKERS = 3


class Unsteady:
    """Workers that die and come back while requests are under way; what goes between two of them keeps its order."""

    def __init__(self, seed: int, scheduler: str) -> None:
        self.draws = np.random.default_rng(seed)
        self.fleet = Fleet.of([Worker(f"w{number}", 8.0) for number in range(WORKERS)], MODELS.values())
        self.table = StateTable(self.fleet)
        workflows = (staged("a", None, "b", name="chain"), JOIN, staged("c", name="single"))
        self.graphs = [TaskGraph.of(workflow, self.fleet) for workflow in workflows]
        self.scheduler = scheduler
        self.engines: list[ServingEngine | None] = [self.engine(number, 0) for number in range(WORKERS)]
        self.ways: dict[tuple[Hashable, int], deque[Any]] = {}
        self.answers: Counter[int] = Counter()
        self.now = 0.0
        self.epoch = 0
        self.down: int | None = None

    def engine(self, number: int, epoch: int) -> ServingEngine:
        batches = {graph: found for graph in self.graphs if (found := graph_batches(graph)) is not None}
        options = ServingEngineOptions(publishes=False, watches_time=True, batches=batches, epoch=epoch)
        return ServingEngine(number, scheduler_of(self.scheduler), self.table, self.draws, options)

    def put(self, source: Hashable, target: int, message: Any) -> None:
        self.ways.setdefault((source, target), deque()).append(message)

    def tell(self, worker: int, event: Any) -> None:
        engine = self.engines[worker]
        if engine is None:
            return
        self.now += 0.01
        command: Any
        for command in engine.handle(self.now, event):
            match command:
                case Run():
                    self.put(f"stages of {worker}", worker, TaskDone(command.run))
                case Load():
                    self.put(f"loads of {worker}", worker, ModelLoaded(*command))
                case Reply() | Refuse():
                    self.answers[command.key] += 1
                case _ if hasattr(command, "message"):
                    self.put(worker, command.worker, command.message)

    def step(self) -> bool:
        """Let something happen; False if there is nothing more to come."""
        busy = [way for way, messages in self.ways.items() if messages]
        if not busy:
            return False
        source, target = busy[int(self.draws.integers(len(busy)))]
        message = self.ways[source, target].popleft()
        if isinstance(message, PeerJoined):
            for other in range(WORKERS):
                while said := self.ways.get((other, target)):
                    self.tell(target, said.popleft())
        self.tell(target, message)
        return True

    def lose(self, worker: int) -> None:
        self.engines[worker], self.down = None, worker
        self.table.leave(worker)
        self._announce(PeerLost(worker))

    def bring_back(self) -> None:
        """Start the lost worker again, if all have heard of its loss and of what it had said before."""
        worker = self.down
        if worker is None:
            return
        if any(self.ways.get((source, other)) for source in ("supervisor", worker) for other in range(WORKERS)):
            return
        self.epoch += 1
        self.engines[worker], self.down = self.engine(worker, self.epoch), None
        self.table.join(worker)
        self._announce(PeerJoined(worker))

    def _announce(self, news: PeerLost | PeerJoined) -> None:
        for (_, target), messages in self.ways.items():
            if target == news.worker:
                messages.clear()
        for other in range(WORKERS):
            if other != news.worker:
                self.put("supervisor", other, news)


@pytest.mark.parametrize("scheduler", ["compass", "compass:as-published", "jit", "hash"])
@pytest.mark.parametrize("seed", range(12))
def test_every_request_whose_ingress_lives_is_answered_once(seed: int, scheduler: str) -> None:
    cluster = Unsteady(seed, scheduler)
    draws = cluster.draws
    ingress: dict[int, int] = {}
    gone: set[int] = set()
    for key in range(150):
        there = [number for number, engine in enumerate(cluster.engines) if engine is not None]
        ingress[key] = int(draws.choice(there))
        cluster.tell(ingress[key], RequestArrived(key, cluster.graphs[int(draws.integers(len(cluster.graphs)))]))
        for _ in range(int(draws.integers(7))):
            cluster.step()
        if cluster.down is None and draws.random() < 0.08:
            lost = int(draws.choice(there))
            gone |= {key for key, place in ingress.items() if place == lost and not cluster.answers[key]}
            cluster.lose(lost)
        elif draws.random() < 0.5:
            cluster.bring_back()
    while cluster.step():
        pass
    assert cluster.epoch > 0
    assert set(ingress) - set(cluster.answers) <= gone
    assert max(cluster.answers.values()) == 1


def test_a_join_that_moved_without_its_other_inputs_gets_them_where_it_is_now() -> None:
    """Its planned worker is gone, and with it an input that had been sent there before."""
    cluster = recovering()
    request = planned(cluster, DIAMOND, [1, 1, 1, 2])
    for stage in (0, 1, 2):
        cluster.tell(StageDone(0, stage, 1, 0, 1.0), at=1.0)
    cluster.table.leave(2)
    commands: list[Any] = cluster.tell(StageMoved(0, 3, 0, 0, alone=True), at=1.1)
    assert request.flow.attempt == 1
    again = [command.message for command in commands if isinstance(getattr(command, "message", None), SendAgain)]
    assert sorted((message.source, message.stages) for message in again) == [(1, (3,)), (2, (3,))]


def test_a_task_that_has_ended_here_by_an_older_plan_is_passed_on_by_the_new_one() -> None:
    cluster = Cluster(me=1, recovers=True)
    graph = cluster.graph(chain(None, None))
    home = Cluster(me=0, recovers=True)
    home.engine.load.enqueue(50.0)
    home.tell(RequestArrived(5, home.graph(chain(None, None))))
    flow = home.engine.ingress.open[5].flow
    old = type(flow)(flow.request, graph, [1, 1])
    run: Any = next(each for each in cluster.tell(InputsArrived(old, 0)) if isinstance(each, Run))
    cluster.tell(TaskDone(run.run), at=1.0)
    assert cluster.tell(InputsArrived(old, 0), at=1.1) == [], "it came twice"
    new = type(flow)(flow.request, graph, [1, 2], attempt=1)
    told: list[Any] = [command.message for command in cluster.tell(InputsArrived(new, 0), at=1.2)]  # type: ignore[union-attr]
    assert [(type(message).__name__, message.stage) for message in told] == [("StageDone", 0), ("InputsArrived", 1)]
    assert told[0].attempt == 1
