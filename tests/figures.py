"""Reads the figures of `tests/fixtures`: what other programs answered, for tests and benchmarks to compare with.

Each file there says in its first line where its figures come from. They are in a compact form of our own: rows are
arrays, and what follows from other figures is left out. Here they get their names back.
"""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from fairway.allocate.arrays import FloatArray
from fairway.allocate.pairs import Pairs
from fairway.allocate.problem import Problem
from fairway.profiles import ThroughputTable, read_table

FIXTURES = Path(__file__).resolve().parent / "fixtures"

GAVEL_RATES = FIXTURES / "gavel/rates.csv"
"""The rates of Gavel's simulator, with every digit."""
GAVEL_CLUSTER_RATES = FIXTURES / "gavel/cluster_rates.csv"
"""The rates that Gavel's authors measured for their own cluster."""

_MILLISECONDS = 1e-3


@cache
def _content(name: str) -> Any:
    return json.loads((FIXTURES / name).read_text(encoding="utf-8"))


def _below_source(name: str) -> str:
    """The text of a CSV file without its first line, which names the source."""
    source, _, text = (FIXTURES / name).read_text(encoding="utf-8").partition("\n")
    assert source.startswith("# ")
    return text


def published_hours(policy: str, jobs: str) -> dict[float, float]:
    """Mean completion times that Gavel's authors had under a policy, by jobs per hour; `jobs` says with which gangs."""
    rows = csv.DictReader(_below_source("gavel/published_hours.csv").splitlines())
    return {float(row["rate"]): float(row["hours"]) for row in rows if (row["policy"], row["jobs"]) == (policy, jobs)}


# Gavel.


@cache
def gavel_rates() -> ThroughputTable:
    return read_table(GAVEL_RATES)


def gavel_traces() -> tuple[str, ...]:
    """The names of the traces."""
    return tuple(_content("gavel/traces.json")["traces"])


def gavel_trace(name: str) -> str:
    """A trace as Gavel writes them: in 10 columns, or in the 7 of its first ones. No job has an SLO."""
    content = _content("gavel/traces.json")
    lines = []
    for kind, steps, gang, arrival, *weight in content["traces"][name]:
        job_type = content["job_types"][kind]
        if name.endswith("_7col"):
            cells = (job_type, "-", "--steps", 0, steps, f"{arrival:f}", gang)
        else:
            cells = (job_type, "-", ".", "--steps", 0, steps, gang, *(weight or [1]), "-1.000000", arrival)
        lines.append("\t".join(map(str, cells)) + "\n")
    return "".join(lines)


def gavel_runs() -> dict[str, dict[str, Any]]:
    """By name, the runs of Gavel's own simulator; `trace` is the name of one of the traces."""
    return {run["name"]: run for run in _content("gavel/runs.json")["runs"]}


_JOB = (
    "job_type",
    "scale_factor",
    "priority_weight",
    "num_steps_remaining",
    "time_since_start",
    "cumulative_isolated_time",
    "slo_seconds",
)


@dataclass(frozen=True)
class PolicyCase:
    """An instance, and what Gavel's own policies answer: by its names for them, allocation, objective and optimum."""

    id: int
    seed: int
    cluster: dict[str, int]
    prices: dict[str, float]
    jobs: list[dict[str, Any]]
    results: dict[str, dict[str, Any]]

    @property
    def wider_than_some_type(self) -> bool:
        """Whether a gang needs more workers than some type has; the original lets it run there all the same."""
        return any(job["scale_factor"] > count for job in self.jobs for count in self.cluster.values())

    @property
    def types(self) -> list[str]:
        return list(self.cluster)

    @cached_property
    def workers(self) -> FloatArray:
        return np.array(list(self.cluster.values()), dtype=float)

    @cached_property
    def rates(self) -> FloatArray:
        return np.array([[job["throughputs"][name] for name in self.cluster] for job in self.jobs])

    def column(self, name: str) -> FloatArray:
        return np.array([np.nan if job[name] is None else job[name] for job in self.jobs], dtype=float)

    def shared_rates(self, first: int, second: int) -> FloatArray:
        """By type, how fast each of two jobs of the same size is beside the other; gangs get nowhere."""
        one, two = self.jobs[first], self.jobs[second]
        assert one["scale_factor"] == two["scale_factor"]
        both = gavel_rates().pair_rates(one["job_type"], two["job_type"], one["scale_factor"])
        return np.array([both.get(name, (0.0, 0.0)) for name in self.cluster])

    def problem(self) -> Problem:
        """The same in arrays, with every two jobs of the same size as a pair."""
        size = self.column("scale_factor")
        first, second = np.triu_indices(len(self.jobs), 1)
        equal = size[first] == size[second]
        first, second = first[equal], second[equal]
        rates = [self.shared_rates(a, b) for a, b in zip(first.tolist(), second.tolist(), strict=True)]
        return Problem.of_arrays(
            self.cluster,
            self.rates,
            scale_factors=size,
            weights=self.column("priority_weight"),
            steps_left=self.column("num_steps_remaining"),
            elapsed=self.column("time_since_start"),
            isolated_elapsed=self.column("cumulative_isolated_time"),
            pairs=Pairs(first, second, np.array(rates, dtype=float).reshape(-1, len(self.cluster), 2)),
            seed=self.seed,
        )


@cache
def policy_cases() -> tuple[PolicyCase, ...]:
    content = _content("gavel/policy_cases.json")
    return tuple(_policy_case(case, content["job_types"], content["prices"]) for case in content["cases"])


def mean_levels(policy: str) -> dict[int, float]:
    """By instance, the mean level of all jobs in what Gavel's policy of this name allocates."""
    return {int(case): level for case, level in _content("gavel/mean_levels.json")["mean_levels"][policy].items()}


def _policy_case(case: dict[str, Any], job_types: list[str], prices: dict[str, float]) -> PolicyCase:
    jobs = []
    for number, (kind, *rest) in enumerate(case["jobs"]):
        job = {"id": number, **dict(zip(_JOB, (job_types[kind], *rest), strict=True))}
        rates = gavel_rates().rates(job["job_type"], job["scale_factor"])
        job["throughputs"] = {name: rates[name] for name in case["cluster"]}
        jobs.append(job)
    nothing = dict.fromkeys(case["cluster"], 0.0)
    results = {}
    for policy, result in case["results"].items():
        results[policy] = {"feasible": True, **result}
        if "allocation" in result:
            given = {who: dict(zip(nothing, row, strict=True)) for who, row in result["allocation"].items()}
            results[policy]["allocation"] = {**{str(job["id"]): nothing for job in jobs}, **given}
    return PolicyCase(
        case["id"], case["seed"], case["cluster"], {name: prices[name] for name in nothing}, jobs, results
    )


# Compass.

NAVIGATOR_NAMES = {
    "hash:compat": "hashtask",
    "compass:compat": "decentralheft",
    "compass:compat,adjust": "decentralheft+adjust",
    "compass:compat,centralised": "centralheft",
    "compass:compat,adjust,centralised": "centralheft+adjust",
}
"""Our schedulers, and what the authors' simulator calls them."""


@dataclass(frozen=True, slots=True)
class NavigatorPoint:
    """What the authors' simulator answers with some seeds."""

    seeds: list[int]
    mean_slowdowns: list[float]
    median_slowdowns: list[float]
    events: float
    workers_used: float


@dataclass(frozen=True, slots=True)
class NavigatorJob:
    """A job of the authors' simulator; by stage, the worker that it is planned on and, in seconds, what became of it.

    That is when the task was queued, when its turn came, when it started and when it ended, as far as it came.
    """

    id: int
    workflow: int
    created: float
    ingress: int | None
    workers: tuple[int, ...]
    times: tuple[tuple[float, ...], ...]


def navigator_point(experiment: str, scheduler: str, point: str) -> NavigatorPoint:
    """A point of the experiment `scalability` (40 jobs per second, so many workers) or `small` (5 workers, a rate)."""
    return NavigatorPoint(*_content("navigator/slowdowns.json")[experiment][NAVIGATOR_NAMES[scheduler]][point])


def navigator_jobs(run: str) -> list[NavigatorJob]:
    """Every job of one run, in order of creation."""
    jobs = []
    for number, workflow, created, ingress, tasks in _content(f"navigator/tasks_{run}.json")["jobs"]:
        times = (list(accumulate(steps, initial=created))[1:] for _, *steps in tasks)
        jobs.append(
            NavigatorJob(
                number,
                workflow,
                created * _MILLISECONDS,
                ingress,
                tuple(worker for worker, *_ in tasks),
                tuple(tuple(time * _MILLISECONDS for time in of_task) for of_task in times),
            )
        )
    return jobs


@dataclass(frozen=True, slots=True)
class CompassReference:
    """Mean slow-downs of the reference simulation, by scheduler, at points of (workers, requests per second)."""

    points: tuple[tuple[int, float], ...]
    slowdowns: dict[str, list[float]]


def compass_reference() -> CompassReference:
    content = _content("compass_edge/slowdowns.json")
    points = tuple((workers, float(rate)) for workers, rate in content["points"])
    return CompassReference(points, content["slowdowns"])


# The scenario esg-apps.


def esg_scenario() -> dict[str, Any]:
    """How the reference simulation defines the scenario."""
    return dict(_content("esg_apps/scenario.json"))


def esg_planner_questions() -> list[dict[str, Any]]:
    """Questions to a planner, with the answers of the reference simulation."""
    return list(_content("esg_apps/planner.json")["cases"])


def esg_runs() -> dict[str, dict[str, Any]]:
    """By "scheduler setting", the first tasks and the totals of runs of the reference simulation."""
    return dict(_content("esg_apps/tasks.json")["runs"])


def esg_totals() -> dict[str, dict[str, list[float]]]:
    """By setting and scheduler, the part of requests in time and dollars per 1,000 of the reference simulation."""
    return dict(_content("esg_apps/totals.json")["totals"])


# Alibaba's traces.


def openb_pods() -> str:
    """Every tenth pod of the pod list of 2023."""
    return _below_source("alibaba/pods.csv")


def openb_nodes() -> str:
    """The node list of 2023, all of it."""
    header, *rows = _below_source("alibaba/nodes.csv").splitlines()
    assert header == "nodes,gpu,model"
    nodes = [rest for count, _, rest in (row.partition(",") for row in rows) for _ in range(int(count))]
    return "sn,gpu,model\n" + "".join(f"{number},{node}\n" for number, node in enumerate(nodes))


def genai_requests() -> str:
    """Every 50th of the image-generation requests of 2024, and the nine that ran for no time."""
    return _below_source("alibaba/requests.csv")


# VortexScheduler.


@dataclass(frozen=True)
class VortexRun:
    """A run of VortexScheduler: its SLO, when its requests are made, and what came of them (seconds)."""

    slo: float
    in_time: float
    least_latency: float
    created: FloatArray


def vortex_single() -> dict[str, float]:
    """By workflow, the time of a single request in seconds."""
    return {name: time * _MILLISECONDS for name, time in _content("vortex/runs.json")["single"].items()}


def vortex_run(name: str) -> VortexRun:
    slo, in_time, least, created = _content("vortex/runs.json")["runs"][name]
    return VortexRun(slo * _MILLISECONDS, in_time, least * _MILLISECONDS, np.array(created) * _MILLISECONDS)
