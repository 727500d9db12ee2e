"""Problems for the tests of the policies, and what every allocation must keep to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from fairway.allocate.allocation import Allocation
from fairway.allocate.pairs import Pairs
from fairway.allocate.problem import Problem
from fairway.cluster import Cluster
from fairway.jobs import Job
from tests.figures import policy_cases

NOWHERE = (
    Problem.of_arrays({"v100": 2}, np.zeros((0, 1))),
    Problem.of(Cluster({}), [Job("a", {"v100": 1.0}, steps_left=1.0), Job("b", {}, steps_left=1.0)]),
    Problem.of(Cluster({}), []),
    Problem.of_arrays({"v100": 0}, [[1.0], [2.0]], steps_left=[1.0, 1.0]),
    Problem.of_arrays({"v100": 2}, [[0.0], [1.0]], scale_factors=[1, 4], steps_left=[1.0, 1.0]),
)
"""No jobs; no cluster; neither; no workers; jobs that run on nothing or are too wide."""


@st.composite
def problems(draw: st.DrawFn, *, most_jobs: int = 7, with_pairs: bool = False) -> Problem:
    types = draw(st.integers(1, 3))
    jobs = draw(st.integers(0, most_jobs))

    def numbers(strategy: st.SearchStrategy[Any], size: int) -> list[Any]:
        return draw(st.lists(strategy, min_size=size, max_size=size))

    pairs = None
    if with_pairs and jobs > 1:
        couples = [(a, b) for a in range(jobs) for b in range(a + 1, jobs)]
        chosen = draw(st.lists(st.sampled_from(couples), unique=True))
        if chosen:
            kept = numbers(st.sampled_from([0.0, 0.3, 0.6, 0.8, 1.0]), 2 * types * len(chosen))
            first, second = np.array(chosen).T
            pairs = Pairs(first, second, np.reshape(kept, (len(chosen), types, 2)))
    rates = np.reshape(numbers(st.sampled_from([0.0, 0.5, 1.0, 2.0, 5.0]), jobs * types), (jobs, types))
    if pairs is not None:
        alone = np.stack([rates[pairs.first], rates[pairs.second]], axis=2)
        pairs = Pairs(pairs.first, pairs.second, pairs.rates * alone)
    return Problem.of_arrays(
        dict(zip(("v100", "p100", "k80"), numbers(st.integers(0, 5), types), strict=False)),
        rates,
        scale_factors=numbers(st.sampled_from([1, 1, 2, 4]), jobs),
        weights=numbers(st.sampled_from([1.0, 2.0]), jobs),
        steps_left=numbers(st.sampled_from([0.0, 1.0, 10.0, 12.0, 50.0]), jobs),
        elapsed=numbers(st.sampled_from([0.0, 3.0]), jobs),
        pairs=pairs,
        seed=draw(st.integers(0, 5)),
    )


def after(previous: Allocation, problem: Problem) -> Problem:
    """The same problem as the decision that follows."""
    return replace(problem, previous=previous)


def without(problem: Problem, job: int) -> Problem:
    """The problem once this job has left (problems without pairs only)."""
    assert problem.pairs is None
    keep = np.arange(len(problem)) != job
    ids = tuple(name for name, stays in zip(problem.ids, keep, strict=True) if stays)
    columns = ("throughputs", "scale_factors", "weights", "steps_left", "elapsed", "isolated_elapsed")
    columns += ("slo_seconds", "team")
    return replace(problem, ids=ids, **{column: getattr(problem, column)[keep] for column in columns})


def shares_of(allocation: Allocation) -> dict[str, dict[str, float]]:
    """Shares by type, of each job or pair ("a,b") that has any."""
    rows: list[Mapping[str, Any]] = allocation.to_dict()["allocation"]
    return {",".join(row["jobs"]): row["shares"] for row in rows}


def assert_feasible(allocation: Allocation) -> None:
    problem = allocation.problem
    assert (allocation.shares >= 0).all()
    assert (allocation.job_shares.sum(axis=1) <= 1 + 1e-9).all()
    assert (allocation.used <= problem.workers * (1 + 1e-9)).all()
    assert not allocation.job_shares[~problem.runnable].any()
    pairs = problem.shareable
    allowed = {} if pairs is None else dict(zip(keys_of(pairs), pairs.rates, strict=True))
    for a, b, shares in zip(allocation.first.tolist(), allocation.second.tolist(), allocation.shares, strict=True):
        if b >= 0 and shares.any():
            assert (allowed[a, b][shares > 0] > 0).all()


def assert_whole(allocation: Allocation) -> None:
    """Every job has all of the time on one type, or none."""
    assert set(allocation.shares.ravel().tolist()) <= {0.0, 1.0}
    assert_feasible(allocation)


def same(one: Allocation, other: Allocation) -> bool:
    return (
        np.array_equal(one.first, other.first)
        and np.array_equal(one.second, other.second)
        and np.array_equal(one.shares, other.shares)
        and one.objective == other.objective
    )


def golden(policy: str) -> Iterator[tuple[Problem, dict[str, Any]]]:
    """Every recorded result of the original implementation where no gang is wider than some type."""
    for case in policy_cases():
        result = case.results.get(policy)
        if result is not None and result["feasible"] and not case.wider_than_some_type:
            yield case.problem(), result


def keys_of(pairs: Pairs) -> list[tuple[int, int]]:
    return list(zip(pairs.first.tolist(), pairs.second.tolist(), strict=True))
