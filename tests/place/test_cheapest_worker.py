"""Where one task ends first, against the formula worked out plainly; and what plans keep back, by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.place.fleet import Fleet, Worker
from fairway.place.kernels import cheapest_worker
from fairway.place.stage_plan import StagePlan, typical
from fairway.workflows import Stage, Workflow

MODELS, WORKERS = 4, 4


@given(seed=st.integers(0, 10**6), counts_cache=st.booleans(), here=st.booleans())
def test_a_task_goes_where_load_input_fetch_and_run_take_least_together(
    seed: int, counts_cache: bool, here: bool
) -> None:
    rng = np.random.default_rng(seed)
    me, now = (int(rng.integers(WORKERS)) if here else -1), 5.0
    seconds = np.where(rng.random(WORKERS) < 0.2, math.inf, rng.uniform(0.1, 3.0, WORKERS))
    queued = np.where(rng.random(WORKERS) < 0.15, math.inf, rng.uniform(0.0, 3.0, WORKERS))
    busy_until, hosts = rng.uniform(3.0, 8.0, WORKERS), rng.integers(0, 2, WORKERS)
    cached, homes = rng.random((MODELS, WORKERS)) < 0.5, rng.random((MODELS, WORKERS)) < 0.4
    sizes, fetch = rng.integers(1, 5, MODELS).astype(float), rng.uniform(0.1, 2.0, MODELS)
    free = rng.integers(0, 8, WORKERS).astype(float)
    own_cached, own_free = rng.random(MODELS) < 0.5, float(rng.integers(0, 8))
    own_queued, own_busy = float(rng.uniform(0, 3)), float(rng.uniform(3, 8))
    needed = rng.choice(MODELS, int(rng.integers(0, 4)), replace=False)
    input_seconds, eviction, at_home = 0.7, 1.5, 4.0

    def cost(worker: int) -> float:
        mine = worker == me
        waiting, until = (own_queued, own_busy) if mine else (queued[worker], busy_until[worker])
        total = waiting + max(0.0, until - now) + seconds[worker]
        if not mine and (me < 0 or hosts[worker] != hosts[me]):
            total += input_seconds
        held, room = (own_cached, own_free) if mine else (cached[:, worker], free[worker])
        guests = sum(sizes[model] for model in range(MODELS) if held[model] and not homes[model, worker])
        left = room
        for model in needed if counts_cache else ():
            if not held[model]:
                penalty = 0.0 if left >= sizes[model] else eviction if room + guests >= sizes[model] else at_home
                total += fetch[model] * (1.0 + penalty)
                left = max(0.0, left - sizes[model])
        return float(total)

    costs = [cost(worker) for worker in range(WORKERS)]
    expected = -1 if min(costs) == math.inf else int(np.argmin(costs))
    assert expected == cheapest_worker(
        seconds, input_seconds, needed.astype(np.int64), fetch, sizes, hosts.astype(np.int64), queued, busy_until,
        cached, free, me, own_queued, own_busy, own_cached, own_free, homes, 0, now, eviction, at_home, counts_cache,
        False, 0.5,
    )  # fmt: skip


# Plans of stages

STAGES = (
    Stage.of("a", {"slow": {1: 1.0, 2: 1.5}, "fast": {1: 0.5, 2: 0.75, 4: 1.0}}),
    Stage.of("b", {"fast": {1: 0.25, 2: 0.375}}),
    Stage.of("c", {"*": 2.0}),
)
FLEET = Fleet.of([Worker("w0", 0, "slow"), Worker("w1", 0, "fast"), Worker("w2", 0, "fast")])
FORK = Workflow(STAGES, (("a", "b"), ("a", "c")))


def test_what_is_kept_back_is_the_longest_way_in_planned_batches() -> None:
    plan = StagePlan.of(FORK, FLEET, [2, 2, 1], [3, 4, 5])
    # Planned: a takes (1.5 + 0.75 + 0.75) / 3 = 1 s, b 0.375 s on those that can, c 2 s.
    assert plan.after.tolist() == [2.0, 0.0, 0.0]
    assert plan.kept.tolist() == [3.0, 0.375, 2.0]
    assert (plan.sizes.tolist(), plan.largest.tolist(), plan.groups) == ([2, 2, 1], [4, 2, 1], (3, 4, 5))
    assert [FLEET.workers[at].accelerator for at in range(3)] == ["slow", "fast", "fast"]
    slow, fast = plan.kinds.tolist()[:2]
    assert plan.times[0, fast].tolist() == [0.5, 0.75, 1.0, 1.0], "as long as the next larger batch"
    assert plan.times[0, slow].tolist()[:2] == [1.0, 1.5]
    assert plan.times[1, fast].tolist()[:2] == [0.25, 0.375]
    assert np.isinf(plan.times[1, slow]).all()
    assert np.isinf(plan.times[2, :, 1:]).all(), "a stage that runs alone has a time for one only"


def test_a_stage_without_batches_has_none_whatever_is_planned() -> None:
    plan = StagePlan.of(FORK, FLEET, [1, 1, 1], [0, 1, 2])
    assert plan.largest.tolist() == [1, 1, 1]
    alone = StagePlan.of(Workflow((STAGES[1],), ()), Fleet.of([Worker("w", 0, "fast")]), [1], [0])
    assert alone.largest.tolist() == [1]


def test_waiting_in_between_is_kept_back_in_parts_of_a_batch() -> None:
    plan = StagePlan.of(FORK, FLEET, [2, 2, 1], [0, 1, 2], waits=0.5)
    assert plan.after.tolist() == [3.0, 0.0, 0.0]
    assert plan.kept.tolist() == [4.0, 0.375, 2.0]


def test_the_typical_time_is_the_mean_of_those_that_can() -> None:
    assert typical(np.array([1.0, math.inf, 2.0])) == 1.5
    assert typical(np.array([math.inf])) == pytest.approx(0.0)
