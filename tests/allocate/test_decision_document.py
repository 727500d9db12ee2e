"""A decision that was written down can be made again: parts of accelerators and kinds of jobs are as they were."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from fairway.allocate.decision_document import decision_document, problem_document, problem_of
from fairway.allocate.pairs import PairsOfKinds
from fairway.allocate.problem import Problem
from fairway.allocate.registry import policy_of
from fairway.cluster import Cluster
from fairway.jobs import Job

CLUSTER = Cluster({"v100": 2, "k80": 3})


def written(policy: str, problem: Problem) -> tuple[Problem, bool]:
    """The problem as it is read back, and whether it is decided alike."""
    decided = policy_of(policy).allocate(problem)
    document = json.loads(json.dumps(decision_document(policy, problem, decided, {})))
    again = problem_of(document)
    return again, bool(np.allclose(policy_of(policy).allocate(again).shares, decided.shares))


@pytest.mark.parametrize(("count", "part"), [(1, 0.5), (2, 0.5), (3, 0.5), (5, 0.333), (4, 1.0), (1, 0.001)])
def test_parts_of_accelerators_come_back(count: int, part: float) -> None:
    jobs = [Job("a", {"v100": 2.0, "k80": 1.0}, count, part=part), Job("b", {"v100": 3.0})]
    problem = Problem.of(CLUSTER, jobs)
    again, same = written("max-min-fairness", problem)
    assert again.scale_factors == pytest.approx(problem.scale_factors, abs=1e-12)
    assert same


def test_a_problem_without_parts_says_nothing_of_them() -> None:
    document = problem_document(Problem.of(CLUSTER, [Job("a", {"v100": 2.0}, 2), Job("b", {"v100": 3.0})]))
    assert [set(job) for job in document["jobs"]] == [{"id", "throughputs", "scale_factor"}, {"id", "throughputs"}]


@pytest.mark.parametrize("policy", ["max-min-fairness:space-sharing", "finish-time-fairness:space-sharing"])
def test_jobs_that_share_by_their_kinds_are_decided_alike(policy: str) -> None:
    rates = {"v100": 2.0, "k80": 1.0}
    problem = Problem.of(CLUSTER, [Job(f"j{number}", rates, steps_left=50.0 + number) for number in range(7)])
    table = np.zeros((3, 3, 2, 2))
    for one, other, together in ((0, 0, 0.7), (0, 1, 0.8), (1, 1, 0.6), (1, 2, 0.9)):
        table[one, other] = table[other, one] = together * np.array([[2.0, 2.0], [1.0, 1.0]])
    problem = replace(problem, pairs=PairsOfKinds(np.array([0, 1, 2, 0, 1, 2, 0]), table))
    again, same = written(policy, problem)
    assert isinstance(again.pairs, PairsOfKinds)
    assert again.pairs.kinds.tolist() == [0, 1, 2, 0, 1, 2, 0]
    assert again.pairs.rates.tolist() == problem.pairs.rates.tolist()  # type: ignore[union-attr]
    assert same


def test_kinds_of_which_no_two_fit_come_back() -> None:
    problem = Problem.of(CLUSTER, [Job("a", {"v100": 2.0}), Job("b", {"v100": 3.0})])
    problem = replace(problem, pairs=PairsOfKinds(np.array([0, 1]), np.zeros((2, 2, 2, 2))))
    again, same = written("max-min-fairness:space-sharing", problem)
    assert isinstance(again.pairs, PairsOfKinds)
    assert same
