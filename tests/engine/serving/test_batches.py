"""The serving engine lets requests that wait for the same stage run together."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from fairway import Fleet, Stage, TaskGraph, Worker, Workflow
from fairway.engine.serving.batch_rule import graph_batches
from fairway.engine.serving.messages import (
    FAILED,
    HIT,
    LATE,
    MISS,
    NO_MODEL,
    PARTIAL,
    Cancelled,
    Command,
    InputsArrived,
    Load,
    ModelFailed,
    ModelLoaded,
    Refuse,
    Reply,
    RequestArrived,
    Run,
    TaskDone,
    TimePassed,
)
from fairway.sim.scenario import Scenario
from tests.engine.serving.driver import Cluster
from tests.engine.serving.test_engine import MODELS, Single, kinds, only

TIMES = {1: 1.0, 2: 1.2, 4: 1.6}


def staged(*models: str | None, name: str = "workflow", times: dict[int, float] = TIMES) -> Workflow:
    stages = [Stage.of(f"s{number}", {"gpu": times}, model, output_bytes=1) for number, model in enumerate(models)]
    edges = [(f"s{number}", f"s{number + 1}") for number in range(len(models) - 1)]
    return Workflow(tuple(stages), tuple(edges), MODELS, name)


JOIN = Workflow(
    tuple(Stage.of(name, {"gpu": TIMES}, output_bytes=1) for name in ("start", "left", "right", "end")),
    (("start", "left"), ("start", "right"), ("left", "end"), ("right", "end")),
    MODELS,
)


IN_ORDER = "compass:patience=0"


class Alone(Single):
    """One worker, whose engine a test talks to."""

    def __init__(self, *workflows: Workflow, scheduler: str = "compass", slo: float | None = None, **options: Any):
        fleet = Fleet.of([Worker("w0", 10.0)], MODELS.values())
        self.graphs = [TaskGraph.of(workflow, fleet) for workflow in workflows]
        batches = {graph: found for graph in self.graphs if (found := graph_batches(graph, slo)) is not None}
        super().__init__(scheduler, fleet=fleet, batches=batches, **options)

    def ask(self, *keys: int, workflow: int = 0, deadline: float = math.inf) -> list[Command]:
        return [each for key in keys for each in self.tell(RequestArrived(key, self.graphs[workflow], deadline))]

    @property
    def load(self) -> float:
        return self.engine.view().load(0, self.now)


def keys(run: Run) -> list[int]:
    return [run.flow.request.key, *(mate.flow.request.key for mate in run.mates)]


def test_those_that_wait_for_the_same_stage_run_together_in_the_order_in_which_they_came() -> None:
    worker = Alone(staged(None))
    first = only(worker.ask(0, 1, 2, 3), Run)
    assert (keys(first), first.seconds) == ([0], 1.0), "nobody waits for mates"
    commands = worker.tell(TaskDone(first.run), at=1.0)
    second = only(commands, Run)
    assert keys(second) == [1, 2, 3]
    assert second.seconds == 1.6, "three take as long as four"
    assert [(mate.queued, mate.turn, mate.found) for mate in second.mates] == [(0.0, 1.0, NO_MODEL)] * 2
    commands = worker.tell(TaskDone(second.run), at=2.6)
    assert commands == [Reply(1, 2.6), Reply(2, 2.6), Reply(3, 2.6)]
    assert worker.load == 0.0


def test_no_more_run_together_than_pays_or_than_the_slo_allows() -> None:
    worker = Alone(staged(None))
    run = only(worker.ask(*range(8)), Run)
    run = only(worker.tell(TaskDone(run.run), at=1.0), Run)
    assert keys(run) == [1, 2, 3, 4]
    assert keys(only(worker.tell(TaskDone(run.run), at=2.6), Run)) == [5, 6, 7]
    worker = Alone(staged(None), slo=1.3)
    run = only(worker.ask(*range(8)), Run)
    assert keys(only(worker.tell(TaskDone(run.run), at=1.0), Run)) == [1, 2]


def test_only_the_same_stage_of_the_same_workflow_runs_along() -> None:
    worker = Alone(staged("a", None, name="one"), staged("a", None, name="two"), scheduler=IN_ORDER)
    (load,) = worker.ask(0)
    worker.ask(1, workflow=1)
    worker.ask(2)
    run = only(worker.tell(ModelLoaded(load.copy, 0), at=0.0), Run)  # type: ignore[union-attr]
    assert keys(run) == [0, 2]
    worker.ask(3)
    run = only(worker.tell(TaskDone(run.run), at=1.2), Run)
    assert (keys(run), run.stage) == ([1], 0), "first come, first served: it came before the others' second stage"
    worker.ask(4)
    run = only(worker.tell(TaskDone(run.run), at=2.2), Run)
    assert (keys(run), run.stage) == ([3, 4], 0)
    run = only(worker.tell(TaskDone(run.run), at=3.4), Run)
    assert (keys(run), run.stage) == ([0, 2, 3, 4], 1)


def test_a_task_that_lacks_an_input_does_not_run_along() -> None:
    worker = Alone(JOIN, staged(None))
    blocker = only(worker.ask(9, workflow=1), Run)
    worker.ask(0, 1, 2)
    flows = {key: worker.engine.ingress.open[key].flow for key in range(3)}
    run = only(worker.tell(TaskDone(blocker.run), at=1.0), Run)
    assert keys(run) == [0, 1, 2]
    for key, sources in ((0, (1, 2)), (1, (1,)), (2, (2, 1))):
        worker.tell(InputsArrived(flows[key], 3, sources))
    assert [(task.stage, task.flow.request.key) for task in worker.engine.queue] == [(3, 0), (3, 1), (3, 2)]
    joined = only(worker.tell(TaskDone(run.run), at=3.0), Run)
    assert (joined.stage, keys(joined)) == (3, [0, 2])


def test_those_that_come_while_the_model_is_copied_run_along() -> None:
    worker = Alone(staged("a"))
    (load,) = worker.ask(0)
    worker.ask(1)
    run = only(worker.tell(ModelLoaded(load.copy, 0), at=0.5), Run)  # type: ignore[union-attr]
    assert keys(run) == [0, 1]
    assert (run.found, run.mates[0].found) == (MISS, HIT)
    assert worker.load == pytest.approx(1.2), "until both are done"
    worker.ask(2)
    assert worker.load == pytest.approx(2.2)


def test_one_copy_of_a_model_is_one_miss() -> None:
    worker = Alone(staged(None, name="plain"), staged("a", name="with a model"), scheduler="compass:no-prefetch")
    run = only(worker.ask(0), Run)
    worker.ask(1, 2, 3, workflow=1)
    load = only(worker.tell(TaskDone(run.run), at=1.0), Load)
    run = only(worker.tell(ModelLoaded(load.copy, 0), at=1.5), Run)
    assert [run.found, *(mate.found for mate in run.mates)] == [MISS, PARTIAL, PARTIAL]


def test_what_is_prefetched_is_for_those_that_run_after_the_batch() -> None:
    """Its own members would fill all of the queue that is looked at."""
    worker = Alone(staged(None, name="plain"), staged("a", name="with a model"))
    run = only(worker.ask(*range(5)), Run)
    worker.ask(5, workflow=1)
    commands = worker.tell(TaskDone(run.run), at=1.0)
    assert keys(only(commands, Run)) == [1, 2, 3, 4]
    assert only(commands, Load).model == 0


def test_the_load_counts_a_batch_with_the_time_of_all_of_it() -> None:
    for scheduler, after in (("compass", 1.1), ("compass:count-running", 1.6)):
        worker = Alone(staged(None), scheduler=scheduler)
        run = only(worker.ask(*range(5)), Run)
        assert worker.load == 5.0
        run = only(worker.tell(TaskDone(run.run), at=1.0), Run)
        assert worker.load == pytest.approx(1.6)
        worker.now = 1.5
        assert worker.load == pytest.approx(after)
        worker.tell(TaskDone(run.run), at=2.6)
        assert worker.load == 0.0


def test_the_pace_is_judged_by_the_time_of_the_batch() -> None:
    worker = Alone(staged(None), watches_time=True)
    run = only(worker.ask(*range(5)), Run)
    run = only(worker.tell(TaskDone(run.run), at=1.0), Run)
    assert worker.engine.due == pytest.approx(1.0 + 2 * 1.6)
    worker.tell(TimePassed(), at=2.0)
    worker.tell(TaskDone(run.run), at=2.6)
    assert worker.engine.load.pace.factor == 1.0
    assert worker.load == 0.0


def test_one_that_fails_leaves_the_others_alone() -> None:
    worker = Alone(staged(None, None), scheduler=IN_ORDER)
    first = only(worker.ask(*range(4)), Run)
    run = only(worker.tell(TaskDone(first.run), at=1.0), Run)
    commands = worker.tell(TaskDone(run.run, {1: "no luck"}), at=2.6)
    assert commands[0] == Refuse(2, "no luck", FAILED)
    assert keys(only(commands, Run)) == [0, 1, 3], "the rest go on to the next stage"
    assert 2 not in worker.engine.ingress.open


def test_all_of_a_batch_may_fail_and_so_may_their_model() -> None:
    worker = Alone(staged("a"))
    (load,) = worker.ask(0)
    worker.ask(1)
    refused = only(worker.tell(ModelFailed(load.copy, 0, "it is gone"), at=0.1), Refuse)  # type: ignore[union-attr]
    assert refused == Refuse(0, "it is gone", FAILED)
    worker = Alone(staged(None))
    run = only(worker.ask(*range(3)), Run)
    run = only(worker.tell(TaskDone(run.run, {0: "no"}), at=1.0), Run)
    commands = worker.tell(TaskDone(run.run, {0: "a", 1: "b"}), at=2.0)
    assert commands == [Refuse(1, "a", FAILED), Refuse(2, "b", FAILED)]
    assert worker.load == 0.0


def test_one_whose_time_is_over_does_not_run_along() -> None:
    worker = Alone(staged(None))
    run = only(worker.ask(0, 1), Run)
    worker.ask(2, deadline=4.0)
    worker.ask(3)
    commands = worker.tell(TaskDone(run.run), at=5.0)
    run = only(commands, Run)
    assert keys(run) == [1, 3]
    refused = only(worker.tell(TaskDone(run.run), at=6.2), Refuse)
    assert (refused.key, refused.code) == (2, LATE)
    assert worker.load == 0.0


def test_one_that_nobody_waits_for_runs_along_for_nothing() -> None:
    worker = Alone(staged(None, None), recovers=True, scheduler=IN_ORDER)
    run = only(worker.ask(*range(4)), Run)
    run = only(worker.tell(TaskDone(run.run), at=1.0), Run)
    assert keys(run) == [1, 2, 3]
    worker.tell(Cancelled(1))
    worker.tell(Cancelled(3))
    assert [task.dropped for task in (worker.engine.running, *worker.engine.running.mates)] == [True, False, True]  # type: ignore[union-attr, misc]
    run = only(worker.tell(TaskDone(run.run, {0: "nobody waits"}), at=2.6), Run)
    assert (run.stage, keys(run)) == (1, [0, 2])
    assert kinds(worker.tell(TaskDone(run.run), at=4.0)) == ["Reply", "Reply"]
    assert not worker.engine.here
    assert worker.load == 0.0


@pytest.mark.parametrize("scheduler", ["compass", "jit", "heft", "hash"])
def test_every_scheduler_can_be_told_not_to(scheduler: str) -> None:
    for options, expected in (("", [1, 2, 3]), (":no-batching", [1])):
        worker = Alone(staged(None), scheduler=scheduler + options)
        run = only(worker.ask(*range(4)), Run)
        assert keys(only(worker.tell(TaskDone(run.run), at=1.0), Run)) == expected


@pytest.mark.parametrize("scheduler", ["compass", "jit", "hash"])
@pytest.mark.parametrize("seed", range(8))
def test_every_request_is_answered_once_whatever_fails_is_cancelled_or_is_lost(seed: int, scheduler: str) -> None:
    """Messages and runs take as long as chance has it."""
    workflows = (staged("a", None, "b", name="chain"), JOIN, staged("c", name="single"))
    workers = tuple(Worker(f"w{number}", 8.0) for number in range(3))
    cluster = Cluster(Scenario("few", workflows, workers), scheduler, seed=seed)
    draws, lost = np.random.default_rng([seed, 1]), -1
    failed: set[int] = set()

    def fails(run: Run) -> dict[int, str]:
        found = {position: "no luck" for position in range(1 + len(run.mates)) if draws.random() < 0.05}
        failed.update(keys(run)[position] for position in found)
        return found

    cluster.fails = fails
    cluster.copy_fails = lambda _: "no file" if draws.random() < 0.03 else None
    cluster.latency = lambda: float(draws.exponential(0.2))
    cluster.takes = lambda run: run.seconds * float(draws.exponential())
    ingress: dict[int, int] = {}
    cancelled: set[int] = set()
    for key in range(120):
        ingress[key] = int(draws.choice([worker for worker in range(3) if worker != lost]))
        cluster.ask(key, workflow=int(draws.integers(3)), ingress=ingress[key])
        cluster.run(cluster.now + float(draws.exponential(0.3)))
        if draws.random() < 0.1:
            other = int(draws.integers(key + 1))
            cancelled |= {other} - set(cluster.answers)
            if ingress[other] != lost:
                cluster.tell(ingress[other], Cancelled(other))
        if key == 60:
            lost = int(draws.integers(3))
            cluster.lose(lost)
    cluster.run()
    gone = {key for key, place in ingress.items() if place == lost and key <= 60}
    assert max(cluster.answers.values()) == 1
    assert set(cluster.answers) | cancelled | gone == set(ingress)
    assert not set(cluster.answers) & cancelled
    assert sum(len(ran.keys) > 1 for ran in cluster.ran) > 5
    assert failed & set(cluster.answers)
    assert cluster.is_quiet()
    for engine in cluster.engines:
        if engine is not None:
            assert engine.load.queued - engine.load.pace.extra == pytest.approx(0.0)
            assert engine.load.busy_until == -math.inf


def test_no_more_run_along_than_pay_although_more_wait() -> None:
    worker = Alone(staged(None, times={1: 1.0, 2: 1.2, 4: 3.0}))
    run = only(worker.ask(*range(5)), Run)
    run = only(worker.tell(TaskDone(run.run), at=1.0), Run)
    assert (keys(run), run.seconds) == ([1, 2], 1.2), "four at once would take longer than two and two"
    assert worker.load == pytest.approx(1.2 + 2.0)
    run = only(worker.tell(TaskDone(run.run), at=2.2), Run)
    assert keys(run) == [3, 4]
