"""A policy's decision as plain JSON: the problem, what was decided, and why each job waits.

The problem has the form of a problem file, so `fairway allocate` takes it as it is. The decision before it, which some
policies read, stands beside it as far as they do: `problem_of` restores both, and deciding again gives the same.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any, Protocol

import numpy as np
from pydantic import TypeAdapter

from fairway.allocate.allocation import Allocation
from fairway.allocate.arrays import FloatArray
from fairway.allocate.packing.requests import WHOLE
from fairway.allocate.pairs import PairsOfKinds
from fairway.allocate.problem import Problem
from fairway.allocate.problem_file import ProblemFile
from fairway.cluster import Cluster


class Reason(Protocol):
    """Why a job waits: a code that stays the same over versions, and a sentence for people."""

    @property
    def code(self) -> str:
        """The code."""
        ...

    @property
    def sentence(self) -> str:
        """The sentence."""
        ...


_FILE: TypeAdapter[ProblemFile] = TypeAdapter(ProblemFile)

_USUAL = {
    "scale_factor": 1,
    "part": 1.0,
    "weight": 1.0,
    "steps_left": None,
    "elapsed": 0.0,
    "isolated_elapsed": 0.0,
    "slo_seconds": None,
    "entity": None,
}
"""What a problem file means where a job leaves a field out; there are many jobs, so it is left out."""


def decision_document(
    policy: str,
    problem: Problem,
    allocation: Allocation,
    reasons: Mapping[str, Reason],
    previous: Allocation | None = None,
) -> dict[str, Any]:
    """A decision as a JSON object; `policy` is the name with options by which it can be found again.

    `previous` is the decision before, where the problem does not carry it: that of an allocation never does.
    """
    previous = problem.previous if previous is None else previous
    return {
        "policy": policy,
        "problem": problem_document(problem),
        "kinds": problem.pairs.kinds.tolist() if isinstance(problem.pairs, PairsOfKinds) else None,
        "previous": None if previous is None else _allocation_document(previous),
        "decided": _allocation_document(allocation),
        "reasons": {job: {"code": reason.code, "sentence": reason.sentence} for job, reason in reasons.items()},
    }


def problem_of(decision: Mapping[str, Any]) -> Problem:
    """The problem of a decision that was written as JSON, with the decision before it."""
    file = _FILE.validate_python(decision["problem"])
    previous = decision["previous"]
    problem = Problem.of(
        Cluster(file.workers, file.prices or {}),
        file.jobs,
        file.pairs or (),
        file.entities,
        previous=None if previous is None else _allocation_of(previous),
        seed=file.seed or 0,
    )
    kinds = decision.get("kinds")  # which older decisions do not have
    if kinds is None:
        return problem
    return replace(problem, pairs=PairsOfKinds.of(np.array(kinds, dtype=np.int64), problem.pairs, len(problem.types)))


def problem_document(problem: Problem) -> dict[str, Any]:
    """A problem in the form of a problem file."""
    teams = list(problem.entities)
    sizes = problem.scale_factors.tolist()
    gangs = [_workers_of(size) for size in sizes]
    columns = {
        "scale_factor": gangs,
        "part": [size / count for size, count in zip(sizes, gangs, strict=True)],
        "weight": problem.weights.tolist(),
        "steps_left": _known(problem.steps_left),
        "elapsed": problem.elapsed.tolist(),
        "isolated_elapsed": problem.isolated_elapsed.tolist(),
        "slo_seconds": _known(problem.slo_seconds),
        "entity": [None if team < 0 else teams[team] for team in problem.team.tolist()],
    }
    rates = problem.throughputs.tolist()
    jobs = []
    for position, job in enumerate(problem.ids):
        facts = {name: values[position] for name, values in columns.items() if values[position] != _USUAL[name]}
        jobs.append({"id": job, "throughputs": _by_type(problem, rates[position])} | facts)
    return {
        "workers": dict(zip(problem.types, problem.workers.astype(int).tolist(), strict=True)),
        "prices": None if problem.dollars_per_hour is None else _by_type(problem, problem.dollars_per_hour.tolist()),
        "jobs": jobs,
        "pairs": _pair_documents(problem),
        "entities": {name: asdict(entity) for name, entity in problem.entities.items()},
        "seed": problem.seed,
    }


def _workers_of(size: float) -> int:
    """The fewest workers of which a job holds so much in all, an equal number of thousandths of each."""
    whole, workers = round(size * WHOLE), math.ceil(size)
    while whole % workers:
        workers += 1
    return workers


def _pair_documents(problem: Problem) -> list[dict[str, Any]]:
    if problem.pairs is None:
        return []
    rows = zip(problem.pairs.first.tolist(), problem.pairs.second.tolist(), problem.pairs.rates.tolist(), strict=True)
    return [
        {"jobs": [problem.ids[first], problem.ids[second]], "throughputs": _by_type(problem, rates)}
        for first, second, rates in rows
    ]


def _by_type(problem: Problem, values: list[Any]) -> dict[str, Any]:
    return dict(zip(problem.types, values, strict=True))


def _known(values: FloatArray) -> list[float | None]:
    return [None if np.isnan(value) else value for value in values.tolist()]


def _allocation_document(allocation: Allocation) -> dict[str, Any]:
    """The shares of jobs, as far as a following decision or a reader needs them; rows without a share are left out."""
    ids = allocation.ids
    rows = np.flatnonzero(allocation.shares.any(axis=1)).tolist()
    members = [(int(allocation.first[row]), int(allocation.second[row])) for row in rows]
    return {
        "policy": allocation.policy,
        "types": list(allocation.types),
        "objective": allocation.objective if np.isfinite(allocation.objective) else None,
        "sense": allocation.sense,
        "prices": None if allocation.prices is None else allocation.prices.tolist(),
        "jobs": [[ids[job] for job in pair if job >= 0] for pair in members],
        "shares": allocation.shares[rows].tolist(),
    }


def _allocation_of(document: Mapping[str, Any]) -> Allocation:
    rows: list[list[str]] = document["jobs"]
    ids = list(dict.fromkeys(job for row in rows for job in row))
    position = {name: number for number, name in enumerate(ids)}
    types: list[str] = document["types"]
    # The problem behind it stands for no more than the names; its rates are not read any more.
    names = Problem.of_arrays(dict.fromkeys(types, 0), np.zeros((len(ids), len(types))), ids=ids)
    prices, objective = document["prices"], document["objective"]
    return Allocation(
        document["policy"],
        names,
        np.array([position[row[0]] for row in rows], dtype=np.int64),
        np.array([position[row[1]] if len(row) > 1 else -1 for row in rows], dtype=np.int64),
        np.array(document["shares"], dtype=float).reshape(len(rows), len(types)),
        np.nan if objective is None else objective,
        document["sense"],
        prices=None if prices is None else np.array(prices),
    )
