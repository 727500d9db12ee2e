"""What jobs are owed and what a move is to them: the formulas, written again job by job and type by type."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fairway.allocate.mechanism.rounds import account, carry_over, weigh_moves

INSTANCES = 120


def test_time_that_passes_is_owed_by_shares_and_given_where_it_is_charged() -> None:
    shares = np.array([[0.5, 0.25], [1.0, 0.0], [0.0, 0.0], [0.25, 0.0]])
    owed = np.array([[10.0, 4.0], [190.0, 3.0], [7.0, 5.0], [840.0, 0.0]])
    charged = np.array([0, -1, 1, -1])
    account(20.0, shares, owed, charged, 100.0)
    # The first got 20 s of the 10 it was owed here: a gift. The second, which is to run all the time, is never owed
    # more than two turns; the last, with a quarter of it, no more than 2 + 10 * 0.75.
    assert owed.tolist() == [[0.0, 9.0], [200.0, 3.0], [7.0, 0.0], [845.0, 0.0]]
    account(1e6, shares, owed, charged, 100.0)
    assert owed.tolist() == [[0.0, 450.0], [200.0, 3.0], [7.0, 0.0], [950.0, 0.0]]
    crowded = np.array([[1.0, 1.0]])  # more than all of its time, on two types at once
    owed = np.array([[199.0, 1.0]])
    account(10.0, crowded, owed, np.array([-1]), 100.0)
    assert owed.tolist() == [[200.0, 11.0]]


def test_what_is_owed_where_a_job_has_no_share_any_more_moves_along_as_work() -> None:
    # 6 s at 4 steps are 24 steps; the new shares make 0.5 * 2 + 0.25 * 8 = 3 steps a second, so for 8 s of both.
    owed = np.array([[6.0, 1.0, 2.0], [5.0, 0.0, 0.0], [0.0, 3.0, 0.0]])
    rates = np.array([[4.0, 2.0, 8.0], [1.0, 1.0, 1.0], [1.0, 0.0, 1.0]])
    shares = np.array([[0.0, 0.5, 0.25], [0.0, 0.0, 0.0], [0.5, 0.0, 0.5]])
    carry_over(owed, rates, shares)
    # The second has a share of nothing, and the third was owed what it cannot use: both debts are gone.
    assert owed.tolist() == [[0.0, 1.0 + 0.5 * 8, 2.0 + 0.25 * 8], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]


def test_a_job_whose_shares_stay_on_their_types_is_owed_what_it_was() -> None:
    owed = np.array([[6.0, 1.0]])
    carry_over(owed, np.array([[0.0, 2.0]]), np.array([[0.5, 0.5]]))
    assert owed.tolist() == [[6.0, 1.0]]


def weighed(
    here: int, rates: list[float], known: list[float], seconds: float, bound: int, dollars: list[float],
    restart: float, turn: float, blind: bool, crowded: bool,
) -> tuple[list[int], float]:  # fmt: skip
    """One job that needs so many seconds more where it is."""
    seconds = min(seconds, turn)
    least = math.inf if bound or seconds <= restart else seconds / (seconds - restart)
    found = []
    for there, rate in enumerate(rates):
        gain = 0
        if there != here and rate > 0:
            ratio = rate / rates[here] if known[there] and known[here] else 1.0
            if blind:
                gain = int(crowded and ratio != 1.0)
            elif ratio > least or ratio * dollars[here] > least * dollars[there]:
                gain = 1
            elif ratio < 1.0 or dollars[here] < ratio * dollars[there]:
                gain = -1
        found.append(gain)
    return found, least


@pytest.mark.parametrize("blind", [False, True])
@pytest.mark.parametrize("priced", [False, True])
def test_a_move_is_a_gain_if_it_makes_up_for_the_restart(blind: bool, priced: bool) -> None:
    for seed in range(INSTANCES):
        draws = np.random.default_rng(seed)
        jobs, types = 4, 3
        on = draws.integers(-1, types, jobs)
        rates = draws.choice([0.0, 1.0, 2.0, 2.5, 3.0, 4.0], (jobs, types))
        rates[np.arange(jobs), on] = np.maximum(rates[np.arange(jobs), on], 1.0)
        known = draws.choice([0.0, 1.0, 1.0], (jobs, types))
        rate = np.maximum(rates[np.arange(jobs), on], 0.5)
        left = draws.choice([0.5, 5.0, 10.0, 30.0, 1000.0], jobs) * rate
        bound = draws.choice([0, 0, 0, 1], jobs)
        dollars = draws.choice([1.0, 2.0, 3.0], types) if priced else np.zeros(types)
        restart, turn, crowded = float(draws.choice([0.0, 4.0, 5.0, 10.0])), 20.0, bool(draws.integers(2))
        gains, least = weigh_moves(on, rates, known, left, rate, bound, dollars, restart, turn, blind, crowded)
        for job in range(jobs):
            if on[job] < 0:
                assert gains[job].tolist() == [0] * types
                continue
            expected, factor = weighed(
                int(on[job]), rates[job].tolist(), known[job].tolist(), float(left[job] / rate[job]), int(bound[job]),
                dollars.tolist(), restart, turn, blind, crowded,
            )  # fmt: skip
            assert least[job] == pytest.approx(factor)
            sure = [r for r in rates[job] / rates[job, on[job]] if not math.isclose(r, factor, rel_tol=1e-6)]
            if len(sure) == types and not priced:
                assert gains[job].tolist() == expected, seed


def test_more_steps_for_a_dollar_are_a_gain_and_fewer_a_loss_where_cost_counts() -> None:
    def gain(rate: float, price: float, *, restart: float = 0.0) -> int:
        found, _ = weigh_moves(
            np.array([0]), np.array([[1.0, rate]]), np.ones((1, 2)), np.array([1e9]), np.array([1.0]), np.array([0]),
            np.array([1.0, price]), restart, 100.0, False, False,
        )  # fmt: skip
        return int(found[0, 1])

    assert gain(1.0, 0.5) == gain(0.5, 0.25) == gain(2.0, 1.0) == 1
    assert gain(1.0, 1.0) == 0
    assert gain(1.0, 2.0) == gain(0.5, 0.5) == gain(0.5, 1.0) == -1
    # A restart of half of the turn takes twice as many steps for a dollar, and more.
    assert gain(1.0, 0.45, restart=50.0) == 1
    assert gain(1.0, 0.55, restart=50.0) == 0
