"""What falls on one moment: a worker takes it in together as it would one by one, a desk decides when it has all."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fairway.engine.serving.messages import RequestArrived, Run, TaskDone
from fairway.sim.scenario import ColdStarts, Scenario
from fairway.sim.scenarios import SCENARIOS
from fairway.sim.scenarios.esg_apps import esg_apps
from tests.engine.serving.driver import Cluster
from tests.engine.serving.test_desk import PAIRS, served
from tests.engine.serving.test_engine import Single, chain, kinds

EDGE, APPS = SCENARIOS["compass-edge"](), esg_apps(apps="dag").with_workers(3)


def outcome(cluster: Cluster) -> list[Any]:
    """Who ran what, where and when, and when requests were answered."""
    runs = [(ran.worker, ran.stage, tuple(ran.keys), ran.start, ran.end, ran.run.found) for ran in cluster.ran]
    return [runs, cluster.replies, sorted(cluster.refusals)]


def driven(scenario: Scenario, scheduler: str, *, gathers: bool = False, rate: float = 10.0, **options: Any) -> Cluster:
    """Requests that come three at a time, and runs that end together since their times are rounded."""
    cluster = Cluster(scenario, scheduler, seed=3, **options)
    cluster.gathers = gathers
    cluster.takes = lambda run: round(run.seconds + 0.05, 1)
    draws = np.random.default_rng(5)
    for key in range(30):
        cluster.ask(key, workflow=int(draws.integers(4)), at=(key // 3) * 3 / rate, ingress=int(draws.integers(3)))
    cluster.run()
    assert cluster.answers.keys() == set(range(30))
    return cluster


@pytest.mark.parametrize("scheduler", ["compass", "jit", "heft", "hash", "compass:centralised"])
@pytest.mark.parametrize("scenario", [EDGE, APPS], ids=["edge", "apps"])
@pytest.mark.parametrize("recovers", [False, True])
def test_events_of_one_moment_may_be_handed_over_at_once(scenario: Scenario, scheduler: str, recovers: bool) -> None:
    apart, together = (driven(scenario, scheduler, gathers=gathers, recovers=recovers) for gathers in (False, True))
    assert together.steps < apart.steps
    assert outcome(apart) == outcome(together)


@pytest.mark.parametrize("scheduler", ["esg", "front+compass", "infless"])
@pytest.mark.parametrize("scenario", [EDGE, APPS], ids=["edge", "apps"])
def test_so_it_is_for_workers_that_run_planned_batches(scenario: Scenario, scheduler: str) -> None:
    apart, together = (driven(scenario, scheduler, gathers=gathers) for gathers in (False, True))
    assert outcome(apart) == outcome(together)


def test_commands_are_those_of_one_event_after_the_other() -> None:
    one, other = Single(workers=1), Single(workers=1)
    asked = [RequestArrived(key, graph) for key, graph in enumerate([one.graph(chain(None))] * 3)]
    same = [RequestArrived(key, graph) for key, graph in enumerate([other.graph(chain(None))] * 3)]
    apart = [command for event in asked for command in one.tell(event)]
    together = other.engine.handle(0.0, same)
    assert kinds(apart) == kinds(together) == ["Run"]
    first = next(command for command in together if isinstance(command, Run))
    assert kinds(other.engine.handle(1.0, [TaskDone(first.run), RequestArrived(9, same[0].graph)])) == ["Reply", "Run"]
    assert one.engine.handle(0.0, []) == []


def test_a_desk_decides_when_it_has_taken_in_all_of_a_moment() -> None:
    """Two jobs that come together can start together; if the desk hears of one after the other, the first is alone."""
    together, apart = (Cluster(served(stages="a", profile=PAIRS, workers=1), "esg") for _ in range(2))
    together.ask(0, 1)
    together.run()
    assert [ran.keys for ran in together.ran] == [[0, 1]]
    for key in (0, 1):
        apart.ask(key)
        apart.step()
    apart.run()
    assert [ran.keys for ran in apart.ran] == [[0], [1]]


# Rows


@pytest.mark.parametrize(
    "scheduler",
    ["compass", "jit", "heft", "hash", "compass:centralised", "esg", "front+compass", "infless+hash", "orion+jit"],
)
@pytest.mark.parametrize("scenario", [EDGE, APPS], ids=["edge", "apps"])
def test_rows_that_travel_as_messages_are_as_good_as_a_table_that_all_share(scenario: Scenario, scheduler: str) -> None:
    """If pushes are immediate: all see each change before anything else happens."""
    shared, pushed = (driven(scenario, scheduler, publishes=publishes) for publishes in (False, True))
    assert pushed.steps > shared.steps
    assert outcome(shared) == outcome(pushed)


@pytest.mark.parametrize("scheduler", ["compass", "jit", "front+compass"])
def test_so_they_are_with_copies_from_the_start_and_while_a_worker_is_gone(scheduler: str) -> None:
    def unsteady(*, publishes: bool) -> Cluster:
        scenario = esg_apps("moderate", "chains", cold=ColdStarts(1), most_containers=9).with_workers(3)
        cluster = Cluster(scenario, scheduler, seed=1, publishes=publishes)
        for key in range(40):
            cluster.ask(key, workflow=key % 4, at=0.05 * key, ingress=key % 2)
        cluster.run(0.7)
        cluster.lose(2)
        cluster.run(1.1)
        cluster.bring_back(2)
        cluster.run()
        return cluster

    shared, pushed = (unsteady(publishes=publishes) for publishes in (False, True))
    assert outcome(shared) == outcome(pushed)
    assert len(shared.replies) == 40
    assert any(ran.worker == 2 and ran.start > 1.1 for ran in shared.ran)


def test_a_worker_that_joins_hears_of_the_rows_of_the_others() -> None:
    cluster = Cluster(EDGE, "compass", publishes=True)
    cluster.takes = lambda _: 50.0
    cluster.ask(*range(12), workflow=1)
    cluster.run(1.0)
    cluster.lose(3)
    cluster.run(1.0)
    cluster.bring_back(3)
    cluster.run(1.0)
    newcomer, other = cluster.worker(3).view(), cluster.worker(4).view()
    for worker in (0, 1, 2):
        assert newcomer.load(worker, 1.0) == other.load(worker, 1.0) > 0
        assert newcomer.cached[:, worker].tolist() == other.cached[:, worker].tolist()
        assert newcomer.cached[:, worker].any()
        assert newcomer.free_bytes(worker) == pytest.approx(other.free_bytes(worker))
