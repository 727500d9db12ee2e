"""The planner of Compass as one would write it down from the paper's formulas: dictionaries, one worker after another.

It knows what the paper's cluster has: one accelerator type, one worker for each host.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

from fairway import Links, Stage, Workflow


@dataclass(frozen=True)
class PlainCluster:
    """By worker: seconds of work ahead of a new task, the models in memory and the bytes left."""

    load: Mapping[str, float]
    cached: Mapping[str, frozenset[str]]
    free: Mapping[str, float]
    links: Links


@dataclass(frozen=True)
class PlainPlan:
    """By task: its worker, its finish, and when it would have finished on every worker."""

    workers: Mapping[str, str]
    finish: Mapping[str, float]
    considered: Mapping[str, Mapping[str, float]]


def rank_order(workflow: Workflow, links: Links) -> list[str]:
    """The tasks by decreasing rank; a task comes before its successors since all ranks are above theirs."""
    stages = {stage.name: stage for stage in workflow.stages}
    after: dict[str, list[str]] = {name: [] for name in stages}
    for source, target in workflow.edges:
        after[source].append(target)
    ranks: dict[str, float] = {}

    def rank(name: str) -> float:
        if name not in ranks:
            moved = links.between_hosts(stages[name].output_bytes)
            ranks[name] = stages[name].seconds_on("gpu") + max(
                (moved + rank(each) for each in after[name]), default=0.0
            )
        return ranks[name]

    return sorted(stages, key=rank, reverse=True)


def plan(
    workflow: Workflow,
    order: list[str],
    cluster: PlainCluster,
    ingress: str,
    now: float,
    draws: Random,
    follow: Mapping[str, str] | None = None,
) -> PlainPlan:
    """Plan one request; with `follow`, take these workers and only say what each choice would have meant."""
    stages = {stage.name: stage for stage in workflow.stages}
    before: dict[str, list[str]] = {name: [] for name in stages}
    for source, target in workflow.edges:
        before[target].append(source)
    links = cluster.links
    available = {worker: now + load for worker, load in cluster.load.items()}
    cached = {worker: set(models) for worker, models in cluster.cached.items()}
    free = dict(cluster.free)
    workers: dict[str, str] = {}
    finish: dict[str, float] = {}
    considered: dict[str, dict[str, float]] = {}
    for name in order:
        stage = stages[name]
        ends = considered[name] = {}
        for worker, idle_from in available.items():
            if before[name]:
                ready = max(
                    finish[each] + (0.0 if workers[each] == worker else links.between_hosts(stages[each].output_bytes))
                    for each in before[name]
                )
            else:
                ready = now + (0.0 if worker == ingress else links.network(stage.input_bytes or 0))
            fetch = 0.0
            for model in stage.models:
                if model not in cached[worker]:
                    size = workflow.models[model].bytes
                    fetch += links.to_device(size) * (2 if free[worker] < size else 1)
            ends[worker] = max(idle_from, ready) + fetch + stage.seconds_on("gpu")
        chosen = follow[name] if follow else _best(ends, _preferred(before[name], stages, workers, ingress), draws)
        workers[name], finish[name] = chosen, ends[chosen]
        available[chosen] = ends[chosen]
        missing = [model for model in stage.models if model not in cached[chosen]]
        cached[chosen].update(missing)
        free[chosen] = max(0.0, free[chosen] - sum(workflow.models[model].bytes for model in missing))
    return PlainPlan(workers, finish, considered)


def _preferred(before: list[str], stages: Mapping[str, Stage], workers: Mapping[str, str], ingress: str) -> list[str]:
    if not before:
        return [ingress]
    return [workers[max(before, key=lambda each: stages[each].output_bytes)], ingress]


def _best(ends: Mapping[str, float], preferred: list[str], draws: Random) -> str:
    best = min(ends.values())
    equals = [worker for worker, end in ends.items() if end == best]
    return next((worker for worker in preferred if worker in equals), None) or draws.choice(equals)
