"""Which stages of a workflow run several requests at once: the SLO divided among its stages, and times that pay."""

from __future__ import annotations

from fairway import Fleet, Stage, TaskGraph, Worker, Workflow
from fairway.engine.serving.batch_rule import graph_batches

CHEAP = {1: 0.1, 2: 0.12, 4: 0.16}
DEAR = {1: 0.3, 2: 0.36, 4: 0.48}


def graph(workflow: Workflow, *accelerators: str) -> TaskGraph:
    return TaskGraph.of(workflow, Fleet.of([Worker(f"w{at}", 0, kind) for at, kind in enumerate(accelerators)]))


def chain(*times: object) -> Workflow:
    stages = tuple(Stage.of(f"s{number}", each) for number, each in enumerate(times))  # type: ignore[arg-type]
    return Workflow(stages, tuple((f"s{number}", f"s{number + 1}") for number in range(len(times) - 1)))


def largest(workflow: Workflow, slo: float | None, worker: int = 0, *accelerators: str) -> list[int]:
    found = graph_batches(graph(workflow, *(accelerators or ("gpu",))), slo)
    assert found is not None
    return [1 if sizes is None else sizes[-1].requests for sizes in found[worker]]


def test_without_batch_sizes_there_is_nothing_to_look_up() -> None:
    assert graph_batches(graph(chain(0.1, {"gpu": 0.2}), "gpu")) is None
    assert graph_batches(graph(chain({"gpu": {1: 0.1, 2: 0.2}}), "gpu")) is None, "no batch of it pays"
    assert graph_batches(graph(chain({"gpu": CHEAP}), "gpu"), alone=[0]) is None
    assert graph_batches(graph(chain({"gpu": CHEAP}), "gpu"), 0.11) is None, "no batch of it is in time"


def test_each_stage_gets_its_share_of_the_slo() -> None:
    """One stage does a quarter of the work and the other three: of 0.6 s they get 0.15 and 0.45."""
    workflow = chain({"gpu": CHEAP}, {"gpu": DEAR})
    assert largest(workflow, None) == [4, 4]
    assert largest(workflow, 0.64) == [4, 4]
    assert largest(workflow, 0.6) == [2, 2]
    assert largest(workflow, 0.48) == [2, 2]


def test_branches_share_the_time_of_the_longest() -> None:
    """Beside a branch of 0.3 s, a stage of 0.1 s may take as long as that branch: half of the SLO."""
    stages = (Stage.of("start", {"gpu": DEAR}), Stage.of("short", {"gpu": CHEAP}), Stage.of("long", {"gpu": DEAR}))
    workflow = Workflow(stages, (("start", "short"), ("start", "long")))
    assert largest(workflow, 0.9) == [2, 4, 2]


def test_a_stage_that_runs_alone_leaves_the_others_their_batches() -> None:
    found = graph_batches(graph(chain({"gpu": CHEAP}, {"gpu": CHEAP}), "gpu"), alone=[1])
    assert found is not None
    assert [sizes is None for sizes in found[0]] == [False, True]


def test_workers_batch_by_the_times_of_their_own_accelerator() -> None:
    workflow = chain({"t4": {1: 0.4, 2: 0.8}, "a100": CHEAP})
    accelerators = ("t4", "a100", "t4")
    assert largest(workflow, None, 1, *accelerators) == [4]
    assert largest(workflow, None, 2, *accelerators) == [1]
    assert largest(chain({"*": CHEAP}), None, 2, *accelerators) == [4]
