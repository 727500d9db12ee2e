"""Reads the problem of `fairway allocate`: the text of a JSON or YAML file in, a `Problem` out.

Types and ranges are those of the `Form`; what concerns several fields at once is checked where the fields come
together, in `Cluster` and `Problem.of`. Whatever is wrong becomes one line: where it is, what was given, what was
expected.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import numpy as np
from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from fairway.allocate.arrays import FloatArray
from fairway.allocate.problem import Problem
from fairway.cluster import Cluster
from fairway.documents import A_NAME, Form, Path, about, shown, written
from fairway.errors import InputError
from fairway.jobs.job import Entity, Job, Name, Pair
from fairway.magnitudes import AMOUNTS, FACTORS, MOST_WORKERS, Magnitude

Count = Annotated[int, Field(ge=0, le=MOST_WORKERS)]
NodeSize = Annotated[int, Field(ge=1, le=MOST_WORKERS)]
Dollars = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Seed = Annotated[int, Field(ge=0, lt=2**63)]


@dataclass(frozen=True, slots=True, config=ConfigDict(extra="forbid"))
class ProblemFile:
    """The fields of a problem file, as they stand there; null is the same as left out."""

    workers: dict[Name, Count]
    jobs: list[Job]
    prices: dict[Name, Dollars] | None = None
    pairs: list[Pair] | None = None
    entities: dict[Name, Entity] | None = None
    workers_per_node: dict[Name, NodeSize] | None = None
    seed: Seed | None = None

    def problem(self) -> Problem:
        """The problem that the file describes; refuses what does not fit together."""
        cluster = Cluster(self.workers, self.prices or {}, self.workers_per_node or {})
        self._check_gangs()
        problem = Problem.of(cluster, self.jobs, self.pairs or (), self.entities, seed=self.seed or 0)
        _check_magnitudes(problem)
        return problem

    def _check_gangs(self) -> None:
        """Refuse a gang that is too large for every type.

        Without any worker that would be all of them. An empty cluster is no slip, so there every job just cannot run.
        """
        largest = max(self.workers.values(), default=0)
        for position, job in enumerate(self.jobs):
            if job.scale_factor > (largest or MOST_WORKERS):
                raise InputError(
                    f"jobs[{position}].scale_factor: {shown(job.scale_factor)} given, but no accelerator type has "
                    f"more than {largest} workers; lower it, add workers or take the job out"
                )


_RATES = 'an object of steps per second by accelerator type, as in {"v100": 4.0}'
_RATE = "a number >= 0 (steps per second)"

_EXPECTED = {
    "": 'an object, as in {"workers": {"v100": 2}, "jobs": [{"id": "a", "throughputs": {"v100": 4.0}}]}',
    "workers": 'an object of counts by accelerator type, as in {"v100": 2}',
    "workers.*": f"a whole number from 0 to {MOST_WORKERS}",
    "jobs": "a list of jobs",
    "jobs.*": 'an object, as in {"id": "a", "throughputs": {"v100": 4.0}}',
    "jobs.*.id": A_NAME,
    "jobs.*.throughputs": _RATES,
    "jobs.*.throughputs.*": _RATE,
    "jobs.*.scale_factor": "a whole number >= 1 (workers of its gang)",
    "jobs.*.weight": "a number > 0",
    "jobs.*.steps_left": "a number >= 0, or null",
    "jobs.*.elapsed": "a number >= 0 (seconds)",
    "jobs.*.isolated_elapsed": "a number >= 0 (seconds)",
    "jobs.*.slo_seconds": "a number (seconds), or null",
    "jobs.*.entity": f"{A_NAME}, or null",
    "jobs.*.spread_throughputs": f"{_RATES}, or null",
    "jobs.*.spread_throughputs.*": _RATE,
    "jobs.*.job_type": f"{A_NAME}, or null",
    "jobs.*.preemptible": "true or false",
    "jobs.*.guessed": 'a list of accelerator types, as in ["v100"]',
    "jobs.*.guessed.*": A_NAME,
    "jobs.*.resumes": "true or false",
    "jobs.*.cpus": "a number >= 0",
    "jobs.*.memory_bytes": "a number >= 0 (bytes)",
    "jobs.*.priority": "a whole number from -1000000 to 1000000",
    "jobs.*.preempts": "true or false",
    "jobs.*.part": "a number > 0 and <= 1 (how much of each of its workers it holds)",
    "jobs.*.nodes": "a whole number >= 0 (the most nodes that its gang spans; 0: no matter how many)",
    "prices": 'an object of dollars per hour by accelerator type, as in {"v100": 0.74}',
    "prices.*": "a number > 0 (dollars per hour)",
    "pairs": "a list of pairs",
    "pairs.*": 'an object, as in {"jobs": ["a", "b"], "throughputs": {"v100": [3.0, 1.5]}}',
    "pairs.*.jobs": 'two job ids, as in ["a", "b"]',
    "pairs.*.jobs.*": "the id of a job",
    "pairs.*.throughputs": 'an object of two rates by accelerator type, as in {"v100": [3.0, 1.5]}',
    "pairs.*.throughputs.*": "two numbers >= 0 (steps per second), as in [3.0, 1.5]",
    "pairs.*.throughputs.*.*": _RATE,
    "entities": 'an object of entities by name, as in {"team-a": {"weight": 1.0}}',
    "entities.*": 'an object, as in {"weight": 1.0, "policy": "fairness"}',
    "entities.*.weight": "a number > 0",
    "entities.*.policy": '"fairness" or "fifo"',
    "entities.*.parent": "the name of an entity, or null",
    "workers_per_node": 'an object of node sizes by accelerator type, as in {"v100": 4}',
    "workers_per_node.*": f"a whole number from 1 to {MOST_WORKERS}",
    "seed": "a whole number from 0 to 9223372036854775807",
}
"""What each field has to be; `*` stands for a position in a list or a name that the file chooses."""

_FORM = Form(ProblemFile, _EXPECTED, {"": ProblemFile, "jobs.*": Job, "pairs.*": Pair, "entities.*": Entity})


def parse_problem(text: str | bytes, source: str) -> Problem:
    """Read the text of a problem file, JSON or YAML; `source` is its name in errors."""
    file = _FORM.read(text, source)
    try:
        return file.problem()
    except InputError as error:
        raise about(source, error) from None


def _check_magnitudes(problem: Problem) -> None:
    """Refuse numbers that no cluster yields: their sums and ratios would overflow, or ask too much of a solver.

    Prices are those of the cluster, which has refused them before.
    """
    amounts = {
        "steps_left": problem.steps_left,
        "elapsed": problem.elapsed,
        "isolated_elapsed": problem.isolated_elapsed,
        "slo_seconds": problem.slo_seconds,
    }
    for name, column in amounts.items():
        _check_sizes(column, AMOUNTS, lambda job, name=name: ("jobs", job, name))
    types = problem.types
    _check_sizes(problem.weights, FACTORS, lambda job: ("jobs", job, "weight"))
    _check_sizes(problem.throughputs, FACTORS, lambda job, column: ("jobs", job, "throughputs", types[column]))
    if problem.pairs is not None:
        _check_sizes(
            problem.pairs.rates, FACTORS, lambda pair, column, _: ("pairs", pair, "throughputs", types[column])
        )
    teams = list(problem.entities)
    team_weights = np.array([entity.weight for entity in problem.entities.values()], dtype=float)
    _check_sizes(team_weights, FACTORS, lambda team: ("entities", teams[team], "weight"))


def _check_sizes(values: FloatArray, bounds: Magnitude, path: Callable[..., Path]) -> None:
    size = np.abs(values)
    extreme = np.argwhere((size > bounds.most) | ((size < bounds.least) & (size > 0)))
    if len(extreme):
        where = tuple(extreme[0].tolist())
        raise InputError(f"{written(path(*where))}: {bounds.refusal(float(values[where]))}")
