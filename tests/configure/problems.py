"""Random configuration problems: chains and graphs of stages with a few configurations each."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from fairway.configure.application import Application
from fairway.configure.configuration import Configuration
from fairway.configure.problem import ConfigurationProblem
from fairway.configure.profile import Profile

SIZES = [Configuration(b, c, g) for b in (1, 2, 4) for c in (1, 2) for g in (1, 2, 3)]
FEW_TIMES = 5


def profile_of(generator: np.random.Generator, count: int, *, whole: bool = False) -> Profile:
    """A profile of so many configurations; with whole seconds, many of them are equal."""
    chosen = [SIZES[number] for number in generator.choice(len(SIZES), count, replace=False).tolist()]
    if all(configuration.batch > 1 for configuration in chosen):
        chosen[0] = Configuration(1, 4, 1)
    times = generator.integers(1, FEW_TIMES + 1, size=count) if whole else generator.uniform(0.1, 1.0, size=count)
    return Profile.of(zip(chosen, times.astype(float).tolist(), strict=True))


def chain(seed: int, k: int = 5) -> ConfigurationProblem:
    """One to four stages in a row."""
    generator = np.random.default_rng([seed, 1])
    names = [f"s{number}" for number in range(int(generator.integers(1, 5)))]
    profiles = {name: profile_of(generator, int(generator.integers(2, 8)), whole=seed % 5 == 0) for name in names}
    return problem_of(generator, profiles, list(pairwise(names)), k)


def graph(seed: int, k: int = 5) -> ConfigurationProblem:
    """Two to six stages with any edges; series-parallel or not."""
    generator = np.random.default_rng([seed, 2])
    names = [f"s{number}" for number in range(int(generator.integers(2, 7)))]
    profiles = {name: profile_of(generator, int(generator.integers(2, 5)), whole=seed % 5 == 0) for name in names}
    edges = [pair for pair in _pairs(names) if generator.random() < 0.45]
    edges += [(names[0], name) for name in names[1:] if not any(target == name for _, target in edges)]
    return problem_of(generator, profiles, edges, k)


def problem_of(
    generator: np.random.Generator, profiles: dict[str, Profile], edges: list[tuple[str, str]], k: int
) -> ConfigurationProblem:
    fastest = Application.of(profiles, edges, 1.0).workflow.critical_path().seconds
    application = Application.of(profiles, edges, fastest * float(generator.uniform(0.9, 2.0)))
    return ConfigurationProblem(application, int(generator.integers(1, 6)), k, group_size=10)


def _pairs(names: list[str]) -> list[tuple[str, str]]:
    return [(source, target) for number, target in enumerate(names) for source in names[:number]]
