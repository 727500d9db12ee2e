"""The answers of all policies, with each of their flags, on drawn problems: a number for the shares, and the objective.

    python -m tests.allocate.drawn_allocations

writes them down anew, where a change of them is meant.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import fields, replace
from itertools import combinations
from pathlib import Path

import numpy as np

from fairway.allocate.policies import POLICIES
from fairway.allocate.problem import Problem
from fairway.allocate.registry import policy_of
from fairway.errors import FairwayError
from tests.allocate.problems import random_problem, with_teams

STORED = Path(__file__).with_suffix(".json")


def policies() -> Iterator[str]:
    """Each policy with none, each one and each two of its flags."""
    for name, policy in POLICIES.items():
        flags = [flag.name.replace("_", "-") for flag in fields(policy) if flag.default is False]  # type: ignore[arg-type]
        for count in range(3):
            for chosen in combinations(flags, count):
                yield f"{name}:{','.join(chosen)}".rstrip(":")


def _problems() -> Iterator[Problem]:
    for seed in range(6):
        problem = random_problem(
            seed, jobs=3 + seed, types=1 + seed % 3, gangs=(1, 1, 2), zeros=0.1, weights=(0.5, 2.0), pairs=seed != 3
        )
        problem = with_teams(problem, seed, depth=1 + seed % 2)
        restless = np.arange(len(problem)) % 3 - 1
        yield replace(problem, on=np.minimum(restless, len(problem.types) - 1), seed=seed, restart_seconds=30.0)


def answers(policy: str) -> list[float | str]:
    """What a policy answers to each problem; the kind of error where it has no answer."""
    found: list[float | str] = []
    decider = policy_of(policy)
    for problem in _problems():
        try:
            allocation = decider.allocate(problem)
        except FairwayError as error:
            found.append(type(error).__name__)
            continue
        weight = np.sqrt(allocation.first + 2.0) + np.cbrt(allocation.second + 3.0)
        columns = np.log(np.arange(len(problem.types)) + 3.0)
        found.append(float(allocation.objective))
        if not decider.agnostic:  # to which all types are alike, so that the last digit decides between them
            found.append(float((allocation.shares * weight[:, None] * columns).sum()))
    return found


if __name__ == "__main__":
    STORED.write_text(json.dumps({policy: answers(policy) for policy in policies()}, indent=1) + "\n")
