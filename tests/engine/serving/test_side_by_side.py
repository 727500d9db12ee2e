"""Workers that are divided: tasks run beside each other, each on its share and with copies of its models to itself."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fairway import Configuration, Fleet, Model, Profile, Stage, TaskGraph, Worker, Workflow
from fairway.engine.protocol import like
from fairway.engine.serving.flow import Flow
from fairway.engine.serving.messages import (
    FAILED,
    HIT,
    LATE,
    MISS,
    PARTIAL,
    UNPLACEABLE,
    BatchArrived,
    BatchDone,
    Evict,
    Load,
    ModelFailed,
    ModelLoaded,
    PublishLoad,
    Refuse,
    Reply,
    RequestArrived,
    Run,
    Send,
    TaskDone,
    TimePassed,
    Warm,
)
from fairway.links import NO_TRANSFERS
from fairway.place.fleet import OUTSIDE
from fairway.place.plan import Request
from fairway.sim.scenario import Scenario
from tests.engine.serving.driver import Cluster
from tests.engine.serving.test_engine import Single, only

MODELS = {name: Model(name, 10, 1.0) for name in ("a", "b", "c")}


def single(name: str, *models: str, seconds: float = 1.0) -> Workflow:
    return Workflow((replace(Stage.of("only", seconds), models=models),), (), MODELS, name)


PLAIN, ALPHA, BETA, BOTH = single("plain"), single("alpha", "a"), single("beta", "b"), single("both", "a", "b")


class Divided(Single):
    """One worker of four CPUs and three slices, whose engine a test talks to; it tells what share a workflow holds."""

    def __init__(self, *asked: tuple[Workflow, tuple[int, int]], memory: float = 1000.0, **options: Any) -> None:
        fleet = Fleet.of([Worker("w0", memory, "gpu", None, 4, 3)], MODELS.values(), NO_TRANSFERS)
        self.graphs = [TaskGraph.of(workflow, fleet) for workflow, _ in asked]
        shares = {graph: (share,) for graph, (_, share) in zip(self.graphs, asked, strict=True)}
        super().__init__(fleet=fleet, shares=shares, **options)

    def ask(self, *keys: int, workflow: int = 0, deadline: float = math.inf) -> list[Any]:
        return [each for key in keys for each in self.tell(RequestArrived(key, self.graphs[workflow], deadline))]

    @property
    def free(self) -> tuple[int, int]:
        return self.engine.free_cpu, self.engine.free_gpu


def keys(commands: list[Any]) -> list[int]:
    """The requests of the runs that begin."""
    return [command.flow.request.key for command in commands if isinstance(command, Run)]


# Shares


def test_as_many_tasks_run_as_there_is_room_for() -> None:
    worker = Divided((PLAIN, (2, 1)))
    runs = worker.ask(0, 1, 2)
    assert keys(runs) == [0, 1]
    assert worker.free == (0, 1)
    assert len(worker.engine.queue) == 1
    commands = worker.tell(TaskDone(runs[1].run), at=1.0)
    assert commands[0] == Reply(1, 1.0)
    assert keys(commands) == [2]
    worker.tell(TaskDone(runs[0].run))
    assert worker.tell(TaskDone(only(commands, Run).run), at=2.0) == [Reply(2, 2.0)]
    assert worker.free == (4, 3)
    assert worker.tell(TaskDone(runs[0].run), at=3.0) == [], "it has ended before"


def test_a_large_task_at_the_head_of_the_line_is_not_held_up_by_small_ones_behind_it() -> None:
    worker = Divided((PLAIN, (1, 1)), (single("large"), (4, 3)))
    running = worker.ask(0, 1)
    worker.ask(2, workflow=1)
    assert worker.ask(3, 4) == [], "there is room for them, but it is not their turn"
    assert worker.free == (2, 1)
    assert worker.tell(TaskDone(running[0].run), at=1.0) == [Reply(0, 1.0)]
    commands = worker.tell(TaskDone(running[1].run), at=1.5)
    assert keys(commands) == [2]
    assert keys(worker.tell(TaskDone(only(commands, Run).run), at=2.5)) == [3, 4]


def test_a_task_without_a_share_of_its_own_has_the_whole_worker() -> None:
    worker = Divided((PLAIN, (1, 1)))
    graph = worker.graph(single("whole"))
    first = only(worker.tell(RequestArrived(0, graph)), Run)
    assert worker.free == (0, 0)
    assert worker.ask(1) == []
    assert keys(worker.tell(TaskDone(first.run), at=1.0)) == [1]


def test_the_load_is_what_tasks_take_of_the_whole_worker() -> None:
    worker = Divided((single("long", seconds=6.0), (1, 1)), publishes=True)
    worker.ask(0)
    assert worker.engine.view().load(0, 0.0) == pytest.approx(2.0), "six seconds on a third of it"
    worker.ask(1, 2)
    assert worker.engine.view().load(0, 0.0) == pytest.approx(6.0)
    (told,) = worker.ask(3)
    assert told == like(PublishLoad, queued=2.0)
    assert worker.engine.view().load(0, 1.0) == pytest.approx(7.0)


def test_a_task_whose_time_is_over_has_no_turn() -> None:
    worker = Divided((PLAIN, (4, 1)))
    (run,) = worker.ask(0)
    worker.ask(1, deadline=2.5)
    worker.ask(2)
    commands = worker.tell(TaskDone(run.run), at=3.0)
    assert like(Refuse, key=1, code=LATE) in commands
    assert keys(commands) == [2]


# Copies


def test_each_running_task_has_a_copy_of_its_model_to_itself() -> None:
    worker = Divided((ALPHA, (1, 1)))
    first, second = worker.ask(0, 1)
    assert (first, second) == (like(Load, model=0), like(Load, model=0))
    assert worker.free == (2, 1), "a task holds its share while its model comes"
    run = only(worker.tell(ModelLoaded(second.copy, 0), at=1.0), Run)
    assert (run.flow.request.key, run.found, run.turn) == (0, MISS, 0.0), "the one that has waited longest has it"
    only(worker.tell(ModelLoaded(first.copy, 0), at=1.1), Run)
    worker.tell(TaskDone(run.run), at=2.0)
    assert only(worker.ask(2), Run).found == HIT
    assert worker.engine.memory.copies(0) == 2


def test_a_task_waits_until_memory_has_a_copy_for_it() -> None:
    """There is memory for one copy: the second task has its share free, but no copy to itself."""
    worker = Divided((ALPHA, (1, 1)), memory=10.0)
    (load,) = worker.ask(0)
    assert worker.ask(1) == []
    run = only(worker.tell(ModelLoaded(load.copy, 0), at=1.0), Run)
    assert worker.free == (3, 2)
    commands = worker.tell(TaskDone(run.run), at=2.0)
    assert (keys(commands), only(commands, Run).found) == ([1], HIT)


def test_an_idle_copy_goes_for_one_that_is_needed_and_a_busy_one_does_not() -> None:
    worker = Divided((ALPHA, (1, 1)), (BETA, (1, 1)), memory=10.0)
    (load,) = worker.ask(0)
    run = only(worker.tell(ModelLoaded(load.copy, 0), at=1.0), Run)
    assert worker.ask(1, workflow=1) == []
    commands = worker.tell(TaskDone(run.run), at=2.0)
    assert commands == [Reply(0, 2.0), Evict(0), like(Load, model=1)]


def test_a_task_waits_for_a_copy_under_way_that_has_to_go_for_its_own() -> None:
    """A copy on its way for no task can go once it is there, and not before; the task does not fail for that."""
    worker = Divided((ALPHA, (1, 1)), (BETA, (1, 1)), memory=10.0)
    (load,) = worker.tell(Warm(0, ahead=False, number=1))
    assert load == like(Load, model=0, why="job")
    assert worker.ask(1, workflow=1) == []
    assert worker.tell(ModelLoaded(load.copy, 0), at=1.0)[:1] == [Evict(0)]  # type: ignore[union-attr]


def test_a_task_takes_over_a_copy_that_is_on_its_way() -> None:
    worker = Divided((ALPHA, (1, 1)))
    (load,) = worker.tell(Warm(0, ahead=True, number=1))
    assert worker.ask(0) == []
    run = only(worker.tell(ModelLoaded(load.copy, 0), at=1.0), Run)  # type: ignore[union-attr]
    assert run.found == PARTIAL
    assert worker.engine.memory.copies(0) == 1


def test_a_copy_that_fails_fails_the_task_that_waited_longest_and_no_other() -> None:
    worker = Divided((ALPHA, (1, 1)))
    first, second = worker.ask(0, 1)
    commands = worker.tell(ModelFailed(second.copy, 0, "no file"), at=0.5)
    assert commands == [Refuse(0, "no file", FAILED)]
    assert worker.free == (3, 2)
    assert keys(worker.tell(ModelLoaded(first.copy, 0), at=1.0)) == [1]


@pytest.mark.parametrize("fails", [0, 1])
def test_a_task_that_fails_for_one_model_lets_go_of_its_others(fails: int) -> None:
    worker = Divided((BOTH, (1, 1)), (ALPHA, (1, 1)), (BETA, (1, 1)))
    loads = [command for command in worker.ask(0) if isinstance(command, Load)]
    assert [load.model for load in loads] == [0, 1]
    failing, other = loads[fails], loads[1 - fails]
    refused = worker.tell(ModelFailed(failing.copy, failing.model, "no file"), at=0.1)
    assert refused == [Refuse(0, "no file", FAILED)]
    worker.tell(ModelLoaded(other.copy, other.model), at=0.2)
    assert worker.engine.memory.idle(other.model) == 1, "the other copy came for nobody"
    worker.ask(1)
    assert only(worker.ask(2, workflow=1 + other.model), Run | Load) == like(Load, model=other.model)


def test_a_copy_that_came_before_another_failed_is_idle_again() -> None:
    worker = Divided((BOTH, (1, 1)))
    first, second = worker.ask(0)
    worker.tell(ModelLoaded(first.copy, 0), at=0.1)
    worker.tell(ModelFailed(second.copy, 1, "no file"), at=0.2)
    assert worker.engine.memory.idle(0) == 1
    assert worker.engine.beside == {}


def test_a_task_whose_models_can_never_fit_is_refused() -> None:
    worker = Divided((ALPHA, (1, 1)), (BETA, (1, 1)), memory=10.0)
    (load,) = worker.tell(Warm(0, ahead=False, number=1))
    worker.tell(ModelLoaded(load.copy, 0), at=1.0)  # type: ignore[union-attr]
    worker.engine.memory.pin(0)
    assert worker.ask(1, workflow=1) == [like(Refuse, key=1, code=UNPLACEABLE)]
    assert worker.free == (4, 3)


# Planned batches


def batch(worker: Single, workflow: Workflow, *asked: int, number: int = 0, share: tuple[int, int] = (1, 1)) -> Any:
    """A batch that an engine has planned for a worker."""
    graph = worker.graph(workflow)
    flows = tuple(Flow(Request(key, graph, OUTSIDE, None, math.inf, False), graph, [-1]) for key in asked)
    return BatchArrived(number, OUTSIDE, flows, 0, Configuration(len(asked), *share), 2.0)


def test_a_planned_batch_runs_on_its_share_and_ends_as_one() -> None:
    worker = Divided((PLAIN, (1, 1)))
    run = only(worker.tell(batch(worker, PLAIN, 4, 5, 6, share=(3, 2))), Run)
    assert (run.seconds, [mate.flow.request.key for mate in run.mates]) == (2.0, [5, 6])
    assert worker.free == (1, 1)
    done = worker.tell(TaskDone(run.run, {1: "no luck"}, 1.9), at=2.0)
    assert done == [Send(OUTSIDE, BatchDone(0, 0, 1.9, {1: "no luck"}))]
    assert worker.free == (4, 3)


def test_how_long_a_batch_ran_is_counted_from_when_its_model_was_there() -> None:
    worker = Divided((PLAIN, (1, 1)))
    (load,) = worker.tell(batch(worker, ALPHA, 0))
    run = only(worker.tell(ModelLoaded(load.copy, 0), at=10.0), Run)  # type: ignore[union-attr]
    (told,) = worker.tell(TaskDone(run.run), at=12.5)
    assert told == like(Send, message=like(BatchDone, seconds=2.5))


def test_a_failed_copy_fails_its_batch_alone() -> None:
    worker = Divided((PLAIN, (1, 1)))
    first, second = (only(worker.tell(batch(worker, ALPHA, key, key + 10, number=key)), Load) for key in (0, 1))
    (told,) = worker.tell(ModelFailed(first.copy, 0, "no file"), at=0.5)
    assert told == Send(OUTSIDE, BatchDone(0, 0, 0.0, {0: "no file", 1: "no file"}))
    assert only(worker.tell(ModelLoaded(second.copy, 0), at=1.0), Run).batch == like(BatchArrived, number=1)


def test_one_copy_of_a_model_is_one_miss() -> None:
    worker = Divided((PLAIN, (1, 1)))
    load = only(worker.tell(batch(worker, ALPHA, 0, 1, 2)), Load)
    run = only(worker.tell(ModelLoaded(load.copy, 0), at=1.0), Run)
    assert [run.found, *(mate.found for mate in run.mates)] == [MISS, PARTIAL, PARTIAL]


def test_batches_are_not_batched_once_more() -> None:
    """With a desk, what workers could run together is of no account: the desk has decided."""
    stage = Stage.of("only", {"gpu": {1: 1.0, 2: 1.1}})
    workflow = Workflow((stage,), (), {}, "one")
    scenario = Scenario("one", (workflow,), (Worker("w0", 1),), slo_seconds={"one": 9.0})
    cluster = Cluster(scenario, "esg+compass")
    assert cluster.options.batches, "without a configurator, the worker would"
    cluster.ask(0)
    cluster.run(0.0)
    (request,) = cluster.desk.open.values()
    for number in (100, 101):
        cluster.put(0, BatchArrived(number, OUTSIDE, (request.flow,), 0, Configuration(1, 1, 1), 1.0))
    cluster.run(1.5)
    assert [ran.run.mates for ran in cluster.ran] == [(), ()]
    assert len(cluster.worker(0).queue) == 1


# Time


def test_the_pace_of_a_worker_is_known_from_what_its_tasks_took() -> None:
    worker = Divided((PLAIN, (2, 1)), watches_time=True)
    for key in range(10):
        (run,) = worker.ask(key)
        worker.tell(TaskDone(run.run, seconds=4.0), at=worker.now + 4.0)
    assert worker.engine.load.pace.factor > 2.0
    assert worker.engine.due == worker.now + 2.0
    for _ in range(60):
        worker.tell(TimePassed(), at=worker.engine.due if worker.engine.due < math.inf else worker.now + 1.0)
    assert worker.engine.load.pace.extra == 0.0
    assert worker.engine.due == math.inf


# Chance

SIZES = Profile.of(
    {
        Configuration(batch, cpu, gpu): 0.2 / cpu + 0.1 * batch / gpu
        for batch in (1, 2, 4)
        for cpu in (1, 2)
        for gpu in (1, 2)
    }
)


def overbooked(cluster: Cluster) -> list[str]:
    """The moments at which runs held more of a worker than there is, from what was asked of it alone."""
    found = []
    for number, worker in enumerate(cluster.fleet.workers):
        mine = [ran for ran in cluster.ran if ran.worker == number]
        for moment in [ran.start for ran in mine]:
            there = [ran.run for ran in mine if ran.start <= moment < ran.end]
            shares = [
                cluster.options.shares[run.flow.graph][run.stage] if run.batch is None else run.batch.configuration[1:]
                for run in there
            ]
            cpus, slices = (sum(share[at] for share in shares) for at in (0, 1))
            if cpus > worker.cpus or slices > worker.slices:
                found.append(f"{cpus} CPUs and {slices} slices of worker {number} at {moment}")
    return found


@pytest.mark.parametrize("scheduler", ["compass", "jit", "hash", "heft", "esg", "infless", "front+compass"])
@pytest.mark.parametrize("seed", range(4))
def test_shares_are_never_overbooked_and_no_request_waits_for_ever(seed: int, scheduler: str) -> None:
    draws = np.random.default_rng(seed)
    stages = tuple(Stage.of(name, 0.3, model) for name, model in (("x", "a"), ("y", "b"), ("z", None)))
    workflow = Workflow(stages, (("x", "y"), ("x", "z")), MODELS, "fork")
    workers = tuple(Worker(f"w{number}", 30, "gpu", None, 5, 4) for number in range(2))
    scenario = Scenario(
        "fork", (workflow,), workers, NO_TRANSFERS, slo_seconds={"fork": 1.0}, profiles={"fork": (SIZES,) * 3}
    )
    cluster = Cluster(scenario, scheduler, seed=seed)
    cluster.latency = lambda: float(draws.choice([0.0, 0.05]))
    for key in range(60):
        cluster.ask(key, at=float(draws.uniform(0.0, 5.0)), ingress=int(draws.integers(2)))
    cluster.run()
    assert cluster.replies.keys() == set(range(60))
    assert overbooked(cluster) == []
    assert cluster.is_quiet()
    beside = [
        sum(other.worker == ran.worker and other.start <= ran.start < other.end for other in cluster.ran)
        for ran in cluster.ran
    ]
    assert max(beside) > 1
