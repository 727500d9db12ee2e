"""Schedulers by name, and what each of them asks of the workers."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from fairway import PLACERS, InputError, Placer, Plan, Request, Stage, Workflow, placer_of
from fairway.place.memory import MemoryPolicy
from fairway.place.placers.compass import Compass
from fairway.place.plan import NoPlaceError
from fairway.place.spread import spread_worker
from tests.place.clusters import Cluster, NoDraws
from tests.workflows.edge import TRANSLATION


def test_there_are_compass_and_its_baselines() -> None:
    assert list(PLACERS) == ["compass", "jit", "heft", "hash", "fairway"]
    for name in PLACERS:
        scheduler = placer_of(name)
        assert scheduler.name == name
        assert isinstance(scheduler, Placer)


def test_options_are_written_after_the_name() -> None:
    assert placer_of("compass:no-adjust,theta=2.5,fifo-eviction") == Compass(
        theta=2.5, no_adjust=True, fifo_eviction=True
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("compas", "scheduler 'compas' is not known, did you mean 'compass'?; known: compass, jit, heft, hash"),
        ("compass:no-adjst", "scheduler 'compass' has no option 'no-adjst', did you mean 'no-adjust'?"),
        ("compass:theta", "scheduler 'compass': 'theta' given, expected 'theta=VALUE'"),
        ("compass:theta=x", "scheduler 'compass': theta: 'x' given, expected a number >= 0"),
        ("hash:theta=1", "scheduler 'hash' has no option 'theta'"),
    ],
)
def test_what_is_not_known_is_refused(text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        placer_of(text)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        ("compass", {"memory": MemoryPolicy("look-ahead", 1, 3, replaces=True), "running_load": "decays"}),
        ("compass", {"gathers_joins": False, "overtakes": True}),
        ("compass:no-replacing,no-overtaking", {"memory": MemoryPolicy("look-ahead", 1, 3), "overtakes": False}),
        ("compass:fifo-eviction", {"memory": MemoryPolicy("fifo", 0, 0)}),
        ("compass:no-prefetch", {"memory": MemoryPolicy("look-ahead", 0, 0)}),
        ("compass:centralised", {"centralised": True}),
        ("compass:compat", {"memory": MemoryPolicy("fifo", 0, 0), "running_load": "ignored", "centralised": False}),
        ("compass:count-running", {"running_load": "counts"}),
        ("jit", {"memory": MemoryPolicy("look-ahead", 0, 0), "gathers_joins": True, "overtakes": False}),
        ("jit:prefetch", {"memory": MemoryPolicy("look-ahead", 1, 3), "gathers_joins": True}),
        ("heft", {"memory": MemoryPolicy("look-ahead", 0, 0), "gathers_joins": False}),
        ("hash:compat", {"memory": MemoryPolicy("fifo", 0, 0)}),
    ],
)
def test_rules_for_the_workers(text: str, rules: dict[str, Any]) -> None:
    found = placer_of(text).rules
    assert {name: getattr(found, name) for name in rules} == rules


def test_hash_spreads_evenly_without_chance_and_the_same_everywhere() -> None:
    cluster = Cluster(TRANSLATION, 10, load={3: 100.0})
    counts: Counter[int] = Counter()
    for key in range(2000):
        request = Request(key, cluster.graph, key % 10)
        first = placer_of("hash").plan(request, cluster.table.view(key % 10, 0.0), 0.0, NoDraws())
        again = placer_of("hash").plan(request, cluster.table.view(2, 0.0), 0.0, NoDraws())
        assert first.workers.tolist() == again.workers.tolist()
        counts.update(first.workers.tolist())
    # 10,000 tasks on 10 workers: 1,000 each, give or take five standard deviations.
    assert all(850 < counts[worker] < 1150 for worker in range(10))


def by_hand(key: int, stage: int, workers: int) -> int:
    """The finisher of SplitMix64, over a number made of both."""
    mask = 2**64 - 1
    mixed = (key * 0x9E3779B97F4A7C15 + stage * 0xD1B54A32D192ED03 + 0x632BE59BD9B4E019) & mask
    mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & mask
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & mask
    return int(mixed ^ (mixed >> 31)) % workers


@pytest.mark.parametrize("key", [0, 1, 2**40 + 7, 2**63 - 1])
def test_hash_is_the_same_in_every_run_and_at_every_hop(key: int) -> None:
    cluster = Cluster(TRANSLATION, 7)
    request, view = Request(key, cluster.graph, 0), cluster.table.view(0, 0.0)
    expected = [by_hand(key, stage, 7) for stage in range(len(TRANSLATION))]
    assert placer_of("hash").plan(request, view, 0.0, NoDraws()).workers.tolist() == expected
    assert [spread_worker(request, stage, view) for stage in range(len(TRANSLATION))] == expected


def test_hash_needs_no_times_and_places_an_untimed_request_alike() -> None:
    cluster = Cluster(TRANSLATION, 7, load={2: 100.0})
    cluster.table.leave(5)
    for key in range(50):
        request, view = Request(key, cluster.graph, 0), cluster.table.view(0, 0.0)
        timed = placer_of("hash").plan(request, view, 0.0, NoDraws())
        untimed = placer_of("hash").plan(request._replace(untimed=True), view, 0.0, NoDraws())
        assert untimed.workers.tolist() == timed.workers.tolist()
        assert (len(untimed.finish), len(timed.finish)) == (0, len(TRANSLATION))
        again = placer_of("hash").plan(request._replace(untimed=True, kept=timed), view, 0.0, NoDraws())
        assert again.finish.tolist() == timed.finish.tolist()
    for worker in range(7):
        cluster.table.leave(worker)
    with pytest.raises(NoPlaceError, match="stage 't0' can run on 7 of 7 workers, and none of these is there"):
        placer_of("hash").plan(Request(0, cluster.graph, untimed=True), cluster.table.view(0, 0.0), 0.0, NoDraws())


def test_a_key_of_any_size_has_a_worker() -> None:
    cluster = Cluster(TRANSLATION, 7)
    request = Request(2**100 + 3, cluster.graph, 0)
    plan = placer_of("hash").plan(request, cluster.table.view(0, 0.0), 0.0, NoDraws())
    assert plan.workers.tolist() == [by_hand(3, stage, 7) for stage in range(len(TRANSLATION))]


def test_the_authors_hash_draws_one_number_for_each_task() -> None:
    class Numbers:
        drawn = 0

        def random(self) -> float:
            self.drawn += 1
            return (self.drawn - 0.5) / 10

    cluster, numbers = Cluster(TRANSLATION, 10), Numbers()
    request = Request(0, cluster.graph, 0)
    plan = placer_of("hash:compat").plan(request, cluster.table.view(0, 0.0), 0.0, numbers)
    assert plan.workers.tolist() == [0, 1, 2, 3, 4]
    assert numbers.drawn == 5


def test_heft_puts_a_chain_at_the_ingress_and_spills_what_is_parallel() -> None:
    cluster = Cluster(TRANSLATION, 5, load={2: 9.0})
    plan = cluster.plan("heft", ingress=2)
    assert plan.assignment["t0"] == plan.assignment["t3"] == plan.assignment["t4"] == "w2"
    assert len(set(plan.workers.tolist())) == 3
    assert "w2" not in cluster.plan("heft:load-aware", ingress=2).assignment.values()


@pytest.mark.parametrize("scheduler", ["hash", "heft", "compass", "fairway"])
@pytest.mark.parametrize("worker", range(3))
def test_a_task_that_has_a_worker_keeps_it_whichever_it_is(scheduler: str, worker: int) -> None:
    graph = Workflow((Stage.of("a", 0.5), Stage.of("b", 0.5)), (("a", "b"),))
    cluster = Cluster(graph, 3)
    for key in range(8):
        request = Request(key, cluster.graph, 0)
        kept = Plan(cluster.graph, np.array([worker, -1]), np.full(2, np.nan))
        plan = placer_of(scheduler).plan(
            request._replace(kept=kept), cluster.table.view(0, 0.0), 0.0, np.random.default_rng(0)
        )
        assert plan.workers[0] == worker
