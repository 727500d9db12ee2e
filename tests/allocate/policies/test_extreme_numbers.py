"""Every policy comes to an end, whatever finite numbers a problem is made of.

Numbers of sizes that no cluster yields are refused where they come in. Should some get past every door all the same, a
policy may decide badly about them, or refuse them, but a search that never ends would stop the scheduling of all jobs.
"""

from __future__ import annotations

import warnings
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairway.allocate.kernels.classes import Classes
from fairway.allocate.kernels.curves import Multiple
from fairway.allocate.kernels.market import Market
from fairway.allocate.policies import POLICIES
from fairway.allocate.problem import Problem
from fairway.allocate.registry import policy_of
from fairway.errors import FairwayError

SIZES = [5e-324, 1e-309, 1e-308, 1e-200, 1e-30, 1e-9, 1.0, 3.0, 1e12, 1e30, 1e200, 1.7e308]
sizes = st.sampled_from(SIZES) | st.floats(5e-324, 1.7e308)


@st.composite
def extreme_problems(draw: st.DrawFn) -> Problem:
    """A few jobs and types with numbers from one end of the range of floating-point numbers to the other."""
    jobs, types = draw(st.integers(1, 4)), draw(st.integers(1, 3))

    def column(values: st.SearchStrategy[float]) -> list[float]:
        return draw(st.lists(values, min_size=jobs, max_size=jobs))

    return Problem.of_arrays(
        {f"type-{number}": draw(st.integers(0, 3)) for number in range(types)},
        [draw(st.lists(st.just(0.0) | sizes, min_size=types, max_size=types)) for _ in range(jobs)],
        scale_factors=column(st.sampled_from([1.0, 2.0])),
        weights=column(st.just(1.0) | sizes),
        steps_left=column(sizes),
        elapsed=column(st.just(0.0) | sizes),
        isolated_elapsed=column(st.just(0.0) | sizes),
        slo_seconds=column(st.just(float("nan")) | sizes | sizes.map(lambda size: -size)),
        prices={f"type-{number}": draw(sizes) for number in range(types)},
    )


@pytest.mark.timeout(120)
@pytest.mark.parametrize("name", sorted(POLICIES))
@given(problem=extreme_problems())
@settings(deadline=None, max_examples=25)
def test_a_policy_ends_whatever_the_numbers(name: str, problem: Problem) -> None:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        # To give up is an end, too; a `LinAlgError` is a `ValueError`.
        with suppress(FairwayError, ArithmeticError, ValueError, AssertionError):
            policy_of(name).allocate(problem)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("weight", SIZES)
def test_the_search_for_prices_ends_beside_a_job_of_any_weight(weight: float) -> None:
    problem = Problem.of_arrays({"v100": 1, "k80": 1}, [[4.0, 1.0], [2.0, 1.0]], weights=[weight, 1.0])
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        demand = problem.proportional_throughputs * problem.weights
        classes = Classes.of(problem, [demand], space_sharing=False)
        curve = Multiple(classes.of_jobs(demand))
        market = Market(classes)
        raised = market.raise_along(curve, curve.reached(classes.fastest))
    assert not raised.level > raised.bound
