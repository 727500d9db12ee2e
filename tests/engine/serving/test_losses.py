"""Workers that are lost and come back again and again, and messages that take their time: every request is answered.

Messages from one worker to another keep their order, others overtake each other as chance has it. As in a live system,
everybody hears of a loss before the lost one comes back, and what others have said before is heard before the news that
it is back.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fairway import Worker
from fairway.engine.serving import engine as engine_module
from fairway.engine.serving.messages import (
    InputsArrived,
    OutputGone,
    RequestArrived,
    Run,
    SendAgain,
    StageDone,
    StageMoved,
    TaskDone,
)
from fairway.sim.scenario import Scenario
from tests.engine.serving.driver import Cluster
from tests.engine.serving.test_batches import JOIN, staged
from tests.engine.serving.test_engine import DIAMOND, Single, chain, planned, recovering

WORKERS = 3
FEW = Scenario(
    "few",
    (staged("a", None, "b", name="chain"), JOIN, staged("c", name="single")),
    tuple(Worker(f"w{number}", 8.0) for number in range(WORKERS)),
)


def unsteady(seed: int, scheduler: str, requests: int = 150, **options: Any) -> Cluster:
    """Let workers die and come back while requests are under way; those whose ingress lives have to be answered."""
    cluster = Cluster(FEW, scheduler, seed=seed, **options)
    draws = np.random.default_rng([seed, 1])
    cluster.latency = lambda: float(draws.exponential(0.1))
    cluster.takes = lambda run: run.seconds * float(draws.exponential())
    ingress: dict[int, int] = {}
    gone: set[int] = set()
    down: int | None = None
    for key in range(requests):
        there = [number for number in range(WORKERS) if cluster.engines[number] is not None]
        ingress[key] = int(draws.choice(there))
        cluster.ask(key, workflow=int(draws.integers(3)), ingress=ingress[key])
        cluster.run(cluster.now + float(draws.exponential(0.4)))
        if down is None and draws.random() < 0.08:
            down = int(draws.choice(there))
            gone |= {each for each, place in ingress.items() if place == down and not cluster.answers[each]}
            cluster.lose(down)
        elif down is not None and draws.random() < 0.5 and cluster.can_come_back(down):
            cluster.bring_back(down)
            down = None
    cluster.run()
    assert cluster.epoch > 0
    assert set(ingress) - set(cluster.answers) <= gone
    assert max(cluster.answers.values()) == 1
    assert not cluster.refusals
    return cluster


@pytest.mark.parametrize("scheduler", ["compass", "compass:as-published", "jit", "hash"])
@pytest.mark.parametrize("seed", range(12))
def test_every_request_whose_ingress_lives_is_answered_once(seed: int, scheduler: str) -> None:
    assert unsteady(seed, scheduler).is_quiet()


@pytest.mark.parametrize("scheduler", ["compass", "jit"])
@pytest.mark.parametrize("seed", range(3))
def test_so_it_is_where_rows_travel_as_messages(seed: int, scheduler: str) -> None:
    assert unsteady(seed, scheduler, publishes=True).is_quiet()


@pytest.mark.parametrize("scheduler", ["compass", "jit", "hash"])
def test_outputs_that_are_gone_are_made_again(scheduler: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where workers do not hear which requests are over, each keeps its last outputs only: here those of three."""
    monkeypatch.setattr(engine_module, "KEPT_OUTPUTS", 3)
    gone = [len(unsteady(seed, scheduler, forgets=False).of_kind(OutputGone)) for seed in range(6)]
    assert sum(gone) > 0


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
    cluster = Single(me=1, recovers=True)
    graph = cluster.graph(chain(None, None))
    home = Single(me=0, recovers=True)
    home.keep_busy(50.0)
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
