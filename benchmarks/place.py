"""How long does it take to plan a request, against the same search in plain Python?

The workflow is the translation of the paper's evaluation: five tasks, four of them with one of three models. Workers
have 14 GB; each holds about half of the eight models, by chance, and half of them have up to two seconds of work.

Timed for ours: taking the view of the ingress worker and `placer.plan(request, view, now, draws)`. For the peer:
its loop over tasks and workers, with the ranks worked out before, as ours has them. A turn plans many requests, one
after the other, and counts the median. The run fails if any choice of ours could finish earlier elsewhere by the peer's
formulas, or does not finish when we say.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import median

import numpy as np

from benchmarks import _place_peer as peer
from benchmarks._report import Options, Result, Turns, compared, spread, take_turns
from benchmarks._report import run as report
from fairway import Fleet, Links, Model, Request, Stage, StateTable, TaskGraph, Worker, Workflow, placer_of

KILOBYTE = 1024
MEMORY_BYTES = 14_000_000 * KILOBYTE
GIGABYTES = {"opt": 5.72, "marian": 0.8, "mt5": 2.0, "nli": 2.14, "vit": 1.7, "tts": 2.7, "detr": 1.8, "depth": 3.9}
NOW = 1000.0
PEER = "plain Python, one worker after another"


@dataclass(frozen=True)
class Instance:
    """The same cluster twice: as ours knows it and as the peer does."""

    workflow: Workflow
    graph: TaskGraph
    table: StateTable
    plain: peer.PlainCluster
    order: list[str]

    @classmethod
    def of(cls, workers: int, seed: int) -> Instance:
        generator = np.random.default_rng(seed)
        models = {name: Model(name, int(size * 1e6 * KILOBYTE)) for name, size in GIGABYTES.items()}
        workflow = translation(models)
        links = Links()
        fleet = Fleet.of([Worker(f"w{number}", MEMORY_BYTES) for number in range(workers)], models.values(), links)
        table = StateTable(fleet)
        load, cached, free = {}, {}, {}
        for number, worker in enumerate(fleet.workers):
            load[worker.name] = float(generator.choice([0.0, generator.uniform(0.0, 2.0)]))
            table.write_load(number, load[worker.name], -np.inf, NOW)
            held, room = set(), float(MEMORY_BYTES)
            for model in generator.permutation(len(models)).tolist():
                size = fleet.models[model].bytes
                if size <= room and generator.random() < 0.5:
                    table.write_cache(number, model, True, NOW)
                    held.add(fleet.models[model].name)
                    room -= size
            cached[worker.name], free[worker.name] = frozenset(held), room
        plain = peer.PlainCluster(load, cached, free, links)
        return cls(workflow, TaskGraph.of(workflow, fleet), table, plain, peer.rank_order(workflow, links))


def translation(models: dict[str, Model]) -> Workflow:
    tasks = [
        ("draft", "opt", 0.561),
        ("french", "marian", 0.441),
        ("chinese", "mt5", 0.778),
        ("japanese", "mt5", 0.803),
    ]
    stages = [
        Stage.of(name, seconds, model, input_bytes=KILOBYTE, output_bytes=2 * KILOBYTE)
        for name, model, seconds in tasks
    ]
    stages.append(Stage.of("answer", 0.001, input_bytes=2 * KILOBYTE, output_bytes=2 * KILOBYTE))
    languages = ("french", "chinese", "japanese")
    edges = [("draft", name) for name in languages] + [(name, "answer") for name in languages]
    return Workflow(tuple(stages), tuple(edges), models, "translation")


def measure(options: Options) -> Iterator[Result]:
    """All rows, in turn."""
    for workers, bound in ((5, 100e-6), (1000, 1e-3)):
        yield from answer(workers, bound, options)


def answer(workers: int, bound: float, options: Options) -> Iterator[Result]:
    """The time of a plan, once against our bound and once against the peer."""
    instance = Instance.of(workers, options.seed)
    placer = placer_of("compass")
    ingresses = np.random.default_rng(options.seed).integers(workers, size=1000).tolist()
    rounds = 10 if options.quick else 200
    plain_rounds = rounds if workers < 100 else 5
    draws, plain_draws = np.random.default_rng(options.seed), random.Random(options.seed)

    def ours(ingress: int) -> None:
        view = instance.table.view(ingress, NOW)
        placer.plan(Request(0, instance.graph, ingress), view, NOW, draws)

    def theirs(ingress: int) -> None:
        peer.plan(instance.workflow, instance.order, instance.plain, f"w{ingress}", NOW, plain_draws)

    check(instance, ingresses[:rounds])
    medians: tuple[list[float], list[float]] = [], []
    take_turns(
        (lambda: medians[0].append(middle(ours, ingresses[:rounds])), options.repeats),
        (lambda: medians[1].append(middle(theirs, ingresses[:plain_rounds])), options.repeats),
    )
    mine, other = (Turns(seconds, None) for seconds in medians)
    name = f"plan 5 tasks on {workers:,} workers"
    target = None if options.quick else bound
    yield Result(name, "s", median(mine.seconds), target=target, spread=spread(mine.seconds))
    yield compared(name, mine, PEER, other, None, {})


def middle(plan: Callable[[int], None], ingresses: list[int]) -> float:
    """The median seconds of planning a request at each of these workers."""
    seconds = []
    for ingress in ingresses:
        begin = time.perf_counter()
        plan(ingress)
        seconds.append(time.perf_counter() - begin)
    return median(seconds)


def check(instance: Instance, ingresses: list[int]) -> None:
    """End the run if one of our choices could finish earlier elsewhere, or not when we say."""
    placer, draws = placer_of("compass"), np.random.default_rng(0)
    for ingress in ingresses:
        request = Request(0, instance.graph, ingress)
        plan = placer.plan(request, instance.table.view(ingress, NOW), NOW, draws)
        judged = peer.plan(
            instance.workflow, plan.order, instance.plain, f"w{ingress}", NOW, random.Random(0), plan.assignment
        )
        for task, finish in plan.finish_seconds.items():
            best = min(judged.considered[task].values())
            if abs(finish - judged.finish[task]) > 1e-9 or finish > best + 1e-9:
                raise SystemExit(
                    f"'{task}' finishes at {finish}, by the formulas {judged.finish[task]}, at best {best}"
                )


if __name__ == "__main__":
    report("place", measure)
