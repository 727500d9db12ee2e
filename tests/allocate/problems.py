"""Random problems for tests, each from a seed."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np

from fairway.allocate.arrays import FloatArray
from fairway.allocate.pairs import Pairs
from fairway.allocate.problem import Problem
from fairway.jobs import Entity

NASTY = ("ordinary", "homogeneous", "wide rates", "sparse", "all equal", "proportional rates", "small integers")
"""What rates can look like."""


def random_problem(
    seed: int,
    *,
    jobs: int = 6,
    types: int = 3,
    rates: str = "ordinary",
    zeros: float = 0.0,
    gangs: tuple[int, ...] = (1,),
    weights: tuple[float, float] = (1.0, 1.0),
    workers: tuple[int, int] = (1, 4),
    pairs: bool = False,
    copies: int = 1,
) -> Problem:
    """A problem of `jobs` different jobs, each standing there `copies` times.

    `rates` is one of `NASTY`, `zeros` the part of the rates that is 0 instead; scale factors are drawn from `gangs`,
    weights evenly on a logarithmic scale, counts of workers evenly.
    """
    rng = np.random.default_rng(seed)
    throughputs = _rates(rng, rates, jobs, types) * (rng.random((jobs, types)) >= zeros)
    beside = rng.uniform(0.3, 1.0, (jobs, jobs, types))
    low, high = np.log10(weights)
    elapsed = rng.uniform(0.0, 1e3, jobs)
    steps = 10.0 ** rng.uniform(2.0, 5.0, jobs)
    kind = np.tile(np.arange(jobs), copies)
    problem = Problem.of_arrays(
        {f"type-{column}": int(count) for column, count in enumerate(rng.integers(workers[0], workers[1] + 1, types))},
        throughputs[kind],
        scale_factors=rng.choice(gangs, jobs)[kind],
        weights=(10.0 ** rng.uniform(low, high, jobs))[kind],
        steps_left=steps[kind],
        elapsed=elapsed[kind],
        isolated_elapsed=(elapsed * rng.uniform(0.2, 1.0, jobs))[kind],
        slo_seconds=np.where(rng.random(jobs) < 0.3, steps, np.nan)[kind],
        prices={f"type-{column}": float(price) for column, price in enumerate(rng.uniform(0.1, 3.0, types))},
    )
    return replace(problem, pairs=_pairs(throughputs, beside, kind)) if pairs else problem


def with_teams(problem: Problem, seed: int, *, depth: int = 1) -> Problem:
    """The same jobs, most of them in teams of either rule; with a depth of 2 or more, teams contain teams."""
    rng = np.random.default_rng(seed)
    entities: dict[str, Entity] = {}
    for layer in range(depth):
        parents = [None, *entities] if layer else [None]
        for position in range(2):
            entities[f"team-{layer}-{position}"] = Entity(
                weight=float(rng.uniform(0.5, 3.0)),
                policy=str(rng.choice(["fairness", "fifo"])),  # type: ignore[arg-type]
                parent=parents[rng.integers(len(parents))],
            )
    return replace(problem, team=rng.integers(-1, len(entities), len(problem)), entities=entities)


def _rates(rng: np.random.Generator, kind: str, jobs: int, types: int) -> FloatArray:
    each = rng.uniform(0.5, 5.0, (jobs, 1))
    match kind:
        case "ordinary":
            rates = rng.uniform(0.5, 5.0, (jobs, types))
        case "homogeneous":
            rates = np.repeat(each, types, axis=1)
        case "wide rates":
            rates = 10.0 ** rng.uniform(-6.0, 6.0, (jobs, types))
        case "sparse":
            rates = rng.uniform(0.5, 5.0, (jobs, types)) * (rng.random((jobs, types)) < 0.4)
        case "all equal":
            rates = np.ones((jobs, types))
        case "proportional rates":
            rates = each * rng.choice([1.0, 2.0], types)
        case "small integers":
            rates = rng.integers(0, 4, (jobs, types)).astype(float)
        case _:
            raise ValueError(f"rates: {kind!r} given, expected one of {NASTY}")
    return rates


def _pairs(throughputs: FloatArray, beside: FloatArray, kind: np.ndarray) -> Pairs | None:
    """All pairs; how much a job keeps of its rate depends on what kinds it and its partner are."""
    both = np.array(list(combinations(range(len(kind)), 2)), dtype=np.int64).reshape(-1, 2)
    if not len(both):
        return None
    one, two = kind[both[:, 0]], kind[both[:, 1]]
    rates = np.stack([throughputs[one] * beside[one, two], throughputs[two] * beside[two, one]], axis=2)
    return Pairs(both[:, 0], both[:, 1], rates)
