"""Adjustment on the way: when a task moves, where to, and what never moves."""

from __future__ import annotations

import pytest

from fairway import Links, Stage, Worker, Workflow
from fairway.place.state import NEVER
from tests.place.clusters import Cluster
from tests.workflows.edge import MODELS, TRANSLATION

CHAIN = Workflow((Stage.of("a", 0.1), Stage.of("b", 0.4, "nli", input_bytes=10)), (("a", "b"),), MODELS)
WARM = {number: ["nli"] for number in range(3)}


@pytest.mark.parametrize(("load", "moves"), [(0.6, False), (0.6000001, True)])
def test_a_task_moves_only_if_more_than_theta_times_its_run_time_waits(load: float, moves: bool) -> None:
    cluster = Cluster(CHAIN, 3, cached=WARM, load={0: 0.2, 1: load})
    assert cluster.next_worker("b", planned=1) == (2 if moves else 1)


def test_theta_is_an_option_and_adjustment_can_be_left_out() -> None:
    cluster = Cluster(CHAIN, 3, cached=WARM, load={0: 0.2, 1: 0.7})
    assert cluster.next_worker("b", planned=1, scheduler="compass:theta=2") == 1
    assert cluster.next_worker("b", planned=1, scheduler="compass:theta=1") == 2
    assert cluster.next_worker("b", planned=1, scheduler="compass:no-adjust") == 1
    assert cluster.next_worker("b", planned=1, scheduler="heft") == 1
    assert cluster.next_worker("b", planned=1, scheduler="hash") == 1


def test_a_join_never_moves() -> None:
    cluster = Cluster(TRANSLATION, 3, load={1: 100.0})
    assert cluster.next_worker("t4", planned=1) == 1
    assert cluster.next_worker("t4", planned=1, scheduler="jit") == 1
    assert cluster.next_worker("t3", planned=1) != 1


def test_jit_moves_a_join_once_its_inputs_are_together() -> None:
    cluster = Cluster(TRANSLATION, 3, load={1: 100.0, 2: 1.0})
    assert cluster.next_worker("t4", planned=1, scheduler="jit", me=1, gathered=True) == 0


def test_jit_stays_with_an_idle_default_and_leaves_a_busy_one() -> None:
    cluster = Cluster(CHAIN, 3, cached={2: ["nli"]})
    assert cluster.next_worker("b", planned=1, scheduler="jit") == 1
    cluster.table.write_load(1, 1e-6, NEVER, cluster.now)
    assert cluster.next_worker("b", planned=1, scheduler="jit") == 2


@pytest.mark.parametrize(("full", "factor"), [(False, 1), (True, 2)])
def test_it_moves_to_where_load_and_fetch_together_are_least(full: bool, factor: int) -> None:
    fetch = factor * Links().to_device(MODELS["nli"].bytes) + Links().network(10)
    others = ["opt", "depth", "tts"] if full else []
    for difference, expected in ((-1e-6, 0), (1e-6, 2)):
        cluster = Cluster(CHAIN, 3, cached={0: ["nli"], 2: others}, load={0: fetch + difference, 1: 9.0})
        assert cluster.next_worker("b", planned=1, me=0) == expected


def test_equals_go_to_the_sender_then_to_the_planned_worker_then_by_chance() -> None:
    workflow = Workflow((Stage.of("a", 0.1), Stage.of("b", 0.4, input_bytes=0)), (("a", "b"),))
    workers = [Worker(f"w{number}", 1, host="one") for number in range(6)]
    cluster = Cluster(workflow, workers, load=dict.fromkeys(range(6), 1.0))
    assert {cluster.next_worker("b", planned=3, me=5, seed=seed) for seed in range(20)} == {5}
    cluster.table.write_load(5, 2.0, NEVER, cluster.now)
    assert {cluster.next_worker("b", planned=3, me=5, seed=seed) for seed in range(20)} == {3}
    cluster.table.write_load(3, 2.0, NEVER, cluster.now)
    assert {cluster.next_worker("b", planned=3, me=5, seed=seed) for seed in range(60)} == {0, 1, 2, 4}
    assert cluster.next_worker("b", planned=3, me=5, scheduler="compass:compat") == 0


def test_a_task_leaves_a_worker_that_is_gone_even_without_adjustment() -> None:
    cluster = Cluster(CHAIN, 3, cached={2: ["nli"]})
    cluster.table.leave(1)
    for scheduler in ("compass", "compass:no-adjust", "jit"):
        assert cluster.next_worker("b", planned=1, scheduler=scheduler) == 2
    assert cluster.next_worker("b", planned=1, scheduler="heft") in {0, 2}


def test_all_senders_of_a_join_find_the_same_worker_when_the_planned_one_is_gone() -> None:
    cluster = Cluster(TRANSLATION, 6, load={3: 4.0})
    cluster.table.leave(1)
    for scheduler in ("compass", "heft", "hash", "jit"):
        targets = {cluster.next_worker("t4", planned=1, me=me, scheduler=scheduler) for me in (0, 2, 3, 4, 5)}
        assert len(targets) == 1
        assert 1 not in targets


def test_a_worker_of_the_same_host_needs_no_network() -> None:
    workflow = Workflow((Stage.of("a", 0.1), Stage.of("b", 0.4, input_bytes=10**9)), (("a", "b"),))
    workers = [Worker(f"w{number}", 1, host=f"h{number % 2}") for number in range(4)]
    cluster = Cluster(workflow, workers, load={0: 9.0, 1: 9.0, 2: 0.05, 3: 0.0})
    assert cluster.next_worker("b", planned=1, me=0) == 2
    cluster.table.write_load(2, 0.5, NEVER, cluster.now)
    assert cluster.next_worker("b", planned=1, me=0) == 3
