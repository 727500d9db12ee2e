"""The situations of the conformance kit: small applications on a few workers, of every kind that matters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np

from fairway.configure.application import Application
from fairway.configure.capacity import Capacity
from fairway.configure.configuration import ConfigurationSpace, Prices
from fairway.configure.platform import Platform
from fairway.configure.profile import Profile, SyntheticFunction
from fairway.configure.queues import Queue

_WORKERS = 4
_SPACE = ConfigurationSpace((1, 2, 4, 8), (1, 2, 4), (1, 2, 3, 4, 7))


@dataclass(frozen=True)
class Shape:
    """The stages and edges of an application, one letter for a stage; the size of a worker, and prices.

    Without accelerators, no configuration takes slices.
    """

    stages: str
    edges: str = ""
    cpu: int = 16
    gpu: int = 7
    prices: Prices = field(default_factory=Prices)


KINDS: Mapping[str, Shape] = MappingProxyType(
    {
        "one": Shape("a"),
        "chain": Shape("abcde", "ab bc cd de"),
        "fork": Shape("abcde", "ab ac cd be de"),
        "tangle": Shape("abcdef", "ab ac bd be ce df ef"),
        "two entries": Shape("abc", "ac bc"),
        "small workers": Shape("abc", "ab bc", cpu=2, gpu=3),
        "no accelerators": Shape("abc", "ab ac", cpu=4, gpu=0),
        "no prices": Shape("ab", "ab", prices=Prices(0.0, 0.0)),
    }
)
"""All kinds of situations, by name."""


@dataclass(frozen=True, eq=False)
class Situation:
    """An application, the platform, workers that are partly busy, and queues of different lengths and haste."""

    application: Application
    platform: Platform
    capacity: Capacity
    queues: tuple[Queue, ...]

    def idle(self) -> Capacity:
        """The same workers with nothing to do."""
        return Capacity.idle(len(self.capacity), self.platform.cpu, self.platform.gpu)


def situation_of(kind: str, seed: int) -> Situation:
    """The situation of a kind and a seed, always the same."""
    generator = np.random.default_rng([seed, *kind.encode()])
    shape = KINDS[kind]
    edges = [(edge[0], edge[1]) for edge in shape.edges.split()]
    functions = {
        name: SyntheticFunction(
            float(generator.uniform(0.05, 1.0)),
            float(generator.uniform(0.1, 0.3)),
            float(generator.uniform(0.3, 0.7)),
            float(generator.uniform(0.8, 0.95)),
            float(generator.uniform(0.5, 0.8)),
        )
        for name in shape.stages
    }
    profiles = {name: _profile(function, shape) for name, function in functions.items()}
    bare = Application.of(profiles, edges, 1.0)
    longest = bare.workflow.critical_path([function.seconds for function in functions.values()]).seconds
    application = Application.of(
        profiles,
        edges,
        float(generator.uniform(0.7, 1.6)) * longest,
        input_bytes={name: int(generator.integers(1, 3_000_000)) for name in shape.stages},
        cold_seconds={name: float(generator.uniform(3, 20)) for name in shape.stages},
        key=int(generator.integers(10)),
    )
    noise = float(generator.choice([0.0, 0.1]))
    platform = Platform(shape.prices, cpu=shape.cpu, gpu=shape.gpu, noise=noise)
    capacity = Capacity.idle(_WORKERS, platform.cpu, platform.gpu)
    for worker in range(_WORKERS):
        capacity.take(worker, int(generator.integers(platform.cpu + 1)), int(generator.integers(platform.gpu + 1)))
    queues = tuple(_queue(application, stage, generator) for stage in range(len(application)) for _ in range(3))
    return Situation(application, platform, capacity, queues)


def _profile(function: SyntheticFunction, shape: Shape) -> Profile:
    if shape.gpu:
        return function.profile(_SPACE)
    profile = function.profile(replace(_SPACE, gpus=(1,)))
    return Profile(profile.batch, profile.cpu, np.zeros_like(profile.gpu), profile.seconds)


def _queue(application: Application, stage: int, generator: np.random.Generator) -> Queue:
    length = int(generator.integers(1, 12))
    before = application.workflow.predecessors[stage]
    sources = [tuple(generator.integers(_WORKERS, size=len(before)).tolist()) for _ in range(length)] if before else ()
    return Queue(
        stage,
        length,
        float(generator.uniform(-0.5, 1.0)) * application.slo_seconds,
        sources,
        waited=float(generator.exponential(0.05)),
        in_group=float(generator.exponential(0.1)),
        rate=float(generator.integers(0, 50)),
        failures=int(generator.integers(0, 5)),
        warm=generator.random(_WORKERS) < 0.5 if generator.random() < 0.5 else None,
    )
