"""The conformance kit of allocation policies: what must hold for any of them, ours or a third party's.

`check_policy` puts a policy before many small problems (`check_problems`) and runs every check of `CHECKS` on each: the
shares fit, the numbers are numbers, the decision depends on nothing but the problem, and neither names nor the order of
things nor the unit of a step change it. A failure names the check, the problem and the numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import combinations
from typing import Any, NoReturn

import numpy as np

from fairway.allocate.allocation import Allocation
from fairway.allocate.arrays import BoolArray, FloatArray
from fairway.allocate.check_left_over import left_over
from fairway.allocate.check_problems import KINDS, problem_of, reordered
from fairway.allocate.pairs import Pairs
from fairway.allocate.policy import Policy
from fairway.allocate.problem import Problem
from fairway.allocate.registry import policy_of
from fairway.errors import FairwayError, InputError

TOLERANCE = 1e-6
"""Relative: sums may exceed their limits, and objectives and shares that should agree may differ, by this much."""


class PolicyError(FairwayError):
    """A policy breaks a rule that every policy must keep."""


def check_policy(policy: Policy, *, seeds: Iterable[int] = range(5), order_matters: bool = False) -> None:
    """Raise `PolicyError` unless the policy passes every check on every kind of problem.

    `order_matters` is for policies whose decision may depend on the order of jobs and accelerator types and on what
    runs already, such as queues and policies that draw: they need not treat equals alike.
    """
    try:
        policy = policy_of(policy)
    except InputError as error:
        raise PolicyError(str(error)) from None
    for seed in seeds:
        for kind in KINDS:
            trial = Trial(policy, kind, seed)
            for check in CHECKS:
                if not (order_matters and check in _ORDER_CHECKS):
                    check(trial)


@dataclass(frozen=True)
class Trial:
    """A policy before one problem."""

    policy: Policy
    kind: str
    seed: int

    @cached_property
    def problem(self) -> Problem:
        """The problem, whose arrays refuse to be written to."""
        problem = problem_of(self.kind, self.seed)
        for array in _arrays(problem).values():
            array.flags.writeable = False
        return problem

    @cached_property
    def decision(self) -> Allocation:
        """What the policy decides."""
        return self.decide(self.problem)

    def decide(self, problem: Problem) -> Allocation:
        """What the policy decides for this variant of the problem."""
        try:
            return self.policy.allocate(problem)
        except Exception as error:
            message = f"{self._place('answers')}: raises {type(error).__name__}: {error}"
            raise PolicyError(message) from error

    def fail(self, check: str, numbers: str) -> NoReturn:
        """Report a failed check."""
        raise PolicyError(f"{self._place(check)}: {numbers}")

    def _place(self, check: str) -> str:
        name = getattr(self.policy, "name", type(self.policy).__name__)
        problem = f"fairway.allocate.check_problems.problem_of({self.kind!r}, seed={self.seed})"
        return f"policy '{name}' fails check '{check}' on {problem}"


def answers(trial: Trial) -> None:
    """The policy decides without an error, and the decision is one of this problem."""
    decision, problem = trial.decision, trial.problem
    if decision.policy != trial.policy.name:
        trial.fail("answers", f"the decision names policy '{decision.policy}'")
    if decision.ids != problem.ids or decision.types != problem.types:
        trial.fail("answers", f"decides for {decision.ids} on {decision.types}, not {problem.ids} on {problem.types}")
    rows, jobs = len(decision.first), len(problem)
    if decision.shares.shape != (rows, len(problem.types)) or decision.second.shape != (rows,):
        trial.fail("answers", f"shares {decision.shares.shape} and {rows} rows do not belong together")
    members = np.concatenate([decision.first, decision.second[decision.second >= 0]])
    if ((members < 0) | (members >= jobs)).any():
        trial.fail("answers", f"a row runs job {int(members.max())} of {jobs}")


def leaves_the_problem_alone(trial: Trial) -> None:
    """Deciding changes nothing in the problem, even if the policy makes its arrays writable."""
    fresh = problem_of(trial.kind, trial.seed)
    _ = trial.decision
    before, after = _arrays(fresh), _arrays(trial.problem)
    for name in before:
        if not np.array_equal(before[name], after[name], equal_nan=True):
            trial.fail("leaves_the_problem_alone", f"{name} was {before[name].tolist()}, is {after[name].tolist()}")
    if dict(fresh.entities) != dict(trial.problem.entities):
        trial.fail("leaves_the_problem_alone", f"entities are now {dict(trial.problem.entities)}")


def numbers_are_sound(trial: Trial) -> None:
    """Shares, objective, gap and prices are finite; gap and prices are at least 0 where there are any."""
    decision = trial.decision
    if not np.isfinite(decision.shares).all():
        trial.fail("numbers_are_sound", f"shares {decision.shares.tolist()}")
    if not np.isfinite(decision.objective):
        trial.fail("numbers_are_sound", f"objective {decision.objective}")
    if decision.sense not in {"max", "min"}:
        trial.fail("numbers_are_sound", f"sense {decision.sense!r}")
    if decision.gap is not None and not 0 <= decision.gap < np.inf:
        trial.fail("numbers_are_sound", f"gap {decision.gap}")
    prices = decision.prices
    if prices is not None and not (prices.shape == (len(decision.types),) and np.isfinite(prices).all()):
        trial.fail("numbers_are_sound", f"prices {prices.tolist()} for types {decision.types}")
    if prices is not None and (prices < 0).any():
        trial.fail("numbers_are_sound", f"prices {prices.tolist()}")


def shares_fit(trial: Trial) -> None:
    """No share is negative, no job has more than all of the time, no type more work than workers."""
    _require_fit(trial, trial.decision, "shares_fit")


def jobs_run_where_they_can(trial: Trial) -> None:
    """No job gets time where its rate is 0 or its gang does not fit, or beside a job that it cannot share with."""
    decision, problem = trial.decision, trial.problem
    usable = problem.runnable[decision.first].copy()
    sharing = {} if problem.shareable is None else _pair_rates(problem.shareable)
    for row in np.flatnonzero(decision.second >= 0).tolist():
        pair = (int(decision.first[row]), int(decision.second[row]))
        usable[row] = sharing[pair][:, 0] > 0 if pair in sharing else False
    for row, column in np.argwhere((decision.shares > 0) & ~usable).tolist():
        who = _row_name(decision, row)
        trial.fail(
            "jobs_run_where_they_can", f"{who} gets {decision.shares[row, column]} of '{decision.types[column]}'"
        )


def decides_the_same_again(trial: Trial) -> None:
    """The same problem, built again, gets the same decision to the last bit."""
    again = trial.decide(problem_of(trial.kind, trial.seed))
    _require_equal(trial, again, "decides_the_same_again")


def names_do_not_matter(trial: Trial) -> None:
    """Other ids change nothing, to the last bit."""
    names = tuple(f"job {len(trial.problem) - position}" for position in range(len(trial.problem)))
    _require_equal(trial, trial.decide(replace(trial.problem, ids=names)), "names_do_not_matter")


def job_order_does_not_matter(trial: Trial) -> None:
    """The jobs in another order get the same shares and objective; those of a `fifo` team keep their order in it."""
    problem = trial.problem
    order = np.random.default_rng(trial.seed).permutation(len(problem))
    queued = _under_fifo(problem)[order]
    order[queued] = np.sort(order[queued])
    other = trial.decide(reordered(problem, order))
    _require_objective(trial, other, trial.decision.objective, "job_order_does_not_matter")
    expected = trial.decision.job_shares[order]
    if not np.allclose(other.job_shares, expected, rtol=0, atol=TOLERANCE):
        row, column = np.unravel_index(np.abs(other.job_shares - expected).argmax(), expected.shape)
        trial.fail(
            "job_order_does_not_matter",
            f"with the jobs in order {order.tolist()}, '{other.ids[row]}' gets {other.job_shares[row, column]} of "
            f"'{other.types[column]}' instead of {expected[row, column]}",
        )


def type_order_does_not_matter(trial: Trial) -> None:
    """The accelerator types in another order lead to the same objective."""
    problem, order = trial.problem, np.arange(len(trial.problem.types))[::-1]
    pairs = problem.pairs
    other = replace(
        problem,
        types=tuple(problem.types[column] for column in order),
        workers=problem.workers[order],
        throughputs=problem.throughputs[:, order],
        dollars_per_hour=None if problem.dollars_per_hour is None else problem.dollars_per_hour[order],
        pairs=None if pairs is None else replace(pairs, rates=pairs.rates[:, order]),
    )
    _require_objective(trial, trial.decide(other), trial.decision.objective, "type_order_does_not_matter")


def units_do_not_matter(trial: Trial) -> None:
    """Counting c times as many steps, in rates and in what is left, scales the objective by c, 1 or 1/c."""
    problem, pairs = trial.problem, trial.problem.pairs
    for factor in (1e3, 1e-3):
        other = trial.decide(
            replace(
                problem,
                throughputs=problem.throughputs * factor,
                steps_left=problem.steps_left * factor,
                pairs=None if pairs is None else replace(pairs, rates=pairs.rates * factor),
            )
        )
        _require_fit(trial, other, "units_do_not_matter")
        expected = [trial.decision.objective * factor**power for power in (0, 1, -1)]
        if not any(_agree(trial.decision, other, value) for value in expected):
            trial.fail(
                "units_do_not_matter",
                f"{factor} times the rates and steps: objective {other.objective}, expected one of {expected}",
            )


def decides_after_any_decision(trial: Trial) -> None:
    """A decision that follows another one, of these or of fewer jobs, fits as well."""
    for before in _decisions_before(trial):
        _require_fit(trial, trial.decide(replace(trial.problem, previous=before)), "decides_after_any_decision")


def what_ran_before_does_not_matter(trial: Trial) -> None:
    """Where the decision is optimal, it is as good after any other decision."""
    if trial.decision.optimal:
        for before in _decisions_before(trial):
            other = trial.decide(replace(trial.problem, previous=before))
            _require_objective(trial, other, trial.decision.objective, "what_ran_before_does_not_matter")


def equals_are_alike(trial: Trial) -> None:
    """Jobs that could swap places have the same effective throughput."""
    rates = trial.decision.throughputs
    for a, b in _interchangeable(trial.problem):
        if abs(rates[a] - rates[b]) > TOLERANCE * trial.problem.fastest[a]:
            one, two = trial.problem.ids[a], trial.problem.ids[b]
            trial.fail("equals_are_alike", f"'{one}' and '{two}' are identical, but run at {rates[a]} and {rates[b]}")


def only_scarce_types_have_prices(trial: Trial) -> None:
    """Where the decision is optimal, a type with a price is fully used (complementary slackness)."""
    decision = trial.decision
    if decision.prices is None or not decision.optimal:
        return
    idle = np.maximum(trial.problem.workers - decision.used, 0.0)
    worth = decision.prices * idle
    for column in np.flatnonzero(worth > 1e-4 * abs(decision.objective)).tolist():
        trial.fail(
            "only_scarce_types_have_prices",
            f"'{decision.types[column]}' has price {decision.prices[column]}, but {idle[column]} idle workers "
            f"(objective {decision.objective})",
        )


def nothing_is_left_over(trial: Trial) -> None:
    """Where the policy claims to be efficient, no job could have more without another having less."""
    policy = trial.policy
    if not policy.efficient:
        return
    seen = trial.problem
    if policy.agnostic:
        seen = seen.agnostic(getattr(policy, "reference", None))  # an option that some have
    if not policy.space_sharing:
        seen = replace(seen, pairs=None)
    rates = replace(trial.decision, problem=seen).throughputs
    gains, part = left_over(seen, rates)
    if part > TOLERANCE:
        job = int(gains.argmax())
        trial.fail(
            "nothing_is_left_over",
            f"'{seen.ids[job]}' runs at {rates[job]} and could have {gains[job]} of its fastest rate more, with no "
            "other job slower",
        )


CHECKS: tuple[Callable[[Trial], None], ...] = (
    answers,
    leaves_the_problem_alone,
    numbers_are_sound,
    shares_fit,
    jobs_run_where_they_can,
    decides_the_same_again,
    names_do_not_matter,
    job_order_does_not_matter,
    type_order_does_not_matter,
    units_do_not_matter,
    decides_after_any_decision,
    what_ran_before_does_not_matter,
    equals_are_alike,
    only_scarce_types_have_prices,
    nothing_is_left_over,
)
"""Every check, in the order in which they run."""

_ORDER_CHECKS = frozenset(
    {job_order_does_not_matter, type_order_does_not_matter, what_ran_before_does_not_matter, equals_are_alike}
)


def _arrays(problem: Problem) -> dict[str, Any]:
    """Every array of a problem, by name."""
    parts = [(field.name, getattr(problem, field.name)) for field in fields(problem)]
    if problem.pairs is not None:
        parts += [(f"pairs.{field.name}", getattr(problem.pairs, field.name)) for field in fields(problem.pairs)]
    return {name: value for name, value in parts if isinstance(value, np.ndarray)}


def _under_fifo(problem: Problem) -> BoolArray:
    """Which jobs belong, directly or through other teams, to a team that serves in order of arrival."""

    def serves_in_order(name: str | None) -> bool:
        if name is None:
            return False
        entity = problem.entities[name]
        return entity.policy == "fifo" or serves_in_order(entity.parent)

    queued = np.array([*map(serves_in_order, problem.entities), False])
    return queued[problem.team]


def _interchangeable(problem: Problem) -> Iterator[tuple[int, int]]:
    """Pairs of jobs that could swap places without any change to the problem."""
    columns = [getattr(problem, name) for name in ("scale_factors", "weights", "steps_left", "elapsed")]
    columns += [problem.isolated_elapsed, problem.slo_seconds, problem.team]
    table = np.column_stack([problem.throughputs, *columns])
    queued = _under_fifo(problem)
    for a, b in combinations(range(len(problem)), 2):
        if queued[a] or not np.array_equal(table[a], table[b], equal_nan=True):
            continue
        order = np.arange(len(problem))
        order[[a, b]] = b, a
        swapped = reordered(problem, order)
        before = {} if problem.pairs is None else _pair_rates(problem.pairs)
        after = {} if swapped.pairs is None else _pair_rates(swapped.pairs)
        if before.keys() == after.keys() and all(np.array_equal(before[pair], after[pair]) for pair in before):
            yield a, b


def _pair_rates(pairs: Pairs) -> dict[tuple[int, int], FloatArray]:
    return {
        (first, second): rates
        for first, second, rates in zip(pairs.first.tolist(), pairs.second.tolist(), pairs.rates, strict=True)
    }


def _decisions_before(trial: Trial) -> Iterator[Allocation]:
    """What the policy decides for the same jobs, and without the last of them."""
    yield trial.decision
    if len(trial.problem):
        yield trial.decide(reordered(trial.problem, np.arange(len(trial.problem) - 1)))


def _row_name(decision: Allocation, row: int) -> str:
    members = [int(job) for job in (decision.first[row], decision.second[row]) if job >= 0]
    return " with ".join(f"'{decision.ids[job]}'" for job in members)


def _agree(decision: Allocation, other: Allocation, expected: float) -> bool:
    """Whether the objective of the other decision is the expected one, as far as both claim to be exact."""
    tolerance = TOLERANCE + (decision.gap or 0.0) + (other.gap or 0.0)
    return abs(other.objective - expected) <= tolerance * max(abs(expected), 1e-300)


def _require_objective(trial: Trial, other: Allocation, expected: float, check: str) -> None:
    if not _agree(trial.decision, other, expected):
        trial.fail(check, f"objective {other.objective} instead of {expected}")


def _require_equal(trial: Trial, other: Allocation, check: str) -> None:
    decision = trial.decision
    for name in ("first", "second", "shares", "objective", "gap", "prices"):
        one, two = getattr(decision, name), getattr(other, name)
        if np.asarray(one).tobytes() != np.asarray(two).tobytes():
            trial.fail(check, f"{name} {np.asarray(one).tolist()} at first, then {np.asarray(two).tolist()}")


def _require_fit(trial: Trial, decision: Allocation, check: str) -> None:
    problem = decision.problem
    if (decision.shares < 0).any():
        row, kind = np.unravel_index(decision.shares.argmin(), decision.shares.shape)
        who = _row_name(decision, int(row))
        trial.fail(check, f"{who} gets {decision.shares[row, kind]} of '{problem.types[kind]}'")
    busy = decision.job_shares.sum(axis=1)
    for job in np.flatnonzero(busy > 1.0 + TOLERANCE).tolist():
        trial.fail(check, f"'{problem.ids[job]}' runs {busy[job]} of the time")
    for column in np.flatnonzero(decision.used > problem.workers * (1.0 + TOLERANCE)).tolist():
        used, there = decision.used[column], problem.workers[column]
        trial.fail(check, f"'{problem.types[column]}' has {used} workers in use of {there}")
