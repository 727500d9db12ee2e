"""Experiments that others have published, as runs of ours with their figures beside them: `fairway reproduce`.

An experiment is a list of rows. A row has one or more runs, whose mean is ours, and the figure that it stands beside,
with whose figure that is: the authors' own, or that of a reference simulation where the paper's are not known to us. No
trace is needed: streams of jobs and requests are drawn as the originals' generators draw them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import mean
from typing import Any

import numpy as np

from fairway.cluster import Cluster
from fairway.errors import InputError
from fairway.options import nearest
from fairway.report.serving.metrics import summarize_serving
from fairway.report.serving.record import ServingRecord
from fairway.report.training.record import TrainingRecord
from fairway.sim.comparison import TrainingRun, Watcher, compare
from fairway.sim.serving import ServingOptions
from fairway.sim.serving_workload import EsgApps, ServingRun, ServingWorkload
from fairway.sim.submissions import TrainingOptions
from fairway.sim.workload import Workload
from fairway.traces import parse_generate

Record = TrainingRecord | ServingRecord
Run = TrainingRun | ServingRun


@dataclass(frozen=True, slots=True)
class PublishedRow:
    """What is compared, in which unit: the mean of `measure` over the runs, and the figure beside it."""

    name: str
    unit: str
    figure: float
    runs: tuple[Run, ...]
    measure: Callable[[Any], float]


@dataclass(frozen=True, slots=True)
class PublishedExperiment:
    """An experiment: what it asks, whose figures ours stand beside, and what to know when they differ.

    `rows` makes the rows, smaller ones if asked to be quick; those say nothing about the figures.
    """

    name: str
    about: str
    source: str
    rows: Callable[[bool], list[PublishedRow]]
    note: str = ""


@dataclass(frozen=True, slots=True)
class ReproducedRow:
    """A row with what came of it; `figure` and `difference` (a part of the figure) are None after a quick run."""

    name: str
    unit: str
    ours: float
    figure: float | None
    difference: float | None


def reproduce(
    name: str, *, quick: bool = False, processes: int | None = None, watcher: Watcher | None = None
) -> list[ReproducedRow]:
    """Run a published experiment, as many runs at a time as there are cores, and give its rows."""
    rows = experiment_of(name).rows(quick)
    runs = distinct_runs(rows)
    records = compare(runs, processes=processes, watcher=watcher)
    found = []
    for row in rows:
        ours = mean(row.measure(records[runs.index(run)]) for run in row.runs)
        difference = None if quick or not row.figure else ours / row.figure - 1.0
        found.append(ReproducedRow(row.name, row.unit, ours, None if quick else row.figure, difference))
    return found


def distinct_runs(rows: Sequence[PublishedRow]) -> list[Run]:
    """All runs of an experiment, each once; rows may look at the same one."""
    runs: list[Run] = []
    for row in rows:
        runs.extend(run for run in row.runs if run not in runs)
    return runs


def experiment_of(name: str) -> PublishedExperiment:
    """The experiment of this name."""
    if name not in EXPERIMENTS:
        known = ", ".join(EXPERIMENTS)
        raise InputError(f"'{name}' is no published experiment{nearest(name, list(EXPERIMENTS))}; known: {known}")
    return EXPERIMENTS[name]


# Gavel.

_CLUSTER = Cluster({"v100": 36, "p100": 36, "k80": 36})
_WINDOW = (4000, 5000)
_QUICK_WINDOW = (20, 60)
_NOTEBOOKS = "as the authors recorded them in the notebooks of their repository (stanford-futuredata/gavel)"
_GAVEL = "Gavel (Narayanan et al., OSDI 2020, arXiv:2008.09213)"


def _jct(generate: str, policy: str, hours: float, *, quick: bool) -> PublishedRow:
    options = TrainingOptions(window=_QUICK_WINDOW if quick else _WINDOW, compat="gavel")
    run = TrainingRun(Workload(generator=parse_generate(generate)), _CLUSTER, policy, options)
    rate = generate.partition(",")[0].removeprefix("rate=")
    return PublishedRow(f"{rate} jobs/h, {policy}: mean completion time", "h", hours, (run,), mean_hours)


def _single_gpu(quick: bool) -> list[PublishedRow]:
    figures = {"4.0": (16.82, 23.49, 17.08), "5.6": (28.96, 95.99, 104.12)}
    policies = ("max-min-fairness", "max-min-fairness:agnostic", "fifo")
    return [
        _jct(f"rate={rate},seed=0", policy, hours, quick=quick)
        for rate, column in figures.items()
        for policy, hours in zip(policies, column, strict=True)
    ]


def _multi_gpu(quick: bool) -> list[PublishedRow]:
    figures = {"max-min-fairness": 36.44, "max-min-fairness:agnostic": 70.54}
    return [_jct("rate=2.6,multi-gpu,seed=0", policy, hours, quick=quick) for policy, hours in figures.items()]


def _makespan(quick: bool) -> list[PublishedRow]:
    jobs, seeds = (20, (0,)) if quick else (300, (0, 1, 2))
    runs = tuple(
        TrainingRun(
            Workload(generator=parse_generate(f"jobs={jobs},lam=0,multi-gpu,seed={seed}")),
            _CLUSTER,
            "makespan",
            TrainingOptions(compat="gavel", seed=seed),
        )
        for seed in seeds
    )
    return [PublishedRow(f"{jobs} jobs at once, makespan", "h", 161.2, runs, makespan_hours)]


def mean_hours(record: TrainingRecord) -> float:
    """The mean completion time of the jobs that count."""
    counted = record.jobs.counted
    return float(np.nanmean((record.jobs.finish - record.jobs.arrival)[counted])) / 3600


def makespan_hours(record: TrainingRecord) -> float:
    """When the last job had ended."""
    return record.makespan_seconds / 3600


# Compass.

_COMPASS = "Compass (Yang et al., 2024, arXiv:2402.17652)"


def _scalability(quick: bool) -> list[PublishedRow]:
    figures = {
        "compass:compat": {20: 74.15, 40: 5.65, 60: 4.27, 100: 4.462, 140: 3.38, 240: 4.08},
        "hash:compat": {20: 113.74, 40: 37.62, 60: 17.21, 100: 6.89, 140: 4.18, 240: 2.97},
    }
    return [
        PublishedRow(
            f"{workers} workers, {scheduler}: median slow-down",
            "",
            figure,
            (_compass_run(scheduler, workers, 40.0, 42, quick=quick),),
            median_slowdown,
        )
        for scheduler, column in figures.items()
        for workers, figure in column.items()
        if not quick or workers in {60, 140}
    ]


def _edge(quick: bool) -> list[PublishedRow]:
    points = ((5, 2.0), (5, 3.0), (60, 40.0), (140, 40.0))
    figures = {
        "compass:as-published,count-running,no-prefetch": (1.41, 2.26, 1.30, 1.18),
        "jit": (3.3, 5.4, 2.5, 2.2),
        "heft": (5.7, 12.4, 11.6, 4.2),
        "hash": (6.2, 13.3, 11.5, 3.96),
    }
    return [
        PublishedRow(
            f"{workers} workers, {rate:g} requests/s, {scheduler}: mean slow-down",
            "",
            figure,
            tuple(
                _compass_run(scheduler, workers, rate, seed, quick=quick) for seed in ((42,) if quick else (42, 43, 44))
            ),
            mean_slowdown,
        )
        for scheduler, column in figures.items()
        for (workers, rate), figure in zip(points, column, strict=True)
    ]


def _compass_run(scheduler: str, workers: int, rate: float, seed: int, *, quick: bool) -> ServingRun:
    workload = ServingWorkload("compass-edge", "clients", workers, 100 if quick else 1000, rate)
    return ServingRun(workload, scheduler, ServingOptions(seed=seed))


def median_slowdown(record: ServingRecord) -> float:
    """The median of latency against the least that the workflow takes."""
    return summarize_serving(record)["slowdown"]["p50"] or math.nan


def mean_slowdown(record: ServingRecord) -> float:
    """The mean of latency against the least that the workflow takes."""
    return summarize_serving(record)["slowdown"]["mean"] or math.nan


# ESG.

_ESG = "ESG (Hui et al., HPDC 2024, doi:10.1145/3625549.3658657)"
_ESG_FIGURES: dict[str, dict[str, tuple[float, float]]] = {
    "strict-light": {
        "esg": (0.6472, 0.4276),
        "esg:margin=0.1": (0.9605, 0.5548),
        "infless": (0.7673, 0.5571),
        "fast-gshare": (0.5062, 0.4087),
        "orion": (0.9346, 0.6678),
    },
    "moderate-normal": {
        "esg": (0.8657, 0.2499),
        "esg:margin=0.1": (0.9691, 0.3009),
        "infless": (0.9638, 0.4749),
        "fast-gshare": (0.9081, 0.2623),
        "orion": (0.969, 0.3887),
    },
    "relaxed-heavy": {
        "esg": (1.0, 0.2493),
        "esg:margin=0.1": (1.0, 0.2507),
        "infless": (0.0, 0.3691),
        "fast-gshare": (0.3797, 0.2304),
        "orion": (0.9986, 0.2516),
    },
}


def _esg_apps(setting: str) -> Callable[[bool], list[PublishedRow]]:
    def rows(quick: bool) -> list[PublishedRow]:
        slo, load = setting.split("-")
        warmup, duration, seeds = (1.0, 5.0, (1,)) if quick else (60.0, 300.0, (1, 2, 3, 4, 5))
        options = [
            ServingOptions(noise=0.08, window=(warmup, warmup + duration), drain_seconds=120.0, seed=seed)
            for seed in seeds
        ]
        found = []
        for scheduler, (hit_rate, dollars) in _ESG_FIGURES[setting].items():
            runs = tuple(ServingRun(EsgApps(load, slo, seconds=warmup + duration), scheduler, each) for each in options)
            found.append(PublishedRow(f"{scheduler}: in time", "%", 100 * hit_rate, runs, percent_in_time))
            found.append(PublishedRow(f"{scheduler}: cost of 1,000", "$", dollars, runs, dollars_per_thousand))
        return found

    return rows


def percent_in_time(record: ServingRecord) -> float:
    """How many of 100 requests were answered within their SLO."""
    return 100 * (summarize_serving(record)["slo_hit_rate"] or 0.0)


def dollars_per_thousand(record: ServingRecord) -> float:
    """What 1,000 requests cost."""
    dollars = summarize_serving(record)["cost_per_1000_requests"]
    return math.nan if dollars is None else dollars


_REFERENCE = "a reference simulation written separately from Fairway; not figures of the paper"

EXPERIMENTS = {
    each.name: each
    for each in (
        PublishedExperiment(
            "gavel-single-gpu",
            "how long 1-GPU jobs take on 36 V100, 36 P100 and 36 K80 (jobs 4000 to 4999, seed 0)",
            f"{_GAVEL}, LAS and FIFO on continuous traces of 1-GPU jobs, figures {_NOTEBOOKS}",
            _single_gpu,
        ),
        PublishedExperiment(
            "gavel-multi-gpu",
            "the same with jobs of 1 to 8 GPUs, at the edge of what the cluster carries",
            f"{_GAVEL}, LAS on continuous traces of jobs of several GPUs, figures {_NOTEBOOKS}",
            _multi_gpu,
            "A handful of 8-GPU jobs decides this load, and the stream that the repository's generator draws today is "
            "not the one of the notebooks: docs/benchmarks.md has what others got from the authors' code.",
        ),
        PublishedExperiment(
            "gavel-makespan",
            "how soon 300 jobs of 1 to 8 GPUs that come at once are done, mean of 3 seeds",
            f"{_GAVEL}, makespan on static traces of jobs of several GPUs, figures {_NOTEBOOKS}",
            _makespan,
        ),
        PublishedExperiment(
            "compass-scalability",
            "40 requests per second on 20 to 240 workers, under Compass and Hash as the authors' simulator has them",
            f"{_COMPASS}, scalability simulation, figures that the authors published with their simulator",
            _scalability,
            "The authors' simulator is followed with its mistakes (compat); compass-edge is without them.",
        ),
        PublishedExperiment(
            "compass-edge",
            "four schedulers of workflows on 5 workers and on many, mean of 3 seeds",
            f"{_COMPASS}: {_REFERENCE}",
            _edge,
        ),
        *(
            PublishedExperiment(
                f"esg-{setting}",
                f"requests in time and dollars, {setting.replace('-', ' SLOs and ')} load, mean of 5 seeds",
                f"{_ESG}: {_REFERENCE}",
                _esg_apps(setting),
                "Of the paper we know the abstract: SLO hit rates better by 61 to 80 %, cost saved by 47 to 187 %.",
            )
            for setting in _ESG_FIGURES
        ),
    )
}
"""The published experiments, by name."""
