"""The situations of the conformance kit: small applications on a few invokers, of every kind that matters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from fairway.configure.application import Application
from fairway.configure.configuration import ConfigurationSpace
from fairway.configure.invokers import Invokers
from fairway.configure.platform import Platform
from fairway.configure.profile import SyntheticFunction
from fairway.configure.queues import Queue

Edges = tuple[tuple[str, str], ...]

KINDS: Mapping[str, Edges] = MappingProxyType(
    {
        "one": (("a", "a"),),
        "chain": (("a", "b"), ("b", "c"), ("c", "d"), ("d", "e")),
        "fork": (("a", "b"), ("a", "c"), ("c", "d"), ("b", "e"), ("d", "e")),
        "tangle": (("a", "b"), ("a", "c"), ("b", "d"), ("b", "e"), ("c", "e"), ("d", "f"), ("e", "f")),
        "two entries": (("a", "c"), ("b", "c")),
    }
)
"""The edges of the application, by kind of situation."""

_INVOKERS = 4
_SPACE = ConfigurationSpace((1, 2, 4, 8), (1, 2, 4), (1, 2, 3, 4, 7))


@dataclass(frozen=True, eq=False)
class Situation:
    """An application, the platform, invokers that are partly busy, and queues of different lengths and haste."""

    application: Application
    platform: Platform
    invokers: Invokers
    queues: tuple[Queue, ...]


def situation_of(kind: str, seed: int) -> Situation:
    """The situation of a kind and a seed, always the same."""
    generator = np.random.default_rng([seed, *kind.encode()])
    edges = tuple(edge for edge in KINDS[kind] if edge[0] != edge[1])
    names = sorted({name for edge in KINDS[kind] for name in edge})
    functions = {
        name: SyntheticFunction(
            float(generator.uniform(0.05, 1.0)),
            float(generator.uniform(0.1, 0.3)),
            float(generator.uniform(0.3, 0.7)),
            float(generator.uniform(0.8, 0.95)),
            float(generator.uniform(0.5, 0.8)),
        )
        for name in names
    }
    bare = Application.of({name: function.profile(_SPACE) for name, function in functions.items()}, edges, 1.0)
    longest = bare.workflow.critical_path([function.seconds for function in functions.values()]).seconds
    application = Application.of(
        {name: function.profile(_SPACE) for name, function in functions.items()},
        edges,
        float(generator.uniform(0.7, 1.6)) * longest,
        input_bytes={name: int(generator.integers(1, 3_000_000)) for name in names},
        cold_seconds={name: float(generator.uniform(3, 20)) for name in names},
        key=int(generator.integers(10)),
    )
    platform = Platform(noise=float(generator.choice([0.0, 0.1])))
    invokers = Invokers.idle(_INVOKERS, platform.cpu, platform.gpu)
    for invoker in range(_INVOKERS):
        invokers.take(invoker, int(generator.integers(platform.cpu + 1)), int(generator.integers(platform.gpu + 1)))
    queues = tuple(_queue(application, stage, generator) for stage in range(len(application)) for _ in range(3))
    return Situation(application, platform, invokers, queues)


def _queue(application: Application, stage: int, generator: np.random.Generator) -> Queue:
    length = int(generator.integers(1, 12))
    before = application.workflow.predecessors[stage]
    sources = [tuple(generator.integers(_INVOKERS, size=len(before)).tolist()) for _ in range(length)] if before else ()
    return Queue(
        stage,
        length,
        float(generator.uniform(-0.5, 1.0)) * application.slo_seconds,
        sources,
        waited=float(generator.exponential(0.05)),
        in_group=float(generator.exponential(0.1)),
        rate=float(generator.integers(0, 50)),
        failures=int(generator.integers(0, 5)),
        warm=generator.random(_INVOKERS) < 0.5 if generator.random() < 0.5 else None,
    )
