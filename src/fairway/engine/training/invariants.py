"""What must hold of the training engine between any two events: jobs, leases, workers and rounds agree.

Each check yields what it finds wrong, as the thing that it is about and a sentence; the engine tells the story of that
thing. It costs about as much as a decision about few jobs, so tests run it after every event, and no driver does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from fairway.engine.training.job_table import NONE
from fairway.engine.training.worker_pool import FREE, GONE

if TYPE_CHECKING:
    from fairway.engine.training.engine import TrainingEngine

Contradiction = tuple[str, str]
"""What it is about, as stories name it, and what is wrong."""

_CLOSE = 1e-9
"""Sums of rates and steps may differ by rounding, relative to their size."""


def contradictions(engine: TrainingEngine) -> Iterator[Contradiction]:
    """Everything that does not agree."""
    return chain(_of_jobs(engine), _of_progress(engine), _of_workers(engine), _of_leases(engine), _of_rounds(engine))


def _of_jobs(engine: TrainingEngine) -> Iterator[Contradiction]:
    """The table has every job once, under its number, and knows its description."""
    jobs, numbers = engine.jobs, engine.jobs.number.tolist()
    for job, count in Counter(jobs.ids).items():
        if count > 1:
            yield f"job {job}", f"job '{job}' stands {count} times in the table"
    if numbers != sorted(set(numbers)):
        yield "rounds", f"jobs are not in order of arrival: their numbers are {numbers}"
    if jobs._number_of != dict(zip(jobs.ids, numbers, strict=True)):
        yield "rounds", f"jobs are not found by their ids: {jobs._number_of}, but they are {jobs.ids}"
    for job in engine._admission.described.keys() ^ set(jobs.ids):
        yield f"job {job}", f"job '{job}' is {'not in the table' if job not in jobs else 'not described'}"


def _of_progress(engine: TrainingEngine) -> Iterator[Contradiction]:
    """Jobs have no fewer than no steps left, and run at no less than no speed, from no later than their restart on."""
    jobs = engine.jobs
    pooled = jobs.rates @ engine.workers.present
    latest = engine.now + engine.options.restart_seconds
    for values, wrong, what in (
        (jobs.left, ~(jobs.left >= 0), "has {} steps left"),
        (jobs.rate, ~(jobs.rate >= 0), "runs at {} steps per second"),
        (jobs.isolated, ~(jobs.isolated >= 0) | np.isinf(jobs.isolated), "has had {} seconds on an equal share"),
        (jobs.since, jobs.since > latest, f"makes progress from {{}} s on, but no restart ends after {latest} s"),
        (jobs.pooled, ~np.isclose(jobs.pooled, pooled, rtol=_CLOSE, atol=0.0), "is taken to run at {} on all workers"),
    ):
        for position in np.flatnonzero(wrong).tolist():
            yield f"job {jobs.ids[position]}", f"job '{jobs.ids[position]}' {what.format(values[position])}"


def _of_workers(engine: TrainingEngine) -> Iterator[Contradiction]:
    """Workers that are free and workers that are held are those that are present; the others are gone."""
    workers = engine.workers
    for column, name in enumerate(engine.types):
        holder = workers._holder[column]
        free, present = int(np.count_nonzero(holder == FREE)), int(np.count_nonzero(holder != GONE))
        if (free, present) != (workers.free[column], workers.present[column]):
            counted = f"{workers.free[column]} free of {workers.present[column]} present"
            yield f"{name} workers", f"{name}: {counted} were counted, but there are {free} of {present}"
        left = int(workers.room_of(column).sum())
        if left != workers.room[column]:
            yield f"{name} workers", f"{name}: {workers.room[column]} thousandths were counted, but there are {left}"
        if (workers.room_of(column) < 0).any():
            yield f"{name} workers", f"{name}: more than the whole of a worker is held"
        for worker in workers._leaving[column]:
            if not workers.holders(column, (worker,)):
                yield f"worker {name}/{worker}", f"worker {name}/{worker} leaves with its lease, but no lease holds it"
        if len(holder) != len(workers._node[column]):
            yield f"{name} workers", f"{name}: not every worker sits on a node"


def _of_leases(engine: TrainingEngine) -> Iterator[Contradiction]:
    """A lease is held by one job, or by two of a size that share, on as many present workers of one type."""
    jobs, workers = engine.jobs, engine.workers
    for position in np.flatnonzero((jobs.on == NONE) != (jobs.lease == NONE)).tolist():
        yield f"job {jobs.ids[position]}", f"job '{jobs.ids[position]}' runs without a lease, or holds one and does not"
    idle = (jobs.on == NONE) & ((jobs.rate != 0) | (jobs.beside != NONE) | (jobs.charged != NONE))
    for position in np.flatnonzero(idle).tolist():
        yield f"job {jobs.ids[position]}", f"job '{jobs.ids[position]}' waits, but runs, shares or is charged"
    held: dict[tuple[int, int], int] = {}
    for column, holder in enumerate(workers._holder):
        held |= {(column, lease): len(parts.workers) for lease, parts in workers._parts[column].items()}
        leases, counts = np.unique(holder[holder >= 0], return_counts=True)
        held |= {(column, lease): count for lease, count in zip(leases.tolist(), counts.tolist(), strict=True)}
    for lease, members in engine._leases.members().items():
        cause, names = f"lease {lease}", [jobs.ids[member] for member in members]
        columns, sizes = {int(jobs.on[member]) for member in members}, {int(jobs.scale[member]) for member in members}
        partners = [int(jobs.number[member]) for member in reversed(members)] if len(members) == 2 else [NONE]
        if len(members) > 2 or len(columns) > 1 or len(sizes) > 1:
            yield cause, f"lease {lease} is held by {names}, of sizes {sizes} on types {columns}"
        elif [int(jobs.beside[member]) for member in members] != partners:
            yield cause, f"lease {lease} is held by {names}, which do not know of each other"
        elif held.pop((columns.pop(), lease), 0) not in sizes:
            yield cause, f"lease {lease} of {names} does not hold as many workers as they ask for, {sizes}"
        if lease > engine._leases.last:
            yield cause, f"lease {lease} is numbered above the last one, {engine._leases.last}"
    for (column, lease), count in held.items():
        yield f"lease {lease}", f"lease {lease} holds {count} {engine.types[column]}, but no job holds it there"


def _of_rounds(engine: TrainingEngine) -> Iterator[Contradiction]:
    """While there are jobs there is a round, and it deals with jobs that are here."""
    jobs, rounds = engine.jobs, engine._rounds
    if len(jobs) and engine.round_end is None:
        yield "rounds", f"there are {len(jobs)} jobs, but no round in which one could run"
    if not np.isin(rounds._numbers, jobs.number).all():
        yield "rounds", "two jobs are to share, of which one is gone"
    for values, what in ((jobs.shares, "shares"), (jobs.owed, "debts")):
        if not np.isfinite(values).all():
            yield "rounds", f"the {what} of jobs are not all numbers"
