"""A problem and a decision that are written down come back as they were."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from fairway.allocate.decision_document import problem_document
from fairway.allocate.problem import Problem
from fairway.allocate.problem_file import parse_problem
from fairway.jobs import Entity
from tests.allocate.problems import random_problem, with_teams


def again(problem: Problem) -> Problem:
    return parse_problem(json.dumps(problem_document(problem)), "document")


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("pairs", [False, True])
def test_a_problem_comes_back(seed: int, pairs: bool) -> None:
    problem = with_teams(random_problem(seed, gangs=(1, 2), weights=(0.1, 10.0), pairs=pairs), seed, depth=2)
    back = again(problem)
    assert (back.types, back.ids) == (problem.types, problem.ids)
    for field in ("workers", "throughputs", "scale_factors", "weights", "steps_left", "elapsed", "isolated_elapsed",
                  "slo_seconds", "dollars_per_hour"):  # fmt: skip
        np.testing.assert_array_equal(getattr(back, field), getattr(problem, field), field)
    names = [None if team < 0 else list(problem.entities)[team] for team in problem.team.tolist()]
    assert [None if team < 0 else list(back.entities)[team] for team in back.team.tolist()] == names
    assert dict(back.entities) == dict(problem.entities)
    if problem.pairs is not None:
        assert back.pairs is not None
        np.testing.assert_array_equal(back.pairs.first, problem.pairs.first)
        np.testing.assert_array_equal(back.pairs.second, problem.pairs.second)
        np.testing.assert_array_equal(back.pairs.rates, problem.pairs.rates)


def test_the_first_team_is_a_team_and_parts_of_workers_are_parts() -> None:
    problem = Problem.of_arrays({"a": 2}, [[1.0], [2.0]], ids=["x", "y"])
    problem = replace(problem, team=np.array([0, -1]), entities={"red": Entity()}, scale_factors=np.array([0.5, 2.0]))
    back = again(problem)
    assert back.team.tolist() == [0, -1]
    assert back.scale_factors.tolist() == [0.5, 2.0]
    assert back.dollars_per_hour is None
