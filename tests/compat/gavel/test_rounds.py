from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.allocate.arrays import IntArray
from fairway.compat.gavel.rounds import BETWEEN_DECISIONS, GavelRounds, Placed

EVERYWHERE = np.array([True, True])


def numbers(*values: int) -> IntArray:
    return np.array(values, dtype=np.int64)


def started(
    rounds: GavelRounds, shares: list[list[float]], sizes: list[int] | None = None, now: float = 0.0
) -> GavelRounds:
    """Let a job come for each row of shares, and decide."""
    table = np.array(shares, dtype=float)
    for number in range(len(table)):
        rounds.arrive(number, 1 if sizes is None else sizes[number], np.ones(table.shape[1], dtype=bool))
    rounds.decide(now, table)
    return rounds


def by_job(placed: Placed) -> dict[int, int]:
    return dict(zip(placed.late.tolist(), placed.types.tolist(), strict=True))


def run_for(rounds: GavelRounds, placed: Placed, seconds: float = 360.0) -> None:
    rounds.ran(placed, np.full(len(placed.rows), seconds))


def test_the_type_that_is_served_first_takes_the_jobs_with_the_highest_priority() -> None:
    rounds = started(GavelRounds([1, 1], order=[1, 0]), [[0.5, 0.2], [0.5, 0.8]])
    assert by_job(rounds.choose()) == {1: 1, 0: 0}


def test_who_has_had_the_least_of_its_share_comes_next() -> None:
    rounds = started(GavelRounds([1]), [[0.4], [0.6]])
    turns = []
    for _ in range(10):
        placed = rounds.choose()
        turns.append(int(placed.late[0]))
        run_for(rounds, placed)
    assert turns.count(0) == 4
    assert turns[0] == 1


def test_room_that_is_left_goes_to_jobs_without_a_share() -> None:
    rounds = started(GavelRounds([2]), [[1.0], [0.0]])
    assert by_job(rounds.choose()) == {0: 0, 1: 0}


def test_where_a_priority_is_needed_a_job_without_a_share_stays_idle() -> None:
    rounds = started(GavelRounds([2], needs_priority=True), [[1.0], [0.0]])
    assert by_job(rounds.choose()) == {0: 0}


def test_a_job_that_came_after_the_decision_blocks_workers_that_stay_idle() -> None:
    rounds = started(GavelRounds([2]), [[1.0]])
    rounds.arrive(1, 1, np.array([True]))
    assert by_job(rounds.choose()) == {0: 0}
    rounds.arrive(2, 1, np.array([True]))
    rounds.decide(2000.0, np.ones((3, 1)) / 3)
    assert len(rounds.choose().rows) == 2


def test_a_job_is_never_placed_where_it_cannot_run() -> None:
    rounds = GavelRounds([1, 1])
    rounds.arrive(0, 1, np.array([False, True]))
    rounds.decide(0.0, np.array([[1.0, 0.0]]))
    assert by_job(rounds.choose()) == {0: 1}


def test_a_gang_that_does_not_fit_is_passed_over_for_a_smaller_one() -> None:
    rounds = started(GavelRounds([4]), [[0.5], [0.9], [0.1]], sizes=[2, 3, 1])
    assert by_job(rounds.choose()) == {1: 0, 2: 0}


def test_equal_priorities_are_told_apart_by_what_was_missed() -> None:
    rounds = started(GavelRounds([1]), [[0.5], [0.5]])
    assert rounds.choose().late.tolist() == [0]  # and nothing is counted: job 1 has missed no more than job 0
    run_for(rounds, rounds.choose())
    rounds.arrive(2, 1, np.array([True]))
    rounds.decide(BETWEEN_DECISIONS, np.array([[0.4], [0.4], [0.2]]))
    assert rounds.choose().late.tolist() == [1]


def test_a_decision_is_due_when_something_changed_and_the_last_one_is_old_enough() -> None:
    rounds = GavelRounds([1])
    assert rounds.due(0.0)
    rounds.arrive(0, 1, np.array([True]))
    rounds.decide(0.0, np.ones((1, 1)))
    assert not rounds.due(360.0)
    rounds.arrive(1, 1, np.array([True]))
    assert rounds.due(360.0)  # the last one was at time 0, which the original takes for none
    rounds.decide(360.0, np.ones((2, 1)) / 2)
    rounds.depart(numbers(0))
    assert not rounds.due(360.0 + BETWEEN_DECISIONS - 1)
    assert rounds.due(360.0 + BETWEEN_DECISIONS)
    rounds.wake()
    assert rounds.due(361.0)


def test_gangs_keep_their_workers_and_leases_are_counted() -> None:
    rounds = started(GavelRounds([4]), [[1.0], [1.0], [0.1]], sizes=[1, 2, 1])
    rounds.choose()
    held = [rounds.workers_of(row).tolist() for row in range(3)]
    assert sorted(worker for own in held for worker in own) == [0, 1, 2, 3]
    assert (rounds.lease_extensions, rounds.lease_opportunities) == (0, 0)
    rounds.choose()
    assert [rounds.workers_of(row).tolist() for row in range(3)] == held
    assert (rounds.lease_extensions, rounds.lease_opportunities) == (3, 3)
    rounds.depart(numbers(0))
    rounds.choose()
    assert [rounds.workers_of(row).tolist() for row in range(2)] == held[1:]
    assert (rounds.lease_extensions, rounds.lease_opportunities) == (5, 5)


def test_a_large_gang_may_take_workers_from_a_small_one_that_then_moves() -> None:
    rounds = started(GavelRounds([3]), [[1.0], [0.001]], sizes=[1, 2])
    rounds.choose()
    assert rounds.workers_of(0).tolist() == [2]  # large gangs are placed first
    assert rounds.workers_of(1).tolist() == [0, 1]


def test_shuffled_orders_are_those_of_the_seed() -> None:
    rounds = GavelRounds([1, 1, 1], order=[2, 1, 0], shuffled=True, seed=3)
    started(rounds, [[1 / 3, 1 / 3, 1 / 3]])
    draws = random.Random(3 + 5)
    for _ in range(20):
        order = [2, 1, 0]
        draws.shuffle(order)
        assert by_job(rounds.choose()) == {0: order[0]}


def test_two_that_share_run_once_and_nobody_of_them_beside() -> None:
    rounds = GavelRounds([2])
    runs = np.array([True])
    rounds.arrive(0, 1, runs, numbers(), np.zeros((0, 1), dtype=bool))
    rounds.arrive(1, 1, runs, numbers(0), np.array([[True]]))
    rounds.arrive(2, 1, runs, numbers(0, 1), np.array([[True], [True]]))
    rounds.decide(0.0, np.array([[0.8], [0.1]]), late=numbers(2, 1), early=numbers(0, -1))
    placed = rounds.choose()
    assert sorted(zip(placed.early.tolist(), placed.late.tolist(), strict=True)) == [(-1, 1), (0, 2)]
    rounds.depart(numbers(2))
    assert list(zip(rounds.early.tolist(), rounds.late.tolist(), strict=True)) == [(-1, 0), (-1, 1), (0, 1)]
    rounds.choose()
    assert rounds.lease_opportunities == 2  # the pair counts: one of the two is still here


@given(data=st.data(), seed=st.integers(0, 10_000))
def test_workers_and_jobs_are_used_once_and_gangs_are_whole(data: st.DataObject, seed: int) -> None:
    rng = np.random.default_rng(seed)
    workers = rng.integers(0, 9, 3)
    rounds = GavelRounds(workers.tolist(), shuffled=bool(seed % 2), seed=seed)
    sizes: dict[int, int] = {}
    now = 0.0
    for _ in range(data.draw(st.integers(1, 12))):
        for _ in range(rng.integers(0, 4)):
            number = len(sizes)
            sizes[number] = int(rng.choice([1, 2, 4]))
            rounds.arrive(number, sizes[number], rng.random(3) < 0.8)
        if rounds.due(now):
            rounds.decide(now, rng.random((len(rounds), 3)) * (rng.random((len(rounds), 3)) < 0.7))
        placed = rounds.choose()
        assert len(set(placed.late.tolist())) == len(placed.late)
        held = np.concatenate([rounds.workers_of(row) for row in placed.rows] or [numbers()])
        assert len(set(held.tolist())) == len(held) == placed.sizes.sum()
        ends = np.cumsum(workers)
        for row, column, size in zip(placed.rows, placed.types, placed.sizes, strict=True):
            own = rounds.workers_of(row)
            assert len(own) == size
            assert ((own >= ends[column] - workers[column]) & (own < ends[column])).all()
        run_for(rounds, placed)
        if len(rounds) and rng.random() < 0.5:
            rounds.depart(numbers(int(rng.choice(rounds.late))))
        now += 360.0


def test_time_that_does_not_count_changes_nothing() -> None:
    rounds = started(GavelRounds([1]), [[0.5], [0.4]])
    first = rounds.choose()
    run_for(rounds, first, 0.0)
    assert rounds.choose().late.tolist() == first.late.tolist()
    assert rounds.lease_extensions == pytest.approx(1)
