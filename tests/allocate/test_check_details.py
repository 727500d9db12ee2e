"""Each check of the policy kit by itself: a decision that is wrong in one number fails it, at the limit it passes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from fairway.allocate import check
from fairway.allocate.allocation import Allocation
from fairway.allocate.check import PolicyError, Trial
from fairway.allocate.policies.max_min_fairness import MaxMinFairness
from fairway.allocate.problem import Problem

Change = Callable[[Allocation], Allocation]


class Changed:
    """Max-min fairness, whose decision is changed before it is given."""

    name = "max-min-fairness"

    def __init__(self, change: Change, *, first_only: bool = False) -> None:
        self.change, self.first_only, self.asked = change, first_only, 0

    def allocate(self, problem: Problem) -> Allocation:
        self.asked += 1
        decided = MaxMinFairness().allocate(problem)
        return decided if self.first_only and self.asked > 1 else self.change(decided)


def shares(at: tuple[int, int], value: float) -> Change:
    def change(decision: Allocation) -> Allocation:
        changed = decision.shares.copy()
        changed[at] = value
        return replace(decision, shares=changed)

    return change


def full(decision: Allocation) -> Allocation:
    """The first job has all of the time of the first type and no other."""
    changed = decision.shares.copy()
    changed[0], changed[0, 0] = 0.0, 1.0
    return replace(decision, shares=changed)


WRONG: list[tuple[str, Change, str]] = [
    ("answers", lambda d: replace(d, policy="other"), "names policy 'other'"),
    ("answers", lambda d: replace(d, shares=d.shares[:-1]), "do not belong together"),
    ("answers", lambda d: replace(d, shares=d.shares[:, :-1]), "do not belong together"),
    ("answers", lambda d: replace(d, second=d.second[:-1]), "do not belong together"),
    ("answers", lambda d: replace(d, first=d.first + 1), "a row runs job"),
    ("answers", lambda d: replace(d, second=np.full(len(d.first), len(d.ids))), "a row runs job"),
    ("answers", lambda d: replace(d, first=np.full(len(d.first), -1)), "a row runs job"),
    ("answers", lambda d: replace(d, problem=replace(d.problem, ids=d.ids[::-1])), "decides for"),
    ("answers", lambda d: replace(d, problem=replace(d.problem, types=d.types[::-1])), "decides for"),
    ("numbers_are_sound", shares((0, 0), np.nan), "shares"),
    ("numbers_are_sound", lambda d: replace(d, objective=np.inf), "objective inf"),
    ("numbers_are_sound", lambda d: replace(d, sense="best"), "sense 'best'"),
    ("numbers_are_sound", lambda d: replace(d, gap=-0.1), "gap -0.1"),
    ("numbers_are_sound", lambda d: replace(d, gap=np.inf), "gap inf"),
    ("numbers_are_sound", lambda d: replace(d, prices=np.zeros(2)), "prices .* for types"),
    ("numbers_are_sound", lambda d: replace(d, prices=np.array([1.0, np.nan, 0.0])), "prices .* for types"),
    ("numbers_are_sound", lambda d: replace(d, prices=np.array([1.0, -1.0, 0.0])), r"prices \[1.0, -1.0, 0.0\]$"),
    ("shares_fit", shares((0, 0), -1e-3), "gets -0.001"),
    ("shares_fit", shares((0, 0), 1.5), "of the time|workers in use"),
    ("shares_fit", lambda d: replace(d, shares=np.ones_like(d.shares)), "of the time"),
    ("shares_fit", lambda d: replace(d, problem=replace(d.problem, workers=d.used * 0.9)), "workers in use of"),
]


@pytest.mark.parametrize(("name", "change", "message"), WRONG)
def test_a_wrong_number_fails_the_check_that_it_is_for(name: str, change: Change, message: str) -> None:
    trial = Trial(Changed(change), "ordinary", 0)  # type: ignore[arg-type]
    with pytest.raises(PolicyError, match=f"fails check '{name}'.*{message}"):
        getattr(check, name)(trial)
    getattr(check, name)(Trial(MaxMinFairness(), "ordinary", 0))


@pytest.mark.parametrize(
    "change",
    [
        lambda d: replace(d, gap=0.0),
        lambda d: replace(d, gap=None),
        lambda d: replace(d, prices=None),
        lambda d: replace(d, prices=np.zeros(len(d.types))),
        lambda d: replace(d, sense="min"),
        full,
    ],
)
def test_what_is_just_right_passes(change: Change) -> None:
    for name in ("answers", "numbers_are_sound"):
        getattr(check, name)(Trial(Changed(change), "ordinary", 0))  # type: ignore[arg-type]


def test_a_job_may_run_all_of_the_time_on_all_workers_but_no_more() -> None:
    problem = Trial(MaxMinFairness(), "one job", 0).problem
    scale = problem.scale_factors[0]

    def all_of(column: int, part: float) -> Change:
        def change(decision: Allocation) -> Allocation:
            row = np.zeros((1, len(problem.types)))
            row[0, column] = part
            return replace(decision, first=np.array([0]), second=np.array([-1]), shares=row)

        return change

    fits = int(np.argmax(problem.workers))
    assert problem.workers[fits] >= scale
    check.shares_fit(Trial(Changed(all_of(fits, 1.0)), "one job", 0))  # type: ignore[arg-type]
    with pytest.raises(PolicyError, match=r"runs 1.001 of the time"):
        check.shares_fit(Trial(Changed(all_of(fits, 1.001)), "one job", 0))  # type: ignore[arg-type]


@pytest.mark.parametrize("field", ["first", "second", "shares", "objective", "gap", "prices"])
def test_a_decision_that_differs_in_anything_the_second_time_is_not_the_same(field: str) -> None:
    other = {
        "first": lambda d: replace(d, first=d.first[::-1].copy()),
        "second": lambda d: replace(d, second=d.second - 1),
        "shares": lambda d: replace(d, shares=d.shares * (1 + 1e-15) + 1e-18),
        "objective": lambda d: replace(d, objective=np.nextafter(d.objective, np.inf)),
        "gap": lambda d: replace(d, gap=0.25),
        "prices": lambda d: replace(d, prices=np.arange(len(d.types)) + 0.5),
    }[field]
    for name in ("decides_the_same_again", "names_do_not_matter"):
        with pytest.raises(PolicyError, match=f"fails check '{name}'.*: {field} "):
            getattr(check, name)(Trial(Changed(other, first_only=True), "ordinary", 0))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "name", ["job_order_does_not_matter", "type_order_does_not_matter", "what_ran_before_does_not_matter"]
)
def test_an_objective_that_another_order_changes_is_found(name: str) -> None:
    for factor, found in ((1.0 + 1e-3, True), (1.0 + 1e-9, False)):
        policy = Changed(lambda d, factor=factor: replace(d, objective=d.objective * factor), first_only=True)
        trial = Trial(policy, "ordinary", 3)  # type: ignore[arg-type]
        if found:
            with pytest.raises(PolicyError, match=f"fails check '{name}'.*objective"):
                getattr(check, name)(trial)
        else:
            getattr(check, name)(trial)


def test_a_price_for_what_is_idle_is_found_unless_the_decision_is_not_optimal() -> None:
    def dear(decision: Allocation) -> Allocation:
        return replace(decision, shares=decision.shares * 0.5, prices=np.ones(len(decision.types)))

    with pytest.raises(PolicyError, match=r"has price 1.0, but .* idle workers"):
        check.only_scarce_types_have_prices(Trial(Changed(dear), "ordinary", 0))  # type: ignore[arg-type]
    check.only_scarce_types_have_prices(
        Trial(Changed(lambda d: replace(dear(d), prices=None)), "ordinary", 0)  # type: ignore[arg-type]
    )
