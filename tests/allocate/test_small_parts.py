"""Small parts that several policies stand on: equations, gains of sharing, whole gangs, scores; by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from fairway.allocate.allocation import Allocation
from fairway.allocate.gangs.whole import WholeGangs, running
from fairway.allocate.kernels.scores import fifo_score, lowest_level
from fairway.allocate.kernels.sharing import Sharing
from fairway.allocate.kernels.small_systems import eliminate, times
from fairway.allocate.pairs import Pairs
from fairway.allocate.problem import Problem

# Equations


@given(
    size=st.integers(1, 5), width=st.integers(1, 3), seed=st.integers(0, 10**6), zeros=st.floats(0.0, 0.6),
)  # fmt: skip
def test_small_systems_are_solved_as_lapack_solves_them(size: int, width: int, seed: int, zeros: float) -> None:
    rng = np.random.default_rng(seed)
    matrix = rng.integers(-4, 5, (size, size)) * (rng.random((size, size)) >= zeros).astype(float)
    right = rng.uniform(-1, 1, (size, width))
    assume(abs(np.linalg.det(matrix)) > 0.5)  # whole numbers: it is 0 or at least 1
    answer = right.copy()
    assert eliminate(matrix.copy(), answer)
    np.testing.assert_allclose(answer, np.linalg.solve(matrix, right), rtol=1e-9, atol=1e-9)


def test_the_largest_pivot_is_taken_so_that_small_ones_do_no_harm() -> None:
    """With the pivot 1e-20, x would be 0 (Golub and Van Loan, section 3.4)."""
    answer = np.array([[1.0], [2.0]])
    assert eliminate(np.array([[1e-20, 1.0], [1.0, 1.0]]), answer)
    np.testing.assert_allclose(answer[:, 0], [1.0, 1.0])


@pytest.mark.parametrize("matrix", [[[0.0]], [[1.0, 2.0], [2.0, 4.0]], [[0.0, 1.0], [0.0, 2.0]]])
def test_a_singular_system_is_said_to_be_so(matrix: list[list[float]]) -> None:
    assert not eliminate(np.array(matrix), np.ones((len(matrix), 1)))


def test_a_matrix_times_a_vector() -> None:
    product = times(np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), np.array([1.0, 10.0, 100.0]))
    assert product.tolist() == [321.0, 654.0]


# Jobs 0 to 3 on types a and b; 0-1, 0-2 and 1-3 may share.

ALONE = [[4.0, 2.0], [2.0, 2.0], [4.0, 0.0], [1.0, 1.0]]
PAIRS = Pairs(
    np.array([0, 0, 1]),
    np.array([1, 2, 3]),
    np.array([
        [[2.0, 2.0], [1.0, 1.0]],  # 0 and 1: 1/2 + 1 on a, 1/2 + 1/2 on b
        [[4.0, 1.0], [1.0, 3.0]],  # 0 and 2: 1 + 1/4 on a; on b, job 2 does not run alone
        [[1.5, 0.75], [2.0, 1.0]],  # 1 and 3: 3/4 + 3/4 on a, 2 on b
    ]),
)  # fmt: skip


def problem_of(*, workers: tuple[int, int] = (4, 4), **changes: object) -> Problem:
    problem = Problem.of_arrays({"a": workers[0], "b": workers[1]}, ALONE, pairs=PAIRS, ids=["j0", "j1", "j2", "j3"])
    return replace(problem, **changes)  # type: ignore[arg-type]


def test_the_gain_of_a_pair_is_the_work_of_both_against_that_of_each_alone() -> None:
    sharing = Sharing(problem_of())
    assert sharing.gains(0, 1).tolist() == [1.5, 1.0]
    assert sharing.gains(1, 0).tolist() == [1.5, 1.0]
    assert sharing.gains(2, 0).tolist()[0] == 1.25
    assert sharing.gains(3, 1).tolist() == [1.5, 2.0]
    for job, other in ((0, 3), (2, 1), (2, 3), (3, 2), (3, 0)):
        assert sharing.gains(job, other).tolist() == [0.0, 0.0]


def test_without_pairs_nothing_is_gained() -> None:
    sharing = Sharing(problem_of(pairs=None))
    assert sharing.gains(0, 1).tolist() == [0.0, 0.0]
    assert sharing.best_host(0, np.array([-1, 0, 0, 0])) is None


def test_a_guest_goes_where_most_is_gained_if_that_is_more_than_one_and_a_half() -> None:
    sharing = Sharing(problem_of())
    assert sharing.best_host(3, np.array([0, 1, 0, -1])) == 1
    assert sharing.best_host(3, np.array([0, 0, 0, -1])) is None, "on a, exactly 1.5 is gained"
    assert sharing.best_host(1, np.array([0, -1, 0, 1])) == 3
    assert sharing.best_host(1, np.array([0, -1, 0, -1])) is None, "job 3 has no gang of its own"


def test_of_equal_hosts_the_earliest_is_taken() -> None:
    equal = Pairs(np.array([0, 1]), np.array([2, 2]), np.array([[[4.0, 4.0], [2.0, 0.0]], [[2.0, 4.0], [2.0, 0.0]]]))
    sharing = Sharing(problem_of(pairs=equal))
    assert sharing.best_host(2, np.array([0, 0, -1, -1])) == 0


# Whole gangs


def test_a_gang_fits_where_it_runs_and_so_many_workers_are_free() -> None:
    gangs = WholeGangs(problem_of(workers=(3, 1), scale_factors=np.array([2.0, 1.0, 3.0, 1.0])))
    assert [gangs.room(job) for job in range(4)] == [[0], [0, 1], [0], [0, 1]]
    assert 0 not in gangs
    gangs.give(0, 0)
    assert 0 in gangs
    assert gangs.free.tolist() == [1.0, 1.0]
    assert [gangs.room(job) for job in range(4)] == [[], [0, 1], [], [0, 1]]
    gangs.give(1, 0)
    assert gangs.room(3) == [1]


def test_parts_of_workers_fit_although_they_are_rounded() -> None:
    gangs = WholeGangs(problem_of(workers=(1, 1), scale_factors=np.array([0.1, 0.2, 0.7, 0.3])))
    gangs.give(0, 0)
    gangs.give(1, 0)
    assert 0 in gangs.room(2), "1 - 0.1 - 0.2 is a little less than 0.7"


def whole(problem: Problem, rows: list[tuple[int, int, int]], policy: str = "p", share: float = 1.0) -> Allocation:
    """Gangs of one job (the second is -1) or two, and their types."""
    shares = np.zeros((len(rows), 2))
    for row, (_, _, column) in enumerate(rows):
        shares[row, column] = share
    first, second = (np.array([row[side] for row in rows]) for side in (0, 1))
    return Allocation(policy, problem, first, second, shares, 0.0, "max")


def test_who_ran_whole_under_this_policy_is_known_in_order_of_arrival() -> None:
    problem = problem_of()
    previous = whole(problem, [(3, -1, 0), (0, 1, 1)])
    assert running(replace(problem, previous=previous), "p") == [([0, 1], 1), ([3], 0)]
    assert running(replace(problem, previous=previous), "q") == []
    assert running(problem, "p") == []
    assert running(replace(problem, previous=whole(problem, [(3, -1, 0)], share=0.999)), "p") == []
    gone = replace(problem, ids=("j0", "x", "y", "z"), previous=previous)
    assert running(gone, "p") == [([0], 1)]
    other_types = replace(problem, types=("c", "b"), previous=previous)
    assert running(other_types, "p") == [([0, 1], 1)]


def test_gangs_are_kept_where_they_fit_and_pairs_where_both_still_gain() -> None:
    problem = problem_of()
    problem = replace(problem, previous=whole(problem, [(0, 1, 0), (3, -1, 1), (2, -1, 0)]))
    kept = WholeGangs(problem)
    kept.keep("p")
    assert kept.alone_on.tolist() == [0, -1, 0, 1]
    assert 1 not in kept
    together = WholeGangs(problem)
    together.keep("p", Sharing(problem))
    told = together.allocation("p")
    pairs = [(int(a), int(b)) for a, b in zip(told.first, told.second, strict=True) if b >= 0]
    assert pairs == [(0, 1)]
    assert 1 in together
    assert together.alone_on.tolist() == [-1, -1, 0, 1]
    tight = replace(problem, workers=np.array([1.0, 1.0]))
    few = WholeGangs(tight)
    few.keep("p")
    assert few.alone_on.tolist() == [0, -1, -1, 1]


def test_a_guest_is_taken_in_by_its_best_host() -> None:
    problem = problem_of()
    gangs, sharing = WholeGangs(problem), Sharing(problem)
    assert not gangs.take_in(3, sharing)
    gangs.give(1, 1)
    assert gangs.take_in(3, sharing)
    assert 3 in gangs
    told = gangs.allocation("p", objective=2.0, sense="min", gap=0.5, details={"a": 1})
    assert (told.first.tolist(), told.second.tolist()) == ([0, 1, 2, 3, 1], [-1, -1, -1, -1, 3])
    assert told.shares.tolist() == [[0, 0]] * 4 + [[0, 1]]
    assert (told.objective, told.sense, told.gap, dict(told.details)) == (2.0, "min", 0.5, {"a": 1})


# Scores


def test_the_lowest_level_is_over_jobs_that_can_run() -> None:
    """Shares of 1/2 on a: rates 2, 1, 2, 1/2; proportional rates are 3, 2, 2, 1; one job asks for two workers."""
    problem = problem_of(scale_factors=np.array([2.0, 1.0, 1.0, 1.0]), weights=np.array([1.0, 0.5, 4.0, 1.0]))
    rows = [(job, -1, 0) for job in range(4)]
    # 2*2/(1*3), 1/(0.5*2), 2/(4*2), 0.5/1
    assert lowest_level(whole(problem, rows, share=0.5)) == pytest.approx(0.25)
    assert lowest_level(whole(replace(problem, workers=np.array([0.0, 0.0])), rows)) == 0.0


def test_the_score_of_first_in_first_out_counts_places_in_the_queue() -> None:
    problem = problem_of()
    rows = [(job, -1, 0) for job in range(4)]
    # Each at half of its fastest: 4/2 + 3/2 + 2/2 + 1/2
    assert fifo_score(whole(problem, rows, share=0.5)) == pytest.approx(5.0)
    assert fifo_score(whole(problem, [(1, -1, 1)], share=0.5)) == pytest.approx(1.5)
