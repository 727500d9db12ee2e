"""Batches that are stopped for larger ones: the worker gives its place up at once, in whatever order the news come."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest

from fairway import Configuration, Model, Profile, Stage, Worker, Workflow
from fairway.engine.serving.flow import Flow
from fairway.engine.serving.messages import BatchArrived, BatchDone, BatchStopped, Run, Send, Stop
from fairway.engine.serving.schedule import schedule_of
from fairway.errors import InputError
from fairway.links import NO_TRANSFERS
from fairway.live.serving.runtime.planning import desk_options
from fairway.place.batch import NOWHERE
from fairway.place.fleet import OUTSIDE
from fairway.place.plan import Request
from fairway.sim.scenario import Scenario
from tests.engine.serving.driver import Cluster

PROFILE = Profile.of({Configuration(1, 1, 1): 1.0, Configuration(4, 1, 1): 1.2})
MODELS = {"m": Model("m", 10, 2.0)}


def served(stages: str = "a", workers: int = 1, *, model: bool = False) -> Scenario:
    needs = ("m",) if model else ()
    workflow = Workflow(
        tuple(Stage.of(name, 1.0, *needs) for name in stages),
        tuple(pairwise(stages)),
        MODELS if model else {},
        "served",
    )
    machines = tuple(Worker(f"w{number}", 1e9, "gpu", None, 1, 1) for number in range(workers))
    return Scenario(
        "stopping", (workflow,), machines, NO_TRANSFERS,
        slo_seconds={"served": 4.0 * len(stages)}, profiles={"served": (PROFILE,) * len(stages)},
    )  # fmt: skip


def batch(cluster: Cluster, number: int) -> BatchArrived:
    (graph,) = cluster.graphs
    request = Request(number, graph, OUTSIDE, None, math.inf, True, math.inf)
    flow = Flow(request, graph, [NOWHERE])
    return BatchArrived(number, OUTSIDE, (flow,), 0, Configuration(1, 1, 1), 1.0)


def test_a_batch_that_runs_stops_and_its_end_says_nothing() -> None:
    cluster = Cluster(served(), "shepherd")
    engine = cluster.engines[0]
    assert engine is not None
    (run,) = [each for each in engine.handle(0.0, (batch(cluster, 5),)) if isinstance(each, Run)]
    assert engine.handle(0.5, (BatchStopped(5),)) == [Stop(run.run)]
    assert engine.free_cpu == 1
    commands = engine.handle(0.5, (batch(cluster, 6),))
    assert [type(each) for each in commands] == [Run]
    engine.validate()


def test_a_batch_that_comes_after_it_was_stopped_does_not_run() -> None:
    cluster = Cluster(served(), "shepherd")
    engine = cluster.engines[0]
    assert engine is not None
    assert engine.handle(0.0, (BatchStopped(5),)) == []
    assert engine.handle(0.1, (batch(cluster, 5),)) == []
    assert [type(each) for each in engine.handle(0.2, (batch(cluster, 6),))] == [Run]
    engine.handle(0.3, (BatchStopped(6),))
    engine.validate()


def test_a_batch_that_waits_leaves_the_queue() -> None:
    cluster = Cluster(served(), "shepherd")
    engine = cluster.engines[0]
    assert engine is not None
    engine.handle(0.0, (batch(cluster, 5),))
    assert engine.handle(0.1, (batch(cluster, 6),)) == []
    assert engine.handle(0.2, (BatchStopped(6),)) == []
    assert engine.load.queued == pytest.approx(0.0)
    engine.validate()


@pytest.mark.parametrize("latency", [0.0, 0.01])
@pytest.mark.parametrize("model", [False, True])
@pytest.mark.parametrize(("stages", "workers"), [("a", 1), ("ab", 2), ("abc", 1)])
def test_every_request_is_answered_once_whatever_is_stopped(
    stages: str, workers: int, model: bool, latency: float
) -> None:
    cluster = Cluster(served(stages, workers, model=model), "shepherd:preemption=1.5")
    cluster.latency = lambda: latency
    key = 0
    for burst in range(6):
        for _ in range(1 + 3 * (burst % 2)):
            cluster.ask(key)
            key += 1
        cluster.run(0.4 + 0.7 * burst)
    cluster.run()
    assert set(cluster.answers) == set(range(key))
    assert set(cluster.answers.values()) == {1}


def test_a_batch_is_stopped_once_and_its_end_is_not_counted() -> None:
    cluster = Cluster(served(), "shepherd")
    cluster.ask(0)
    cluster.run(0.5)
    for key in range(1, 5):
        cluster.ask(key)
    cluster.run()
    sent = [command.message for _, _, command in cluster.commands if isinstance(command, Send)]
    stopped = [message.number for message in sent if isinstance(message, BatchStopped)]
    assert len(stopped) == 1
    assert stopped[0] not in [message.number for message in sent if isinstance(message, BatchDone)]
    assert set(cluster.replies) == set(range(5))


def test_live_stages_cannot_be_stopped() -> None:
    scenario = served()
    with pytest.raises(InputError, match=r"stops batches that run, .* use shepherd:no-preemption"):
        desk_options(schedule_of("shepherd"), scenario.fleet(), {})
    assert desk_options(schedule_of("shepherd:no-preemption"), scenario.fleet(), {}) is not None
