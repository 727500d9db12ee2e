"""The problems of the conformance kit: small, with every field filled, ordinary ones and nasty ones.

Each kind is drawn from a seed, so that a failure can be looked at again: `problem_of("extreme rates", seed=3)`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import combinations
from types import MappingProxyType

import numpy as np

from fairway.allocate.arrays import FloatArray, IntArray
from fairway.allocate.pairs import Pairs
from fairway.allocate.problem import Problem
from fairway.jobs import Entity

_TYPES = ("v100", "p100", "k80")
_TEAMS = MappingProxyType(
    {
        "research": Entity(weight=2.0),
        "product": Entity(weight=1.0, policy="fifo"),
        "vision": Entity(weight=3.0, parent="research"),
    }
)


def problem_of(kind: str, seed: int) -> Problem:
    """The problem of this kind (one of `KINDS`) that belongs to a seed; every field is filled."""
    return KINDS[kind](np.random.default_rng(seed))


def reordered(problem: Problem, order: IntArray) -> Problem:
    """The problem of the jobs in this order; pairs of jobs that are not in it are left out."""
    position = np.full(len(problem), -1, dtype=np.int64)
    position[order] = np.arange(len(order))
    pairs = problem.pairs
    if pairs is not None:
        first, second = position[pairs.first], position[pairs.second]
        turned = (first > second)[:, None, None]
        rates = np.where(turned, pairs.rates[:, :, ::-1], pairs.rates)
        pairs = Pairs(np.minimum(first, second), np.maximum(first, second), rates).where((first >= 0) & (second >= 0))
    return replace(
        problem,
        ids=tuple(problem.ids[job] for job in order),
        throughputs=problem.throughputs[order],
        scale_factors=problem.scale_factors[order],
        weights=problem.weights[order],
        steps_left=problem.steps_left[order],
        elapsed=problem.elapsed[order],
        isolated_elapsed=problem.isolated_elapsed[order],
        slo_seconds=problem.slo_seconds[order],
        team=problem.team[order],
        pairs=pairs,
    )


def _ordinary(rng: np.random.Generator, jobs: int | None = None) -> Problem:
    size = int(rng.integers(2, 9)) if jobs is None else jobs
    workers = rng.integers(1, 5, len(_TYPES)).astype(float)
    throughputs = rng.uniform(1.0, 5.0, (size, len(_TYPES))) * (rng.random((size, len(_TYPES))) < 0.9)
    steps_left = rng.uniform(1e2, 1e4, size)
    elapsed = rng.uniform(0.0, 1e3, size)
    return Problem(
        types=_TYPES,
        workers=workers,
        ids=tuple(f"job-{position}" for position in range(size)),
        throughputs=throughputs,
        scale_factors=rng.choice([1.0, 1.0, 2.0], size),
        weights=rng.uniform(0.5, 4.0, size),
        steps_left=steps_left,
        elapsed=elapsed,
        isolated_elapsed=elapsed * rng.uniform(0.2, 1.0, size),
        slo_seconds=np.where(rng.random(size) < 0.3, steps_left * rng.uniform(0.5, 5.0, size), np.nan),
        team=rng.integers(-1, len(_TEAMS), size),
        entities=dict(_TEAMS),
        dollars_per_hour=rng.uniform(0.1, 3.0, len(_TYPES)),
        pairs=_all_pairs(rng, throughputs),
        seed=int(rng.integers(1000)),
    )


def _all_pairs(rng: np.random.Generator, throughputs: FloatArray) -> Pairs | None:
    """Every two jobs, slowed down by each other; a few of them cannot share."""
    both = np.array(list(combinations(range(len(throughputs)), 2)), dtype=np.int64).reshape(-1, 2)
    if not len(both):
        return None
    rates = throughputs[both].transpose(0, 2, 1) * rng.uniform(0.3, 1.0, (len(both), throughputs.shape[1], 2))
    rates[rng.random(len(both)) < 0.1] = 0.0
    return Pairs(both[:, 0], both[:, 1], rates)


def _with_rates(problem: Problem, throughputs: FloatArray) -> Problem:
    """Other rates, and pairs that keep of them what they kept before."""
    pairs = problem.pairs
    if pairs is not None:
        ratio = np.divide(
            throughputs, problem.throughputs, out=np.zeros_like(throughputs), where=problem.throughputs > 0
        )
        members = np.stack([pairs.first, pairs.second], axis=1)
        pairs = replace(pairs, rates=pairs.rates * ratio[members].transpose(0, 2, 1))
    return replace(problem, throughputs=throughputs, pairs=pairs)


def _no_types(rng: np.random.Generator) -> Problem:
    problem = _ordinary(rng)
    pairs = problem.pairs
    return replace(
        problem,
        types=(),
        workers=np.zeros(0),
        throughputs=problem.throughputs[:, :0],
        dollars_per_hour=np.zeros(0),
        pairs=None if pairs is None else replace(pairs, rates=pairs.rates[:, :0]),
    )


def _no_workers(rng: np.random.Generator) -> Problem:
    return replace(_ordinary(rng), workers=np.zeros(len(_TYPES)))


def _missing_type(rng: np.random.Generator) -> Problem:
    problem = _ordinary(rng)
    return replace(problem, workers=problem.workers * (np.arange(len(_TYPES)) != rng.integers(len(_TYPES))))


def _crowded(rng: np.random.Generator) -> Problem:
    return replace(_ordinary(rng, 12), workers=rng.integers(1, 3, len(_TYPES)).astype(float))


def _giant_gang(rng: np.random.Generator) -> Problem:
    problem = _ordinary(rng)
    gangs = problem.scale_factors.copy()
    gangs[rng.integers(len(problem))] = 16.0
    return replace(problem, scale_factors=gangs)


def _zero_rates(rng: np.random.Generator) -> Problem:
    problem = _ordinary(rng)
    return _with_rates(problem, problem.throughputs * (rng.random(problem.throughputs.shape) < 0.4))


def _hopeless(rng: np.random.Generator) -> Problem:
    problem = _ordinary(rng)
    return _with_rates(problem, np.zeros_like(problem.throughputs))


def _nothing_left(rng: np.random.Generator) -> Problem:
    problem = _ordinary(rng)
    return replace(problem, steps_left=problem.steps_left * (rng.random(len(problem)) < 0.5))


def _extreme_weights(rng: np.random.Generator) -> Problem:
    problem = _ordinary(rng)
    return replace(problem, weights=10.0 ** rng.uniform(-6.0, 6.0, len(problem)))


def _extreme_rates(rng: np.random.Generator) -> Problem:
    problem = _ordinary(rng)
    return _with_rates(problem, problem.throughputs * 10.0 ** rng.uniform(-6.0, 6.0, problem.throughputs.shape))


def _alike(rng: np.random.Generator) -> Problem:
    """Two kinds of jobs, several of each; who shares with whom depends on the kinds only."""
    problem = _ordinary(rng, 2)
    copies = np.sort(rng.integers(0, 2, 9))
    beside = rng.uniform(0.3, 1.0, (2, 2))
    both = np.array(list(combinations(range(len(copies)), 2)), dtype=np.int64)
    one, two = copies[both[:, 0]], copies[both[:, 1]]
    kept = np.stack([beside[one, two], beside[two, one]], axis=1)
    rates = problem.throughputs[np.stack([one, two], axis=1)].transpose(0, 2, 1) * kept[:, None, :]
    several = reordered(replace(problem, pairs=None), copies)
    names = tuple(f"job-{position}" for position in range(len(copies)))
    return replace(several, ids=names, pairs=Pairs(both[:, 0], both[:, 1], rates))


KINDS: Mapping[str, Callable[[np.random.Generator], Problem]] = MappingProxyType(
    {
        "ordinary": _ordinary,
        "no jobs": lambda rng: _ordinary(rng, 0),
        "one job": lambda rng: _ordinary(rng, 1),
        "no types": _no_types,
        "no workers": _no_workers,
        "a type without workers": _missing_type,
        "more gangs than workers": _crowded,
        "a gang too large": _giant_gang,
        "many zero rates": _zero_rates,
        "only zero rates": _hopeless,
        "nothing left to do": _nothing_left,
        "extreme weights": _extreme_weights,
        "extreme rates": _extreme_rates,
        "identical jobs": _alike,
    }
)
"""What `problem_of` can build."""
