from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from fairway.allocate.kernels import waiting_lines as kernel
from fairway.allocate.kernels.waiting_lines import line_up, queue_up


@st.composite
def waiting_lines(draw, *, most_jobs=5, most_workers=4, widest=4):
    workers = np.array(draw(st.lists(st.integers(1, most_workers), min_size=1, max_size=2)))
    jobs = draw(st.integers(1, most_jobs))
    sizes = np.array([draw(st.integers(1, min(widest, int(workers.max())))) for _ in range(jobs)])
    lengths = st.sampled_from([0.0, 1.0, 2.0, 2.5, 7.0, 30.0])
    seconds = np.array([[draw(lengths) for _ in workers] for _ in range(jobs)])
    possible = sizes[:, None] <= workers
    usable = possible & np.array([[draw(st.booleans()) for _ in workers] for _ in range(jobs)])
    return np.where(np.where(usable.any(axis=1)[:, None], usable, possible), seconds, np.inf), sizes, workers


def _total(found, seconds):
    return float(seconds[np.arange(len(seconds)), found.columns] @ found.positions)


def _assert_fits(found, seconds, sizes, workers):
    assert np.isfinite(seconds[np.arange(len(seconds)), found.columns]).all()
    assert (found.positions >= 1).all()
    for column, position in {*zip(found.columns.tolist(), found.positions.tolist(), strict=True)}:
        assert sizes[(found.columns == column) & (found.positions == position)].sum() <= workers[column]


def _least_by_trying_all(seconds, sizes, workers):
    jobs, types = seconds.shape
    places = [(j, k) for j in range(types) for k in range(1, jobs + 1)]
    least = np.inf
    for choice in product(places, repeat=jobs):
        total = sum(k * seconds[i, j] for i, (j, k) in enumerate(choice))
        if total < least and all(
            sum(sizes[i] for i in range(jobs) if choice[i] == (j, k)) <= workers[j] for j, k in {*choice}
        ):
            least = total
    return least


@given(waiting_lines(most_jobs=9, widest=1))
def test_jobs_on_one_worker_each_have_the_optimum_of_an_assignment_to_single_places(line):
    seconds, sizes, workers = line
    found = queue_up(seconds, sizes, workers)
    _assert_fits(found, seconds, sizes, workers)
    slots = [(j, k) for j, count in enumerate(workers) for k in range(1, len(seconds) + 1) for _ in range(count)]
    costs = np.array([[k * seconds[i, j] for j, k in slots] for i in range(len(seconds))])
    rows, columns = linear_sum_assignment(costs)
    assert _total(found, seconds) == pytest.approx(costs[rows, columns].sum())
    assert found.bound == _total(found, seconds)


@given(waiting_lines(most_jobs=3))
def test_gangs_have_the_optimum_of_trying_everything(line):
    seconds, sizes, workers = line
    found = queue_up(seconds, sizes, workers)
    _assert_fits(found, seconds, sizes, workers)
    assert _total(found, seconds) == pytest.approx(_least_by_trying_all(seconds, sizes, workers), rel=1e-6)
    assert found.bound == pytest.approx(_total(found, seconds), rel=1e-6)


@pytest.mark.parametrize("seed", range(8))
def test_four_gangs_have_the_optimum_of_trying_everything(seed):
    draw = np.random.default_rng(seed)
    workers = np.array([3, 4])
    sizes = draw.integers(1, 4, 4)
    seconds = draw.lognormal(0.0, 1.0, (4, 2))
    found = queue_up(seconds, sizes, workers)
    assert _total(found, seconds) == pytest.approx(_least_by_trying_all(seconds, sizes, workers), rel=1e-6)


@given(waiting_lines(most_jobs=8))
def test_without_branch_and_bound_the_bound_still_holds(line):
    seconds, sizes, workers = line
    best = queue_up(seconds, sizes, workers)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel, "MOST_COLUMNS", 0)
        quick = queue_up(seconds, sizes, workers)
    _assert_fits(quick, seconds, sizes, workers)
    assert quick.bound <= _total(best, seconds) * (1 + 1e-9) + 1e-12
    assert _total(best, seconds) <= _total(quick, seconds) * (1 + 1e-9)


@given(waiting_lines(most_jobs=8))
def test_nobody_is_in_the_same_place_as_another(line):
    seconds, sizes, workers = line
    found = queue_up(seconds, sizes, workers)
    for column, count in enumerate(workers.tolist()):
        mine = np.flatnonzero(found.columns == column)
        gangs, starts = line_up(found.positions[mine], sizes[mine], count)
        taken = [
            (worker, position)
            for gang, position in zip(gangs, found.positions[mine].tolist(), strict=True)
            for worker in gang
        ]
        assert len(taken) == len(set(taken)) == sizes[mine].sum()
        assert all(0 <= worker < count for worker, _ in taken)
        started = [worker for gang, starts_now in zip(gangs, starts, strict=True) if starts_now for worker in gang]
        assert len(started) == len(set(started))
        assert starts.any() or not len(mine)


def test_no_jobs_have_no_queues():
    found = queue_up(np.zeros((0, 2)), np.zeros(0, np.int64), np.array([1, 0]))
    assert (len(found.columns), found.bound) == (0, 0.0)
