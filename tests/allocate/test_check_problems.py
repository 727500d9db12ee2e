"""The problems of the conformance kit are what their names say, and stay the same problem in another order."""

from __future__ import annotations

import numpy as np
import pytest

from fairway.allocate.check_problems import KINDS, problem_of, reordered
from fairway.allocate.problem import Problem

SEEDS = range(12)


def drawn(kind: str) -> list[Problem]:
    return [problem_of(kind, seed) for seed in SEEDS]


@pytest.mark.parametrize("kind", KINDS)
def test_every_field_is_filled_with_something_possible(kind: str) -> None:
    for problem in drawn(kind):
        size, types = len(problem), len(problem.types)
        assert problem.throughputs.shape == (size, types)
        assert len(set(problem.ids)) == size
        assert (problem.throughputs >= 0).all()
        assert (problem.weights > 0).all()
        assert set(problem.scale_factors) <= {1.0, 2.0, 16.0}
        assert (problem.isolated_elapsed <= problem.elapsed).all()
        assert (problem.steps_left >= 0).all()
        assert not (problem.slo_seconds <= 0).any()
        assert problem.team.min(initial=0) >= -1
        assert problem.team.max(initial=0) < len(problem.entities) == 3
        assert problem.entities["product"].policy == "fifo"
        assert problem.entities["vision"].parent == "research"
        assert len({entity.weight for entity in problem.entities.values()}) == 3
        assert problem.dollars_per_hour is not None
        assert len(problem.dollars_per_hour) == types
        if size > 1:
            assert problem.pairs is not None
            assert len(problem.pairs.first) == size * (size - 1) // 2, "every two jobs may share"
            assert (problem.pairs.first < problem.pairs.second).all()
            for first, second, rates in zip(
                problem.pairs.first, problem.pairs.second, problem.pairs.rates, strict=True
            ):
                alone = problem.throughputs[[first, second]].T
                assert (rates <= alone).all(), "no job is faster beside another than alone"
                if kind != "identical jobs":
                    assert not rates.any() or ((rates > 0) == (alone > 0)).all()
        else:
            assert problem.pairs is None
    assert [problem.seed for problem in drawn(kind)] == [problem.seed for problem in drawn(kind)]


def test_an_ordinary_problem_has_some_of_everything() -> None:
    problems = drawn("ordinary")
    assert min(map(len, problems)) >= 2
    assert len({len(problem) for problem in problems}) > 3
    for problem in problems:
        assert (problem.workers >= 1).all()
    jobs = np.concatenate([problem.slo_seconds for problem in problems])
    assert 0 < np.isnan(jobs).sum() < len(jobs), "some have a deadline"
    assert np.isnan(jobs).mean() > 0.5
    rates = np.concatenate([problem.throughputs for problem in problems])
    assert 0 < (rates == 0).mean() < 0.25, "a few jobs cannot run on a few types"
    assert {-1, 0, 1, 2} == set(np.concatenate([problem.team for problem in problems]).tolist())
    assert {1.0, 2.0} == set(np.concatenate([problem.scale_factors for problem in problems]).tolist())
    pairs = [problem.pairs.rates.any(axis=(1, 2)) for problem in problems if problem.pairs is not None]
    assert 0 < (~np.concatenate(pairs)).mean() < 0.3, "a few pairs cannot share"


def test_the_others_are_nasty_in_the_way_they_are_called() -> None:
    assert [len(problem) for problem in drawn("no jobs")] == [0] * len(SEEDS)
    assert [len(problem) for problem in drawn("one job")] == [1] * len(SEEDS)
    for problem in drawn("no types"):
        assert (problem.types, len(problem.workers)) == ((), 0)
        assert problem.pairs is not None
        assert problem.pairs.rates.shape[1:] == (0, 2)
    for problem in drawn("no workers"):
        assert problem.workers.tolist() == [0.0, 0.0, 0.0]
    missing = [np.flatnonzero(problem.workers == 0).tolist() for problem in drawn("a type without workers")]
    assert {tuple(each) for each in missing} == {(0,), (1,), (2,)}
    for problem in drawn("more gangs than workers"):
        assert problem.scale_factors.sum() > problem.workers.sum() > 0
        assert problem.workers.min() >= 1
    for problem in drawn("a gang too large"):
        assert (problem.scale_factors == 16.0).sum() == 1
        assert problem.workers.max() < 16
    assert 0.5 < np.mean([(problem.throughputs == 0).mean() for problem in drawn("many zero rates")]) < 0.8
    for problem in drawn("only zero rates"):
        assert not problem.throughputs.any()
        assert problem.pairs is not None
        assert not problem.pairs.rates.any()
    done = np.concatenate([problem.steps_left == 0 for problem in drawn("nothing left to do")])
    assert 0.3 < done.mean() < 0.7
    weights = np.concatenate([problem.weights for problem in drawn("extreme weights")])
    assert weights.min() < 1e-4
    assert weights.max() > 1e4
    rates = np.concatenate([problem.throughputs.ravel() for problem in drawn("extreme rates")])
    assert rates[rates > 0].min() < 1e-4
    assert rates.max() > 1e4


def test_identical_jobs_are_of_two_kinds_and_share_by_kind() -> None:
    for problem in drawn("identical jobs"):
        kinds = [tuple(row) for row in np.column_stack([problem.throughputs, problem.weights, problem.scale_factors])]
        assert len(problem) == 9
        assert len(set(kinds)) <= 2
        assert problem.pairs is not None
        seen: dict[object, list[float]] = {}
        for first, second, rates in zip(problem.pairs.first, problem.pairs.second, problem.pairs.rates, strict=True):
            assert seen.setdefault((kinds[first], kinds[second]), rates.tolist()) == rates.tolist()
    assert any(len({tuple(row) for row in problem.throughputs}) == 2 for problem in drawn("identical jobs"))


@pytest.mark.parametrize("seed", SEEDS)
def test_another_order_is_the_same_problem_job_by_job_and_pair_by_pair(seed: int) -> None:
    problem = problem_of("ordinary", seed)
    draws = np.random.default_rng(seed)
    order = draws.permutation(len(problem))[: draws.integers(1, len(problem) + 1)]
    other = reordered(problem, order)
    assert other.ids == tuple(problem.ids[job] for job in order)
    for name in (
        "throughputs",
        "scale_factors",
        "weights",
        "steps_left",
        "elapsed",
        "isolated_elapsed",
        "slo_seconds",
        "team",
    ):
        np.testing.assert_array_equal(getattr(other, name), getattr(problem, name)[order])

    def pairs_of(of: Problem) -> dict[frozenset[str], dict[str, list[float]]]:
        assert of.pairs is not None
        return {
            frozenset((of.ids[first], of.ids[second])): {
                of.ids[first]: rates[:, 0].tolist(), of.ids[second]: rates[:, 1].tolist()
            }
            for first, second, rates in zip(of.pairs.first, of.pairs.second, of.pairs.rates, strict=True)
        }  # fmt: skip

    assert pairs_of(other) == {both: rates for both, rates in pairs_of(problem).items() if both <= set(other.ids)}
    assert other.pairs is not None
    assert (other.pairs.first < other.pairs.second).all()
