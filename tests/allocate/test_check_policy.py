"""The conformance kit: every policy passes it, and every kind of broken policy fails the check meant for it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, replace
from itertools import combinations
from typing import Any, ClassVar

import numpy as np
import pytest

from fairway import POLICIES, Allocation, FairwayError, Policy, PolicyError, Problem, allocate, check_policy
from fairway.allocate.arrays import FloatArray
from fairway.allocate.check import CHECKS
from fairway.allocate.check_problems import KINDS, problem_of, reordered
from fairway.jobs import Entity

QUEUES = {"fifo", "shortest-job-first", "allox", "gandiva", "min-jct"}
"""Policies that may look at the order of arrival, at what runs already, or at a seed."""


def _every_policy() -> Iterator[tuple[str, Policy]]:
    """Each policy with each combination of its flags."""
    for name, policy in POLICIES.items():
        flags = [option.name for option in fields(policy) if option.default is False]  # type: ignore[arg-type]
        for count in range(len(flags) + 1):
            for chosen in combinations(flags, count):
                yield f"{name}:{','.join(chosen)}".rstrip(":"), policy(**dict.fromkeys(chosen, True))


@pytest.mark.parametrize(("name", "policy"), [pytest.param(*each, id=each[0]) for each in _every_policy()])
def test_every_policy_passes_with_every_combination_of_options(name: str, policy: Policy) -> None:
    check_policy(policy, seeds=range(2), order_matters=policy.name in QUEUES)


Fault = Callable[[Allocation], Allocation]


@dataclass
class Broken(Policy):
    """A good policy with a fault: its decisions are changed before they are handed out."""

    name: ClassVar[str] = "max-min-fairness"
    space_sharing: ClassVar[bool] = True
    fault: Fault
    efficient: bool = False
    calls: list[int] = field(default_factory=list)

    def allocate(self, problem: Problem) -> Allocation:
        self.calls.append(len(problem))
        return self.fault(allocate("max-min-fairness:space-sharing", problem))


def _scaled(factor: float) -> Fault:
    return lambda decision: replace(decision, shares=decision.shares * factor)


def _by_position(decision: Allocation) -> Allocation:
    shares = decision.shares.copy()
    shares[decision.first == 0] *= 0.5
    return replace(decision, shares=shares)


def _by_name(decision: Allocation) -> Allocation:
    short = np.array([len(decision.ids[job]) % 2 for job in decision.first], dtype=float)
    return replace(decision, shares=decision.shares * (0.9 + 0.05 * short[:, None]))


def _set_share(decision: Allocation, where: Any) -> Allocation:
    """Give a little time, within all limits, to the first job and type where that is forbidden."""
    shares = 0.5 * decision.shares
    for row, column in np.argwhere(where).tolist():
        if decision.problem.workers[column] >= 1:
            shares[row, column] = 1e-3
            break
    return replace(decision, shares=shares)


def _on_rate_zero(decision: Allocation) -> Allocation:
    return _set_share(decision, decision.problem.throughputs == 0)


def _too_wide(decision: Allocation) -> Allocation:
    problem = decision.problem
    return _set_share(decision, (problem.throughputs > 0) & (problem.scale_factors[:, None] > problem.workers))


def _unequal_pair(decision: Allocation) -> Allocation:
    problem = decision.problem
    for a, b in combinations(range(len(problem)), 2):
        if problem.scale_factors[a] != problem.scale_factors[b] and len(problem.types) and problem.workers[0] > 1:
            share = np.full((1, len(problem.types)), 1e-3)
            return replace(
                decision,
                first=np.append(decision.first, a),
                second=np.append(decision.second, b),
                shares=np.vstack([0.5 * decision.shares, share]),
            )
    return decision


def _greedy_on_the_first_of_equals(decision: Allocation) -> Allocation:
    """Takes a little of the last job, whatever it is, but only if it looks like its neighbour."""
    problem = decision.problem
    shares = decision.shares.copy()
    if len(problem) > 1 and np.array_equal(problem.throughputs[-1], problem.throughputs[-2]):
        shares[(decision.first == len(problem) - 1) | (decision.second == len(problem) - 1)] *= 0.5
    return replace(decision, shares=shares)


def _by_first_type(decision: Allocation) -> Allocation:
    first = decision.problem.workers[:1].sum()
    return replace(decision, objective=decision.objective + first)


def _by_unit(decision: Allocation) -> Allocation:
    return replace(decision, objective=decision.objective + float(decision.problem.throughputs.sum()))


def _without(name: str) -> Fault:
    return lambda decision: replace(decision, **{name: -getattr(decision, name) - 1.0})


FAULTS: dict[str, tuple[Fault, str]] = {
    "takes more than there is": (_scaled(1.01), "shares_fit"),
    "gives negative shares": (_scaled(-0.1), "shares_fit"),
    "gives time on rate 0": (_on_rate_zero, "jobs_run_where_they_can"),
    "gives time where the gang does not fit": (_too_wide, "jobs_run_where_they_can"),
    "pairs unequal gangs": (_unequal_pair, "jobs_run_where_they_can"),
    "serves the first job worse": (_by_position, "job_order_does_not_matter"),
    "looks at names": (_by_name, "names_do_not_matter"),
    "looks at the first type": (_by_first_type, "type_order_does_not_matter"),
    "counts steps": (_by_unit, "units_do_not_matter"),
    "has shares that are no numbers": (_scaled(np.nan), "numbers_are_sound"),
    "has an infinite objective": (lambda decision: replace(decision, objective=np.inf), "numbers_are_sound"),
    "has a negative gap": (_without("gap"), "numbers_are_sound"),
    "has negative prices": (_without("prices"), "numbers_are_sound"),
    "leaves priced workers idle": (_scaled(0.5), "only_scarce_types_have_prices"),
    "goes by another name": (lambda decision: replace(decision, policy="other"), "answers"),
    "decides for fewer jobs": (
        lambda decision: replace(decision, problem=reordered(decision.problem, np.arange(len(decision.ids) // 2))),
        "answers",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_policy_with_a_fault_fails_the_check_meant_for_it(fault: str) -> None:
    change, check = FAULTS[fault]
    with pytest.raises(PolicyError, match=f"policy 'max-min-fairness' fails check '{check}' on "):
        check_policy(Broken(change))


@pytest.mark.parametrize(
    ("fault", "who"),
    [("gives negative shares", r": '[^']*' gets -"), ("gives time on rate 0", r": '[^']*' gets 0\.001 of '"),
     ("pairs unequal gangs", r": '[^']*' with '[^']*' gets 0\.001 of '")],
)  # fmt: skip
def test_the_job_or_both_jobs_of_a_pair_are_named(fault: str, who: str) -> None:
    with pytest.raises(PolicyError, match=who):
        check_policy(Broken(FAULTS[fault][0]))


def _bare(decision: Allocation) -> Allocation:
    return allocate("max-min-fairness:space-sharing,bare", decision.problem)


def test_a_policy_that_claims_to_leave_nothing_over_is_held_to_it() -> None:
    check_policy(Broken(_bare), seeds=range(1))
    with pytest.raises(PolicyError, match=r"fails check 'nothing_is_left_over' on .* could have .* with no other job"):
        check_policy(Broken(_bare, efficient=True), seeds=range(1))


@dataclass
class Stateful(Policy):
    """Gives less each time it is asked."""

    name: ClassVar[str] = "stateful"
    asked: int = 0

    def allocate(self, problem: Problem) -> Allocation:
        self.asked += 1
        return Allocation.of_jobs(self.name, problem, problem.isolated_shares / self.asked, objective=1.0)


class AtRandom(Policy):
    """Draws from a generator that is not the problem's."""

    name: ClassVar[str] = "at-random"

    def __init__(self) -> None:
        self.rng = np.random.default_rng()

    def allocate(self, problem: Problem) -> Allocation:
        part = self.rng.uniform(0.5, 1.0)
        return Allocation.of_jobs(self.name, problem, problem.isolated_shares * part, objective=1.0)


@pytest.mark.parametrize("policy", [Stateful(), AtRandom()], ids=lambda policy: policy.name)
def test_a_policy_that_decides_otherwise_the_second_time_fails(policy: Policy) -> None:
    with pytest.raises(PolicyError, match="'decides_the_same_again'"):
        check_policy(policy)


@dataclass(frozen=True)
class Writes(Policy):
    """Doubles the weights of the problem, if need be by making them writable first."""

    name: ClassVar[str] = "writes"
    by_force: bool

    def allocate(self, problem: Problem) -> Allocation:
        if self.by_force:
            problem.weights.flags.writeable = True
        np.multiply(problem.weights, 2.0, out=problem.weights)
        return Allocation.of_jobs(self.name, problem, problem.isolated_shares, objective=1.0)


class AddsATeam(Policy):
    name: ClassVar[str] = "adds-a-team"

    def allocate(self, problem: Problem) -> Allocation:
        object.__setattr__(problem, "entities", {**problem.entities, "intruder": Entity(1.0)})
        return Allocation.of_jobs(self.name, problem, problem.isolated_shares, objective=1.0)


def test_a_policy_that_adds_a_team_to_the_problem_fails() -> None:
    with pytest.raises(PolicyError, match=r"'leaves_the_problem_alone'.*: entities are now .*intruder"):
        check_policy(AddsATeam())


def test_a_policy_that_writes_to_the_problem_fails() -> None:
    with pytest.raises(PolicyError, match=r"'answers'.*raises ValueError.*read-only"):
        check_policy(Writes(by_force=False))
    with pytest.raises(PolicyError, match=r"'leaves_the_problem_alone'.*: weights was"):
        check_policy(Writes(by_force=True))


@dataclass(frozen=True)
class Equal(Policy):
    """Equal shares for all, but for a whim that is asked before and after."""

    name: ClassVar[str] = "equal"
    whim: Callable[[Problem, FloatArray], FloatArray]
    gap: float | None = None

    def allocate(self, problem: Problem) -> Allocation:
        shares = self.whim(problem, problem.isolated_shares)
        objective = float(shares.sum()) if self.gap is not None else 1.0
        return Allocation.of_jobs(self.name, problem, shares, objective=objective, gap=self.gap)


def test_equal_shares_pass() -> None:
    check_policy(Equal(lambda _, shares: shares))


def test_a_policy_that_cannot_follow_another_decision_fails() -> None:
    def forgets_the_limits(problem: Problem, shares: FloatArray) -> FloatArray:
        return shares if problem.previous is None else shares + problem.runnable

    with pytest.raises(PolicyError, match="'decides_after_any_decision'"):
        check_policy(Equal(forgets_the_limits), order_matters=True)


def test_an_optimum_that_depends_on_what_ran_before_fails() -> None:
    def remembers(problem: Problem, shares: FloatArray) -> FloatArray:
        return shares if problem.previous is None else 0.5 * shares

    check_policy(Equal(remembers))
    with pytest.raises(PolicyError, match="'what_ran_before_does_not_matter'"):
        check_policy(Equal(remembers, gap=0.0))


def test_a_policy_that_treats_equals_differently_fails() -> None:
    def favours(problem: Problem, shares: FloatArray) -> FloatArray:
        """Half for one of several identical jobs: for whichever comes last."""
        _, last = np.unique(problem.throughputs[::-1], axis=0, return_index=True)
        halved = shares.copy()
        halved[len(problem) - 1 - last] *= 0.5
        return halved

    # The last of its kind in any order: seen only where equals are compared, unless another order shows it first.
    with pytest.raises(PolicyError, match=r"'(equals_are_alike|job_order_does_not_matter)'.*'identical jobs'"):
        check_policy(Equal(favours))


def test_a_queue_may_look_at_the_order() -> None:
    check_policy(Broken(_by_position_alone()), order_matters=True)


def _by_position_alone() -> Fault:
    """Half for the first job, without a claim to be optimal."""
    return lambda decision: replace(_by_position(decision), gap=None, prices=None)


def test_an_error_of_the_policy_is_reported_with_its_problem() -> None:
    class Raises(Policy):
        name: ClassVar[str] = "raises"

        def allocate(self, problem: Problem) -> Allocation:
            raise KeyError(problem.types[0])

    with pytest.raises(PolicyError, match=r"problem_of\('ordinary', seed=7\): raises KeyError: 'v100'") as caught:
        check_policy(Raises(), seeds=[7])
    assert isinstance(caught.value.__cause__, KeyError)
    assert isinstance(caught.value, FairwayError)


def test_the_named_problem_can_be_built_again() -> None:
    with pytest.raises(PolicyError) as caught:
        check_policy(Broken(_scaled(1.01)))
    named = re.search(r"problem_of\('(.+)', seed=(\d+)\)", str(caught.value))
    assert named is not None
    decision = _scaled(1.01)(allocate("max-min-fairness:space-sharing", problem_of(named[1], int(named[2]))))
    assert (decision.used > decision.problem.workers).any() or (decision.job_shares.sum(axis=1) > 1).any()


@pytest.mark.parametrize("kind", KINDS)
def test_the_problems_of_the_kit_are_complete_and_repeatable(kind: str) -> None:
    one, two = problem_of(kind, 3), problem_of(kind, 3)
    assert one.ids == two.ids
    assert np.array_equal(one.throughputs, two.throughputs)
    assert not np.isnan(one.steps_left).any()
    assert one.dollars_per_hour is not None
    assert len(one.dollars_per_hour) == len(one.types) == len(one.workers)
    if len(one) > 1:
        assert one.pairs is not None


def test_the_kinds_of_problems_are_what_they_say() -> None:
    def some(kind: str, true: Callable[[Problem], Any]) -> bool:
        return any(bool(true(problem_of(kind, seed))) for seed in range(5))

    assert some("more gangs than workers", lambda problem: problem.scale_factors.sum() > problem.workers.sum())
    assert some("a gang too large", lambda problem: (problem.scale_factors > problem.workers.max()).any())
    assert some("many zero rates", lambda problem: (problem.throughputs == 0).mean() > 0.4)
    assert some("extreme rates", lambda problem: np.ptp(np.log10(problem.rates[problem.rates > 0])) > 8)
    assert some("extreme weights", lambda problem: problem.weights.max() > 1e6 * problem.weights.min())
    assert some("identical jobs", lambda problem: len(np.unique(problem.throughputs, axis=0)) == 2)
    assert some("ordinary", lambda problem: (~np.isnan(problem.slo_seconds)).any() and (problem.team >= 0).any())


def test_every_check_has_a_policy_that_fails_it() -> None:
    shown = {check for _, check in FAULTS.values()}
    shown |= {"decides_the_same_again", "leaves_the_problem_alone", "decides_after_any_decision"}
    shown |= {"what_ran_before_does_not_matter", "equals_are_alike", "nothing_is_left_over"}
    assert {check.__name__ for check in CHECKS} == shown
