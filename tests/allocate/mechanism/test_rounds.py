"""From shares to rounds: what is owed, who comes first, what happens to workers that are left."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.allocate.mechanism.rounds import account, carry_over, choose, weigh_moves


def weighed(
    rates: list[list[float]],
    on: list[int],
    *,
    known: list[list[bool]] | None = None,
    left: float = 1e9,
    bound: bool = False,
    dollars: list[float] | None = None,
    restart: float = 0.0,
    blind: bool = False,
    crowded: bool = False,
) -> tuple[Any, Any]:
    """What moves are to the jobs, which have `left` seconds of work where they run; a turn is 1,800 s."""
    jobs, types = len(rates), len(rates[0])
    rate = np.array([row[max(held, 0)] for row, held in zip(rates, on, strict=True)])
    return weigh_moves(
        np.array(on), np.array(rates), np.array(known or np.ones((jobs, types)), dtype=float), left * rate, rate,
        np.full(jobs, int(bound)), np.array(dollars or [0.0] * types), restart, 1800.0, blind, crowded,
    )  # fmt: skip


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
    restart: float = 0.0,
    preempt: bool = True,
) -> tuple[list[int], list[int], list[int], list[int]]:
    jobs, types = len(rates), len(rates[0])
    stays = np.array([not preempt and held >= 0 for held in on or [-1] * jobs])
    gains, least = weighed(rates, on or [-1] * jobs, restart=restart)
    members = np.array(pairs or np.zeros((0, 2)), dtype=np.int64)
    answer = choose(
        np.array(shares), np.array(owed), np.array(rates), np.array(scale or [1] * jobs), np.array(on or [-1] * jobs),
        np.array(beside or [-1] * jobs), members[:, 0].copy(), members[:, 1].copy(),
        np.array(pair_shares or np.zeros((0, types))), np.zeros((len(members), types)),
        np.array(pair_rates or np.zeros((0, types, 2))), stays,
        np.array(free), 360.0, keep, gains, least, np.zeros(jobs),
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
    for restart, expected in ((0.0, [1]), (90.0, [0])):
        to, _, charged, _ = round_of([[1.0, 0.0]], [[0.0, 0.0]], [[1.0, 1.02]], [1, 1], on=[0], restart=restart)
        assert to == expected
        assert charged == [0]  # it is charged for what it had a claim on


def test_a_job_that_starts_takes_the_faster_type_whatever_a_restart_costs() -> None:
    to, *_ = round_of([[1.0, 0.0]], [[0.0, 0.0]], [[1.0, 1.02]], [1, 1], restart=90.0)
    assert to == [1]


def test_a_move_is_a_gain_only_if_the_rate_rises_by_more_than_the_restart_costs() -> None:
    # Half of 100 s is won by twice the rate: worth a restart of 49 s, not one of 50 s, and never one of 100 s.
    for restart, expected in ((49.0, 1), (50.0, 0), (100.0, 0)):
        gains, _ = weighed([[1.0, 2.0]], [0], left=100.0, restart=restart)
        assert gains.tolist() == [[0, expected]]


def test_equal_and_unmeasured_rates_gain_nothing() -> None:
    assert weighed([[1.0, 1.0]], [0])[0].tolist() == [[0, 0]]
    for known in ([True, False], [False, True], [False, False]):
        assert weighed([[1.0, 9.0]], [0], known=[known])[0].tolist() == [[0, 0]]
        assert weighed([[9.0, 1.0]], [0], known=[known])[0].tolist() == [[0, 0]]


def test_no_move_is_a_gain_to_a_job_that_would_begin_from_zero() -> None:
    assert weighed([[1.0, 9.0]], [0], bound=True)[0].tolist() == [[0, 0]]


def test_where_the_policy_goes_by_cost_more_steps_for_a_dollar_are_a_gain() -> None:
    assert weighed([[1.0, 1.0]], [0], dollars=[2.0, 1.0])[0].tolist() == [[0, 1]]
    assert weighed([[1.0, 1.0]], [0], dollars=[1.0, 2.0])[0].tolist() == [[0, -1]]


def test_a_blind_policy_moves_jobs_between_unequal_types_only_where_there_are_too_few_workers() -> None:
    assert weighed([[1.0, 3.0, 1.0]], [0], blind=True)[0].tolist() == [[0, 0, 0]]
    assert weighed([[1.0, 3.0, 1.0]], [0], blind=True, crowded=True)[0].tolist() == [[0, 1, 0]]


def test_a_job_whose_share_is_on_another_type_stays_where_it_is_as_fast() -> None:
    to, _, charged, _ = round_of([[0.0, 1.0]], [[0.0, 900.0]], [[1.0, 1.0]], [1, 1], on=[0])
    assert to == [0]
    assert charged == [1]


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
