"""From shares to rounds: what is owed, who comes first, what happens to workers that are left."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.allocate.mechanism.rounds import account, carry_over, choose


def round_of(
    shares: list[list[float]],
    owed: list[list[float]],
    rates: list[list[float]],
    free: list[int],
    *,
    scale: list[int] | None = None,
    on: list[int] | None = None,
    pairs: list[tuple[int, int]] | None = None,
    pair_shares: list[list[float]] | None = None,
    pair_rates: list[Any] | None = None,
    beside: list[int] | None = None,
    keep: float = 0.0,
    margin: float = 0.0,
    preempt: bool = True,
) -> tuple[list[int], list[int], list[int], list[int]]:
    jobs, types = len(rates), len(rates[0])
    stays = np.array([not preempt and held >= 0 for held in on or [-1] * jobs])
    members = np.array(pairs or np.zeros((0, 2)), dtype=np.int64)
    answer = choose(
        np.array(shares), np.array(owed), np.array(rates), np.array(scale or [1] * jobs), np.array(on or [-1] * jobs),
        np.array(beside or [-1] * jobs), members[:, 0].copy(), members[:, 1].copy(),
        np.array(pair_shares or np.zeros((0, types))), np.zeros((len(members), types)),
        np.array(pair_rates or np.zeros((0, types, 2))), stays,
        np.array(free), 360.0, keep, margin,
    )  # fmt: skip
    return tuple(column.tolist() for column in answer)  # type: ignore[return-value]


def test_who_is_owed_most_comes_first() -> None:
    to, *_ = round_of([[0.5], [0.5]], [[100.0], [200.0]], [[1.0], [1.0]], [1])
    assert to == [-1, 0]


def test_a_job_keeps_its_worker_until_another_is_owed_much_more() -> None:
    for owed, expected in ((700.0, [0, -1]), (800.0, [-1, 0])):
        to, *_ = round_of([[0.5], [0.5]], [[0.0], [owed]], [[1.0], [1.0]], [1], on=[0, -1], keep=720.0)
        assert to == expected


def test_a_gang_that_is_owed_most_is_served_before_small_jobs_take_its_workers() -> None:
    to, *_ = round_of(
        [[0.2], [0.5], [0.5]], [[500.0], [10.0], [10.0]], [[1.0]] * 3, [2], scale=[2, 1, 1], on=[-1, 0, 0]
    )
    assert to == [0, -1, -1]


def test_workers_that_are_left_go_to_jobs_without_a_claim_on_their_fastest_free_type() -> None:
    to, _, charged, _ = round_of([[1.0, 0.0], [0.0, 0.0]], [[0.0] * 2] * 2, [[2.0, 1.0], [9.0, 3.0]], [1, 1])
    assert to == [0, 1]
    assert charged == [0, -1]  # a gift is not charged for


def test_what_is_still_left_lets_jobs_move_to_faster_types_if_that_pays() -> None:
    for margin, expected in ((0.0, [1]), (0.05, [0])):
        to, _, charged, _ = round_of([[1.0, 0.0]], [[0.0, 0.0]], [[1.0, 1.02]], [1, 1], margin=margin)
        assert to == expected
        assert charged == [0]  # it is charged for what it had a claim on


def test_a_move_makes_room_for_a_job_that_waits() -> None:
    # The first job fits on both types, the second only where the first one was put.
    to, *_ = round_of([[1.0, 0.0], [0.0, 0.0]], [[0.0] * 2] * 2, [[1.0, 2.0], [1.0, 0.0]], [1, 1])
    assert to == [1, 0]


def test_a_pair_holds_its_workers_once_and_comes_apart_when_workers_are_free() -> None:
    together = {"pairs": [(0, 1)], "pair_shares": [[1.0]], "pair_rates": [[[0.7, 0.7]]]}
    to, partner, _, charged = round_of([[0.0]] * 2, [[0.0]] * 2, [[1.0]] * 2, [1], **together)  # type: ignore[arg-type]
    assert (to, partner, charged) == ([0, 0], [1, 0], [0])
    to, partner, *_ = round_of([[0.0]] * 2, [[0.0]] * 2, [[1.0]] * 2, [2], **together)  # type: ignore[arg-type]
    assert (to, partner) == ([0, 0], [-1, -1])


def test_within_a_round_nobody_who_runs_is_moved() -> None:
    to, *_ = round_of(
        [[0.1, 0.0], [1.0, 0.0]], [[0.0] * 2, [900.0, 0.0]], [[1.0, 1.0]] * 2, [0, 1], on=[0, -1], preempt=False
    )
    assert to == [0, 1]


def test_time_that_passes_is_owed_by_shares_less_what_was_given() -> None:
    shares, owed = np.array([[0.5, 0.25], [0.5, 0.0], [0.0, 0.0]]), np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 0.0]])
    account(100.0, shares, owed, np.array([1, 0, 0]), 1800.0)
    assert owed.tolist() == [[50.0, 0.0], [0.0, 0.0], [0.0, 0.0]]


def test_nobody_is_owed_for_ever_least_of_all_who_is_to_run_all_the_time() -> None:
    shares, owed = np.array([[1.0], [0.5], [0.1]]), np.zeros((3, 1))
    account(1e9, shares, owed, np.array([-1, -1, -1]), 1000.0)
    assert owed[:, 0].tolist() == pytest.approx([2000.0, 7000.0, 11_000.0])


def test_a_debt_moves_to_the_types_where_the_job_has_shares_now_as_work() -> None:
    owed = np.array([[100.0, 0.0]])
    carry_over(owed, np.array([[4.0, 2.0]]), np.array([[0.0, 1.0]]))
    assert owed.tolist() == [[0.0, 200.0]]


@given(
    st.integers(1, 8).flatmap(
        lambda jobs: st.tuples(
            st.lists(st.lists(st.sampled_from([0.0, 0.2, 0.5]), min_size=2, max_size=2), min_size=jobs, max_size=jobs),
            st.lists(st.lists(st.sampled_from([0.0, 1.0, 3.0]), min_size=2, max_size=2), min_size=jobs, max_size=jobs),
            st.lists(st.sampled_from([1, 2, 4]), min_size=jobs, max_size=jobs),
            st.lists(st.integers(0, 5), min_size=2, max_size=2),
        )
    )
)
def test_a_round_fits_and_leaves_no_worker_that_somebody_who_waits_could_use(
    case: tuple[list[list[float]], list[list[float]], list[int], list[int]],
) -> None:
    shares, rates, scale, free = case
    to, *_ = round_of(shares, [[50.0, 20.0]] * len(shares), rates, free, scale=scale)
    left = list(free)
    for job, column in enumerate(to):
        if column >= 0:
            assert rates[job][column] > 0
            left[column] -= scale[job]
    assert min(left) >= 0
    for job, column in enumerate(to):
        if column < 0:
            assert not any(rates[job][other] > 0 and scale[job] <= left[other] for other in range(2))


def test_shares_are_met_in_the_long_run() -> None:
    shares = np.array([[0.5, 0.1], [0.3, 0.6], [0.2, 0.3]])
    owed, charged, given_time = np.zeros((3, 2)), np.full(3, -1), np.zeros((3, 2))
    for _ in range(2000):
        to, _, charges, _ = round_of(shares.tolist(), owed.tolist(), [[2.0, 1.0]] * 3, [1, 1], on=charged.tolist())
        charged = np.array(charges)
        account(360.0, shares, owed, charged, 1800.0)
        for job, column in enumerate(to):
            if column >= 0:
                given_time[job, column] += 1 / 2000
    assert given_time.sum(axis=0).tolist() == pytest.approx([1.0, 1.0])
    assert (given_time >= shares - 0.02).all()
