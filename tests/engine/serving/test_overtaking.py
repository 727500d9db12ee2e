"""A task that waits for its models lets another one pass whose models are there, if both end sooner in sum."""

from __future__ import annotations

import pytest

from fairway.engine.serving.messages import (
    FAILED,
    HIT,
    MISS,
    NO_MODEL,
    Cancelled,
    Load,
    ModelFailed,
    ModelLoaded,
    Refuse,
    Reply,
    RequestArrived,
    Run,
    TaskDone,
)
from fairway.links import Links
from fairway.sim.serving import ServingOptions
from fairway.sim.serving_workload import ServingRun, ServingWorkload
from tests.engine.serving.test_engine import Single, chain, kinds, only

SLOW = Links(to_device_bandwidth=2.0)
"""A model of 4 bytes takes two seconds to load."""


def waiting(scheduler: str = "compass", **options: object) -> tuple[Single, Load]:
    """A worker that holds model a, on which a task with model b has had its turn and waits."""
    cluster = Single(scheduler, workers=1, links=SLOW, **options)
    load = only(cluster.tell(RequestArrived(0, cluster.graph(chain("a")))), Load)
    run = only(cluster.tell(ModelLoaded(load.copy, load.model), at=2.0), Run)
    cluster.tell(TaskDone(run.run), at=3.0)
    load = only(cluster.tell(RequestArrived(1, cluster.graph(chain("b"))), at=3.0), Load)
    return cluster, load


def test_one_that_comes_while_another_waits_runs_at_once() -> None:
    cluster, load = waiting()
    other = only(cluster.tell(RequestArrived(2, cluster.graph(chain("a"))), at=3.5), Run)
    assert (other.flow.request.key, other.found, other.turn) == (2, HIT, 3.5)
    commands = cluster.tell(TaskDone(other.run), at=4.5)
    assert commands == [Reply(2, 4.5)]
    run = only(cluster.tell(ModelLoaded(load.copy, load.model), at=5.0), Run)
    assert (run.flow.request.key, run.found, run.turn) == (1, MISS, 3.0)
    assert cluster.tell(TaskDone(run.run), at=6.0) == [Reply(1, 6.0)]
    assert cluster.engine.load.queued == 0.0


def test_the_one_that_was_passed_is_next_when_its_models_are_there() -> None:
    cluster, load = waiting()
    other = only(cluster.tell(RequestArrived(2, cluster.graph(chain("a", seconds=3.0))), at=3.5), Run)
    assert cluster.tell(RequestArrived(3, cluster.graph(chain("a"))), at=3.6) == []
    assert cluster.tell(ModelLoaded(load.copy, load.model), at=5.0) == []
    commands = cluster.tell(TaskDone(other.run), at=6.5)
    assert kinds(commands) == ["Reply", "Run"]
    assert only(commands, Run).flow.request.key == 1


@pytest.mark.parametrize(("seconds", "passes"), [(4.9, True), (5.1, False)])
def test_a_task_that_would_hold_it_up_for_too_long_waits(seconds: float, passes: bool) -> None:
    cluster, _ = waiting()  # of one second, whose model takes two
    commands = cluster.tell(RequestArrived(2, cluster.graph(chain(None, seconds=seconds))), at=3.0)
    assert kinds(commands) == ["Run"] * passes
    if passes:
        assert only(commands, Run).found == NO_MODEL


def test_one_that_lacks_its_model_or_waits_for_the_same_one_does_not_pass() -> None:
    cluster, _ = waiting()
    assert cluster.tell(RequestArrived(2, cluster.graph(chain("c"))), at=3.1) == []
    assert cluster.tell(RequestArrived(3, cluster.graph(chain("b"))), at=3.2) == []


def test_what_waits_counts_as_load_while_another_runs() -> None:
    cluster, load = waiting()
    assert cluster.table.view(0, 3.0).load(0, 3.0) == pytest.approx(3.0)
    other = only(cluster.tell(RequestArrived(2, cluster.graph(chain("a"))), at=3.5), Run)
    assert cluster.table.view(0, 3.5).load(0, 3.5) == pytest.approx(2.0)  # one second each
    cluster.tell(TaskDone(other.run), at=4.5)
    assert cluster.table.view(0, 4.5).load(0, 4.5) == pytest.approx(1.5)  # until 5.0 for the model, then a second
    cluster.tell(ModelLoaded(load.copy, load.model), at=5.0)
    assert cluster.table.view(0, 5.0).load(0, 5.0) == pytest.approx(1.0)


def test_a_model_that_fails_to_load_fails_the_task_that_was_passed_and_no_other() -> None:
    cluster, load = waiting()
    other = only(cluster.tell(RequestArrived(2, cluster.graph(chain("a"))), at=3.5), Run)
    refused = only(cluster.tell(ModelFailed(load.copy, load.model, "no file"), at=4.0), Refuse)
    assert (refused.key, refused.code) == (1, FAILED)
    assert cluster.tell(TaskDone(other.run), at=4.5) == [Reply(2, 4.5)]
    assert cluster.engine.load.queued == 0.0
    assert cluster.engine.running is None


def test_one_that_was_passed_and_that_nobody_waits_for_any_more_runs_for_nothing() -> None:
    cluster, load = waiting(recovers=True)
    other = only(cluster.tell(RequestArrived(2, cluster.graph(chain("a"))), at=3.5), Run)
    cluster.tell(Cancelled(1), at=3.6)
    cluster.tell(TaskDone(other.run), at=4.5)
    run = only(cluster.tell(ModelLoaded(load.copy, load.model), at=5.0), Run)
    assert "Reply" not in kinds(cluster.tell(TaskDone(run.run), at=6.0))


@pytest.mark.parametrize("scheduler", ["compass:no-overtaking", "jit", "heft", "hash"])
def test_others_run_in_the_order_in_which_they_came(scheduler: str) -> None:
    cluster, load = waiting(scheduler)
    assert cluster.tell(RequestArrived(2, cluster.graph(chain("a"))), at=3.5) == []
    run = only(cluster.tell(ModelLoaded(load.copy, load.model), at=5.0), Run)
    assert run.flow.request.key == 1


def test_requests_are_answered_sooner_where_models_have_to_be_swapped() -> None:
    workload = ServingWorkload("compass-edge", "poisson", 3, 600, 2.4)

    def mean(scheduler: str) -> float:
        record = ServingRun(workload, scheduler, ServingOptions(seed=1))()
        return float((record.requests.finish - record.requests.arrival).mean())

    assert mean("compass") < mean("compass:no-overtaking,no-replacing")
