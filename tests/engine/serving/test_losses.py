"""Workers that are lost and come back again and again, and messages that take their time: every request is answered.

Messages from one worker to another keep their order, others overtake each other as chance has it. As in a live system,
all workers hear of a loss before the lost one comes back, what others have said before is heard before the news that it
is back, and clients come to it when all workers know that it is.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from fairway import Worker
from fairway.engine.protocol import like
from fairway.engine.serving import engine as engine_module
from fairway.engine.serving.messages import (
    Forget,
    InputsArrived,
    OutputGone,
    PeerLost,
    ProgressAsked,
    ProgressTold,
    Replanned,
    Reply,
    RequestArrived,
    Run,
    Send,
    SendAgain,
    StageDone,
    StageMoved,
    TaskDone,
)
from fairway.place.graph import TaskGraph
from fairway.sim.scenario import Scenario
from tests.engine.serving.driver import Cluster
from tests.engine.serving.test_batches import JOIN, staged
from tests.engine.serving.test_engine import DIAMOND, Single, answered, chain, lose, planned, recovering

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
        there = [number for number in range(WORKERS) if cluster.is_known(number)]
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
    # Who drives an engine knows a request by the life that it came to, and drops what comes late of one that is over.
    for key, number in product(sorted(gone), range(WORKERS)):
        if cluster.engines[number] is not None:
            cluster.put(number, Forget(key))
    cluster.run()
    return cluster


@pytest.mark.parametrize("scheduler", ["compass", "compass:as-published", "jit", "hash", "fairway:late=serve"])
@pytest.mark.parametrize("seed", range(12))
def test_every_request_whose_ingress_lives_is_answered_once(seed: int, scheduler: str) -> None:
    assert unsteady(seed, scheduler).is_quiet()


@pytest.mark.parametrize("scheduler", ["compass", "jit", "fairway:late=serve"])
@pytest.mark.parametrize("seed", range(3))
def test_so_it_is_where_rows_travel_as_messages(seed: int, scheduler: str) -> None:
    assert unsteady(seed, scheduler, publishes=True).is_quiet()


@pytest.mark.parametrize("scheduler", ["compass", "jit", "hash"])
def test_outputs_that_are_gone_are_made_again(scheduler: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where workers do not hear which requests are over, each keeps outputs of its last only: here of three to six."""
    monkeypatch.setattr(engine_module, "KEPT_REQUESTS", 3)
    gone = [len(unsteady(seed, scheduler, forgets=False).of_kind(OutputGone)) for seed in range(6)]
    assert sum(gone) > 0


def test_of_two_moves_the_later_one_counts_whichever_the_ingress_hears_of_first() -> None:
    """Two workers tell of it, one after the other, and what one says may overtake what the other has said."""
    cluster = recovering()
    request = planned(cluster, chain(None, None), [1, 1])
    cluster.tell(StageMoved(0, 0, 2, 0, moves=2), at=1.0)
    cluster.tell(StageMoved(0, 0, 1, 0, moves=1), at=1.1)
    assert request.at[0] == 2
    answered(cluster, lose(cluster, 2, at=1.2), at=1.2)
    assert request.flow.attempt == 1
    assert request.at[0] != 2


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
    assert [(type(message).__name__, message.stage) for message in told] == [("InputsArrived", 1)]
    assert told[0].flow.attempt == 1


# What an ingress hears, and when


def test_an_ingress_hears_of_no_stage_but_the_last_as_long_as_no_worker_is_lost() -> None:
    cluster = Cluster(FEW, "jit")
    for key in range(20):
        cluster.ask(key, workflow=key % 3, ingress=key % WORKERS)
    cluster.run()
    assert len(cluster.replies) == 20
    assert not cluster.of_kind(ProgressAsked)
    last = {len(graph) - 1 for graph in cluster.graphs}
    assert {done.stage for done in cluster.of_kind(StageDone)} <= last


def test_what_a_reply_needs_besides_the_last_outputs_is_heard_of_at_once() -> None:
    """The first stage's output is returned, too: the reply waits for both."""
    fleet = Single().fleet
    graph = TaskGraph.of(chain(None, None), fleet)
    home, cluster = (Single(me=me, fleet=fleet, recovers=True, returned={graph: frozenset({0})}) for me in (0, 1))
    home.tell(RequestArrived(0, graph))
    flow = replace(home.engine.ingress.open[0].flow, workers=[1, 1])
    run: Any = next(each for each in cluster.tell(InputsArrived(flow, 0)) if isinstance(each, Run))
    first, run = cluster.tell(TaskDone(run.run), at=1.0)
    assert first == Send(0, StageDone(0, 0, 1, 0, 1.0))
    (last,) = cluster.tell(TaskDone(run.run), at=2.0)
    assert home.tell(last.message, at=2.0) == [], "the other one may overtake it"  # type: ignore[union-attr]
    assert like(Reply, key=0) in home.tell(first.message, at=2.0)


def test_an_ingress_plans_when_all_that_may_have_something_of_a_request_have_answered() -> None:
    cluster = recovering()
    request = planned(cluster, DIAMOND, [1, 0, 1, 2])
    asked = cluster.tell(PeerLost(2), at=1.0)
    assert asked == [Send(1, ProgressAsked(0, 0))], "itself it need not ask by a message"
    assert cluster.tell(StageDone(0, 0, 1, 0, 0.5), at=1.1) == []
    assert request.flow.attempt == 0
    commands = cluster.tell(ProgressTold(0, 1), at=1.1)
    assert request.flow.attempt == 1
    assert request.is_done(0), "what came before its answer counts"
    assert like(Send, worker=1, message=Replanned(request.flow)) in commands


def test_a_worker_that_is_lost_before_it_has_answered_is_not_waited_for() -> None:
    cluster = recovering()
    request = planned(cluster, chain(None, None), [1, 2])
    cluster.tell(PeerLost(2), at=1.0)
    assert request.asked == {1}
    cluster.tell(PeerLost(1), at=1.1)
    assert (request.flow.attempt, request.flow.workers) == (1, [0, 0])


def test_a_task_has_ended_if_all_that_take_its_output_have() -> None:
    """Its own worker is lost with the news of it, but it need not run again."""
    cluster = recovering()
    request = planned(cluster, chain(None, None, None), [1, 2, 2])
    cluster.tell(PeerLost(1), at=2.0)
    cluster.tell(StageDone(0, 1, 2, 0, 1.5), at=2.1)
    assert cluster.tell(ProgressTold(0, 2), at=2.1) == []
    assert request.is_done(0)
    assert request.flow.attempt == 0


def test_inputs_that_were_sent_by_an_old_plan_go_on_by_the_new_one() -> None:
    """The new plan has come before them."""
    home, cluster = recovering(), recovering(me=1)
    request = planned(home, chain(None, None), [1, 2])
    old = replace(request.flow, graph=cluster.graph(chain(None, None)))
    new = replace(old, workers=[1, 0], attempt=1)
    assert cluster.tell(Replanned(new)) == []
    run: Any = next(each for each in cluster.tell(InputsArrived(old, 0)) if isinstance(each, Run))
    assert cluster.tell(TaskDone(run.run), at=1.0) == [Send(0, InputsArrived(new, 1, (0,)))]
    cluster.tell(Forget(0), at=1.1)
    assert not cluster.engine.here


def test_a_worker_says_what_ended_by_an_old_plan_when_the_new_one_comes() -> None:
    home, cluster = recovering(), recovering(me=1)
    request = planned(home, chain(None, None), [1, 2])
    old = replace(request.flow, graph=cluster.graph(chain(None, None)))
    run: Any = next(each for each in cluster.tell(InputsArrived(old, 0)) if isinstance(each, Run))
    cluster.tell(TaskDone(run.run), at=1.0)
    new = replace(old, workers=[1, 0], attempt=1)
    assert cluster.tell(Replanned(new), at=2.0) == [Send(0, StageDone(0, 0, 1, 0, 1.0))]


def test_a_worker_that_took_a_task_by_an_old_plan_gets_the_new_one() -> None:
    cluster = recovering()
    request = planned(cluster, DIAMOND, [1, 1, 2, 2])
    cluster.tell(PeerLost(2), at=1.0)
    cluster.tell(ProgressTold(0, 1), at=1.0)
    assert request.flow.attempt == 1
    cluster.table.join(2)
    commands = cluster.tell(StageMoved(0, 1, 2, 0), at=1.2)
    assert commands[0] == Send(2, Replanned(request.flow))


def test_a_task_that_a_worker_does_not_know_gets_its_inputs_again() -> None:
    """It may have ended there, and its output may have gone since; or it has not come yet, which does no harm."""
    cluster = recovering()
    request = planned(cluster, chain(None, None, None), [1, 1, 2])
    cluster.tell(PeerLost(2), at=1.0)
    cluster.tell(StageDone(0, 0, 1, 0, 0.5), at=1.0)
    cluster.tell(ProgressTold(0, 1), at=1.0)
    assert request.flow.attempt == 1
    assert cluster.tell(OutputGone(0, 1, 1, 1), at=1.1) == [Send(1, SendAgain(request.flow, 0, (1,)))]
    assert cluster.tell(OutputGone(0, 2, request.at[2], 1), at=1.1) == [], "this attempt has just sent it on its way"
