"""Planning: examples worked out by hand, and every choice against the formulas, worked out in plain Python."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import _place_peer as plain
from fairway import (
    InputError,
    Links,
    Model,
    NoPlaceError,
    Plan,
    Request,
    Stage,
    StateTable,
    Worker,
    Workflow,
    placer_of,
)
from fairway.place.fleet import OUTSIDE
from fairway.place.graph import TaskGraph
from fairway.place.state import NEVER, Pushes
from tests.place.clusters import Cluster, NoDraws
from tests.workflows.edge import GPU_MEMORY, MODELS, QUESTION_ANSWERING, TRANSLATION

OPT_FETCH = Links().to_device(MODELS["opt"].bytes)
ONE_TASK = Workflow((Stage.of("t", 0.56, "opt", input_bytes=0),), models=MODELS)


def test_a_chain_on_one_warm_idle_worker_takes_its_lower_bound() -> None:
    cluster = Cluster(QUESTION_ANSWERING, 1, cached={0: ["opt", "nli"]})
    assert 1000 * cluster.latency(cluster.plan()) == pytest.approx(587, abs=1e-9)


def test_translation_takes_all_its_work_on_one_warm_worker_and_its_lower_bound_on_three() -> None:
    warm = ["opt", "marian", "mt5"]
    cluster = Cluster(TRANSLATION, 1, cached={0: warm})
    assert 1000 * cluster.latency(cluster.plan()) == pytest.approx(2584, abs=1e-9)
    cluster = Cluster(TRANSLATION, 3, cached={0: warm, 1: warm, 2: warm})
    plan = cluster.plan()
    assert 1000 * cluster.latency(plan) == pytest.approx(1365, abs=0.01)
    assert plan.order == ["t0", "t3", "t2", "t1", "t4"]
    assert len({plan.assignment[name] for name in ("t1", "t2", "t3")}) == 3


@pytest.mark.parametrize(("full", "factor"), [(False, 1), (True, 2)])
def test_a_task_leaves_a_loaded_worker_exactly_when_fetching_elsewhere_costs_less(full: bool, factor: int) -> None:
    cached = {0: ["opt"], 1: ["depth", "tts", "nli", "mt5"] if full else []}
    for load, expected in ((factor * OPT_FETCH - 1e-9, "w0"), (factor * OPT_FETCH + 1e-9, "w1")):
        cluster = Cluster(ONE_TASK, 2, cached=cached, load={0: load}, now=0.0)
        assert (cluster.table.view(OUTSIDE, 0.0).free_bytes(1) < MODELS["opt"].bytes) == full
        assert cluster.plan(ingress=1).assignment == {"t": expected}


def test_the_eviction_penalty_can_be_left_out() -> None:
    cached = {0: ["opt"], 1: ["depth", "tts", "nli", "mt5"]}
    cluster = Cluster(ONE_TASK, 2, cached=cached, load={0: 1.5 * OPT_FETCH})
    assert cluster.plan("compass", OUTSIDE).assignment == {"t": "w0"}
    assert cluster.plan("compass:eviction-penalty=0", OUTSIDE).assignment == {"t": "w1"}


def test_a_planned_model_is_fetched_once_for_two_tasks_of_the_request() -> None:
    cluster = Cluster(TRANSLATION, 1)
    models = sum(MODELS[name].bytes for name in ("opt", "marian", "mt5"))
    assert cluster.latency(cluster.plan()) == pytest.approx(2.584 + models / Links().to_device_bandwidth)
    twice = models + MODELS["mt5"].bytes
    compat = cluster.plan("compass:compat")
    assert cluster.latency(compat) == pytest.approx(2.584 + twice / Links().to_device_bandwidth)


def test_the_running_task_counts_for_what_is_left_of_it() -> None:
    cluster = Cluster(ONE_TASK, 2, cached={0: ["opt"], 1: ["opt"]}, now=10.0)
    cluster.table.write_load(0, 0.0, 10.3, 10.0)
    cluster.table.write_load(1, 0.2, NEVER, 10.0)
    assert cluster.plan(ingress=OUTSIDE).assignment == {"t": "w1"}
    cluster.now = 10.2
    assert cluster.plan(ingress=OUTSIDE).assignment == {"t": "w0"}


def test_room_that_a_planned_model_takes_is_gone_for_the_next() -> None:
    models = {name: Model(name, 6 * 10**9) for name in "ab"}
    stages = (Stage.of("s", 1.0, "a"), Stage.of("t", 1.0, "b"))
    cluster = Cluster(Workflow(stages, (("s", "t"),), models), [Worker("w", 10**10)])
    fetch = Links().to_device(6 * 10**9)
    assert cluster.latency(cluster.plan()) == pytest.approx(2.0 + fetch + 2 * fetch)


def test_a_planner_knows_its_own_row_exactly_and_the_others_as_pushed() -> None:
    cluster = Cluster(ONE_TASK, 2, now=10.0)
    cluster.table = StateTable(cluster.fleet, Pushes(delay=1.0), Pushes(delay=1.0))
    opt = cluster.fleet.model_numbers["opt"]
    cluster.table.write_cache(0, opt, True, 10.0)
    assert cluster.plan(ingress=0).assignment == {"t": "w0"}
    assert cluster.plan(ingress=1).assignment == {"t": "w1"}
    cluster.table.write_load(0, 5.0, NEVER, 10.0)
    assert cluster.plan(ingress=0).assignment == {"t": "w1"}
    cluster.now = 11.0
    cluster.table.write_load(0, 0.1, NEVER, 11.0)
    assert cluster.plan(ingress=0).assignment == {"t": "w0"}
    assert cluster.plan(ingress=1).assignment == {"t": "w1"}  # sees the model now, and still the load of 5 seconds
    cluster.now = 12.0
    assert cluster.plan(ingress=1).assignment == {"t": "w0"}


def test_equals_go_to_the_largest_input_then_to_the_ingress_then_by_chance() -> None:
    stages = (
        Stage.of("a", 1.0, input_bytes=0),
        Stage.of("b", 1.0, input_bytes=0, output_bytes=10**9),
        Stage.of("c", 1.0),
    )
    workflow = Workflow(stages, (("b", "c"),))
    cluster = Cluster(workflow, 9)
    # 'b' ranks first and stays at the ingress; 'c' stays with its input.
    plan = cluster.plan(ingress=4)
    assert plan.order[0] == "b"
    assert plan.assignment["b"] == plan.assignment["c"] == "w4"
    drawn = {cluster.plan(ingress=4, seed=seed).assignment["a"] for seed in range(100)}
    assert drawn == {f"w{number}" for number in range(9) if number != 4}
    assert cluster.plan("compass:compat", ingress=4).assignment["b"] == "w0"


def test_no_chance_is_asked_for_where_the_authors_take_the_first() -> None:
    cluster = Cluster(TRANSLATION, 3)
    view = cluster.table.view(0, cluster.now)
    placer_of("compass:compat").plan(Request(0, cluster.graph, 0), view, cluster.now, NoDraws())


def test_workers_of_one_host_need_no_network() -> None:
    size = 10**9
    stages = (Stage.of("a", 1.0, output_bytes=size), Stage.of("b", {"fast": 0.1}))
    workers = [Worker("s", 1, "slow", "one"), Worker("f1", 1, "fast", "two"), Worker("f2", 1, "fast", "one")]
    workflow = Workflow((Stage.of("a", {"slow": 1.0}, output_bytes=size), stages[1]), (("a", "b"),))
    cluster = Cluster(workflow, workers)
    plan = cluster.plan()
    assert plan.assignment == {"a": "s", "b": "f2"}
    assert cluster.latency(plan) == pytest.approx(1.1 + Links().within_host(size))
    cluster.table.leave(2)
    plan = cluster.plan()
    assert plan.assignment == {"a": "s", "b": "f1"}
    assert cluster.latency(plan) == pytest.approx(1.1 + Links().between_hosts(size))


def test_the_input_is_at_hand_for_every_worker_of_the_ingress_host() -> None:
    workflow = Workflow((Stage.of("a", {"fast": 1.0}, input_bytes=10**9),))
    workers = [Worker("s", 1, "slow", "one"), Worker("f1", 1, "fast", "two"), Worker("f2", 1, "fast", "one")]
    cluster = Cluster(workflow, workers)
    plan = cluster.plan(ingress=0)
    assert plan.assignment == {"a": "f2"}
    assert cluster.latency(plan) == pytest.approx(1.0)


def test_a_faster_accelerator_is_worth_waiting_for() -> None:
    workflow = Workflow((Stage.of("a", {"a100": 0.2, "t4": 1.0}),))
    cluster = Cluster(workflow, [Worker("slow", 1, "t4"), Worker("fast", 1, "a100")], load={1: 0.7})
    assert cluster.plan().assignment == {"a": "fast"}
    cluster.table.write_load(1, 0.9, NEVER, cluster.now)
    assert cluster.plan().assignment == {"a": "slow"}


def test_ranks_count_the_mean_over_the_workers_that_can_run_a_stage() -> None:
    stages = (Stage.of("a", {"x": 1.0, "y": 4.0}), Stage.of("b", {"x": 2.0}, "opt"))
    workflow = Workflow(stages, models=MODELS)
    workers = [Worker("1", GPU_MEMORY, "x"), Worker("2", GPU_MEMORY, "y"), Worker("3", 5, "x")]
    graph = TaskGraph.of(workflow, Cluster(workflow, workers).fleet)
    assert graph.ranks.tolist() == [2.0, 2.0]
    assert graph.runnable.tolist() == [[True, True, True], [True, False, False]]


def test_models_of_one_stage_need_room_together() -> None:
    models = {name: Model(name, 6) for name in "ab"}
    workflow = Workflow((Stage.of("t", 1.0, models=["a", "b"]),), models=models)
    cluster = Cluster(workflow, [Worker("small", 11), Worker("large", 12)])
    assert cluster.plan().assignment == {"t": "large"}
    with pytest.raises(InputError, match=r"\('t'\): 'a' and 'b' with 12 bytes fits in the memory of no worker"):
        Cluster(workflow, [Worker("small", 11)])


def test_more_than_64_models_are_no_limit() -> None:
    models = {f"m{number}": Model(f"m{number}", 10**9) for number in range(200)}
    workflow = Workflow((Stage.of("t", 1.0, "m150"),), models=models)
    cluster = Cluster(workflow, 3, cached={0: ["m149"], 1: ["m150"], 2: ["m22"]})
    assert cluster.plan().assignment == {"t": "w1"}


def test_the_rest_of_a_request_is_planned_again_from_where_its_parts_are() -> None:
    warm = ["opt", "marian", "mt5"]
    cluster = Cluster(TRANSLATION, 4, cached=dict.fromkeys(range(4), warm))
    first = cluster.plan()
    lost = int(first.workers[3])
    cluster.table.leave(lost)
    # t0 is done, t1 still where it was, the others are planned anew.
    workers, finish = np.full(5, -1), np.full(5, np.nan)
    workers[:2] = [0, first.workers[1]]
    finish[0] = first.finish[0]
    again = cluster.plan(kept=Plan(cluster.graph, workers, finish))
    assert again.finish[0] == first.finish[0]
    assert again.workers[:2].tolist() == workers[:2].tolist()
    assert lost not in again.workers[1:]
    assert again.finish[3] >= again.finish[0] + 0.803


def test_a_request_without_a_place_is_refused_with_the_stage() -> None:
    cluster = Cluster(QUESTION_ANSWERING, [Worker("large", GPU_MEMORY), Worker("small", MODELS["nli"].bytes)])
    cluster.table.leave(0)
    for scheduler in ("compass", "heft", "hash", "jit"):
        with pytest.raises(NoPlaceError, match="request 1: stage 't0' can run on 1 of 2 workers, and none of these"):
            cluster.plan(scheduler, ingress=1)


def test_heft_sees_neither_loads_nor_memories() -> None:
    cluster = Cluster(ONE_TASK, 3, cached={1: ["opt"]}, load={2: 5.0})
    assert cluster.plan("heft", ingress=2).assignment == {"t": "w2"}
    assert cluster.plan("compass", ingress=2).assignment == {"t": "w1"}
    assert cluster.plan("compass:ignore-load,ignore-cache", ingress=2).assignment == {"t": "w2"}


@st.composite
def clusters(draw: st.DrawFn) -> Cluster:
    """Any graph of stages with at most one model each, on workers in any state."""
    models = {
        f"m{number}": Model(f"m{number}", draw(st.integers(1, 10**10))) for number in range(draw(st.integers(1, 5)))
    }
    count = draw(st.integers(1, 6))
    stages = tuple(
        Stage.of(
            f"s{number}",
            draw(st.floats(0, 2)),
            draw(st.sampled_from([None, *models])),
            input_bytes=draw(st.integers(0, 10**8)),
            output_bytes=draw(st.integers(0, 10**8)),
        )
        for number in range(count)
    )
    edges = [(a, b) for b in range(count) for a in range(b) if draw(st.booleans())]
    workflow = Workflow(stages, tuple((f"s{a}", f"s{b}") for a, b in edges), models)
    workers = draw(st.integers(1, 6))
    memory = max(model.bytes for model in models.values()) * draw(st.sampled_from([1.0, 1.5, 2.5]))
    cached = {worker: draw(st.sets(st.sampled_from([*models]))) for worker in range(workers)}
    kept = {
        worker: [name for name in held if sum(models[each].bytes for each in held) <= memory]
        for worker, held in cached.items()
    }
    load = {worker: draw(st.sampled_from([0.0, 0.5]) | st.floats(0, 3)) for worker in range(workers)}
    return Cluster(workflow, [Worker(f"w{number}", memory) for number in range(workers)], cached=kept, load=load)


@given(clusters(), st.integers(0, 5), st.integers(0, 9))
def test_every_choice_is_the_best_one_by_the_formulas(cluster: Cluster, ingress: int, seed: int) -> None:
    ingress %= len(cluster.fleet)
    plan = cluster.plan(ingress=ingress, seed=seed)
    view = cluster.table.view(ingress, cluster.now)
    names = [worker.name for worker in cluster.fleet.workers]
    held = {
        name: frozenset(model.name for m, model in enumerate(cluster.fleet.models) if view.holds(number, m))
        for number, name in enumerate(names)
    }
    known = plain.PlainCluster(
        load={name: view.load(number, cluster.now) for number, name in enumerate(names)},
        cached=held,
        free={name: view.free_bytes(number) for number, name in enumerate(names)},
        links=cluster.fleet.links,
    )
    draws = random.Random(0)
    judged = plain.plan(cluster.workflow, plan.order, known, names[ingress], cluster.now, draws, plan.assignment)
    for task, finish in plan.finish_seconds.items():
        assert finish == pytest.approx(judged.finish[task], rel=1e-12)
        assert finish <= min(judged.considered[task].values()) * (1 + 1e-12)
