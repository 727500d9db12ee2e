"""How long does it take to choose the configurations of a queue, against trying every plan?

Stages have 256 configurations each (8 batch sizes, 8 numbers of CPUs, 4 of GPU slices) with times by the formula of
synthetic profiles, each stage with parameters of its own. A question is a queue length and a time that is left, from
hardly enough to plenty; the five best plans with different first configurations are wanted.

Timed for ours: one question, with the tables that do not depend on it built before; what building takes has a row of
its own. The peer is compiled too: it tries every plan of three stages. Five stages have 10^12, so there it gets only
what nothing else of the same stage is both faster and cheaper than, for all stages but the first. The run fails if an
answer of ours is not as cheap as the peer's.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Literal

import numpy as np

from benchmarks._report import Options, Result, Turns, compared, spread, take_turns
from benchmarks._report import run as report
from fairway import Application, ConfigurationSpace, SyntheticFunction
from fairway.configure.platform import BARE
from fairway.configure.search.answer import Answer
from fairway.configure.search.brute_force import search_everything
from fairway.configure.search.esg_search import search_group
from fairway.configure.search.front import search_front
from fairway.configure.tables import Tables

SPACE = ConfigurationSpace((1, 2, 4, 8, 16, 32, 64, 128), (1, 2, 3, 4, 6, 8, 12, 16), (1, 2, 4, 7))
SMALL_SPACE = ConfigurationSpace((1, 2, 4), (1, 2, 4), (1, 2, 4, 7))
K = 5

Question = tuple[int, float]
Search = Callable[[int, float], Answer]


@dataclass(frozen=True)
class Instance:
    """A chain of stages, and the questions that are asked about it."""

    application: Application
    questions: tuple[Question, ...]

    @classmethod
    def of(cls, stages: int, space: ConfigurationSpace, seed: int) -> Instance:
        generator = np.random.default_rng(seed)
        functions = {
            f"stage {number}": SyntheticFunction(
                float(generator.uniform(0.08, 1.0)),
                float(generator.uniform(0.1, 0.25)),
                float(generator.uniform(0.5, 0.7)),
                float(generator.uniform(0.85, 0.92)),
                float(generator.uniform(0.5, 0.8)),
                float(generator.choice([2.0, 4.0])),
            )
            for number in range(stages)
        }
        names = list(functions)
        profiles = {name: function.profile(space) for name, function in functions.items()}
        application = Application.of(profiles, pairwise(names), 1.0)
        whole = sum(function.seconds for function in functions.values())
        lengths = generator.integers(1, 129, size=40).tolist()
        times = (generator.uniform(0.75, 3.0, size=40) * whole).tolist()
        return cls(application, tuple(zip(lengths, times, strict=True)))

    def tables(self) -> Tables:
        return Tables(self.application, BARE)

    def undominated(self) -> Tables:
        """The same, with only what may be of use after the first stage."""
        tables = self.tables()
        profiles = [self.application.profiles[0]]
        for stage in range(1, len(self.application)):
            kept = np.zeros(len(self.application.profiles[stage]), np.bool_)
            kept[tables.stage_front(stage).points[0]] = True
            profiles.append(self.application.profiles[stage].only(kept))
        return Tables(Application(self.application.workflow, tuple(profiles), 1.0), BARE)


def measure(options: Options) -> Iterator[Result]:
    """All rows, in turn."""
    space = SMALL_SPACE if options.quick else SPACE
    size = len(space.arrays()[0])
    three, five = Instance.of(3, space, options.seed), Instance.of(5, space, options.seed)
    tables, whole = three.tables(), tuple(range(3))
    everything = brute_force(tables, whole)
    name = f"3 stages of {size}"
    peer = "brute force, every plan"
    yield from against(f"front, {name}", front(tables), peer, everything, three, 1e-3, options)
    yield from against(f"ESG_1Q, {name}", esg(tables, "layered"), peer, everything, three, 10e-3, options)
    yield from against(f"ESG_1Q as A*, {name}", esg(tables, "a-star"), peer, everything, three, 10e-3, options)
    name = f"5 stages of {size}"
    peer = "brute force, undominated plans"
    everything = brute_force(five.undominated(), tuple(range(5)))
    yield from against(f"front, {name}", front(five.tables()), peer, everything, five, 2e-3, options, peer_turns=1)
    for instance in (three, five):
        yield built(instance, size, options)


def front(tables: Tables) -> Search:
    after = tables.application.after[0]
    return lambda length, seconds: search_front(tables, 0, after, length, seconds, K)


def esg(tables: Tables, form: Literal["layered", "a-star"]) -> Search:
    group = tuple(range(len(tables.application)))
    return lambda length, seconds: search_group(tables, group, length, seconds, K, form=form)


def brute_force(tables: Tables, stages: tuple[int, ...]) -> Search:
    return lambda length, seconds: search_everything(tables, stages, length, seconds, K)


def against(
    name: str,
    ours: Search,
    peer_name: str,
    peer: Search,
    instance: Instance,
    bound: float,
    options: Options,
    peer_turns: int | None = None,
) -> Iterator[Result]:
    """The time of an answer, once against our bound and once against the peer."""
    asked = instance.questions[:10] if options.quick else instance.questions
    asked_peer = asked[:1] if peer_turns else asked[:10]
    for length, seconds in asked_peer:
        check(ours(length, seconds), peer(length, seconds))
    medians: tuple[list[float], list[float]] = [], []
    take_turns(
        (lambda: medians[0].append(middle(ours, asked)), options.repeats),
        (lambda: medians[1].append(middle(peer, asked_peer)), peer_turns or options.repeats),
    )
    mine, other = (Turns(seconds, None) for seconds in medians)
    target = None if options.quick else bound
    yield Result(name, "s", median(mine.seconds), target=target, spread=spread(mine.seconds))
    yield compared(name, mine, peer_name, other, None, {})


def built(instance: Instance, size: int, options: Options) -> Result:
    """What it takes to build the tables of the front, once for each application."""
    (turns,) = take_turns((lambda: front(instance.tables())(128, 1.0), options.repeats))
    stages = len(instance.application)
    return Result(
        f"tables of the front, {stages} stages of {size}", "s", median(turns.seconds), spread=spread(turns.seconds)
    )


def middle(search: Search, questions: tuple[Question, ...]) -> float:
    """The median seconds of an answer."""
    seconds = []
    for length, left in questions:
        begin = time.perf_counter()
        search(length, left)
        seconds.append(time.perf_counter() - begin)
    return median(seconds)


def check(ours: Answer, peer: Answer) -> None:
    """End the run unless both found plans that cost the same."""
    mine, other = ([candidate.cost_dollars for candidate in answer.candidates] for answer in (ours, peer))
    if len(mine) != len(other) or not np.allclose(mine, other, rtol=1e-9, atol=0.0):
        raise SystemExit(f"ours cost {mine}, the peer's {other}")


if __name__ == "__main__":
    report("configure", measure)
