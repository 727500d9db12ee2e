"""The numbers of one run of training jobs, as `fairway simulate training --json` prints them.

Completion times, rho and the averages are those of the jobs that count (`counted`: all, or those of a window); rounds,
solves, preemptions, cost, makespan and utilisation are those of the whole run. A number that nothing gives rise to,
such as the mean completion time where no job completed, is None: never NaN, which is not JSON.
"""

from __future__ import annotations

import math
from typing import Any, TypedDict

import numpy as np

from fairway.report.plain_json import plain
from fairway.report.training.record import BoolArray, FloatArray, Outcome, TrainingRecord


class Distribution(TypedDict):
    """The mean and the percentiles of some seconds."""

    mean: float | None
    p50: float | None
    p95: float | None
    p99: float | None
    max: float | None


class MeanAndMax(TypedDict):
    """The mean and the worst."""

    mean: float | None
    max: float | None


class JobTimes(TypedDict):
    """When a job came and ended, and the seconds between."""

    id: str
    arrival: float
    finish: float | None
    jct: float | None


class GroupSummary(TypedDict):
    """How the jobs of one team, or of one weight, fared."""

    jobs: int
    completed: int
    jct_seconds: Distribution
    rho: MeanAndMax


class RunSummary(TypedDict):
    """One member of `runs` in the JSON of `fairway simulate training`."""

    policy: str
    seed: int | None
    jobs: int
    completed: int
    unfinished: int
    unrunnable: list[str]
    failed: int
    jct_seconds: Distribution
    makespan_seconds: float | None
    utilization: float | None
    rounds: int
    solves: int
    leases_granted: int
    preemptions: int
    preemptions_per_job: float | None
    cost_dollars: float | None
    rho: MeanAndMax
    slo_violations: int | None
    skipped_rows: int
    unreadable_rows: int
    wall_seconds: float
    teams: dict[str, GroupSummary]
    weights: dict[str, GroupSummary]
    settings: dict[str, Any]
    per_job: list[JobTimes]


def summarize(record: TrainingRecord) -> RunSummary:
    """The numbers of a run."""
    jobs = record.jobs
    counted = jobs.counted
    outcome = jobs.outcome[counted]
    number = int(counted.sum())
    return {
        "policy": record.policy,
        "seed": seed_of(record),
        "jobs": number,
        "completed": int((outcome == Outcome.COMPLETED).sum()),
        "unfinished": int((outcome == Outcome.UNFINISHED).sum()),
        "unrunnable": [jobs.ids[k] for k in np.flatnonzero(counted & (jobs.outcome == Outcome.UNRUNNABLE))],
        "failed": int(((outcome == Outcome.FAILED) | (outcome == Outcome.CANCELLED)).sum()),
        "jct_seconds": _distribution(completion_times(record, counted)),
        "makespan_seconds": _finite(record.makespan_seconds),
        "utilization": utilization(record),
        "rounds": record.rounds,
        "solves": record.solves,
        "leases_granted": record.leases_granted,
        "preemptions": int(jobs.preemptions.sum()),
        "preemptions_per_job": float(jobs.preemptions[counted].mean()) if number else None,
        "cost_dollars": cost_dollars(record),
        "rho": _mean_and_max(finish_time_fairness(record, counted)),
        "slo_violations": _slo_violations(record),
        "skipped_rows": record.skipped_rows,
        "unreadable_rows": record.unreadable_rows,
        "wall_seconds": record.wall_seconds,
        "teams": _by_team(record),
        "weights": _by_weight(record),
        "settings": plain(record.settings),
        "per_job": _per_job(record),
    }


def seed_of(record: TrainingRecord) -> int | None:
    """The seed among the settings, None where they have none."""
    seed = record.settings.get("seed")
    return int(seed) if isinstance(seed, int | np.integer) else None


def completed(record: TrainingRecord, among: BoolArray) -> BoolArray:
    """Which of some jobs ran to their end."""
    return np.asarray(among & (record.jobs.outcome == Outcome.COMPLETED), dtype=np.bool_)


def completion_times(record: TrainingRecord, among: BoolArray) -> FloatArray:
    """Seconds from arrival to finish of the jobs that completed."""
    done = completed(record, among)
    return record.jobs.finish[done] - record.jobs.arrival[done]


def finish_time_fairness(record: TrainingRecord, among: BoolArray) -> FloatArray:
    """Rho of the jobs that completed: JCT over the time that an equal share of the cluster would have needed.

    A job without work has no such time (0), and no rho.
    """
    done = completed(record, among)
    isolated = record.jobs.isolated_seconds[done]
    known = np.isfinite(isolated) & (isolated > 0)
    return completion_times(record, among)[known] / isolated[known]


def utilization(record: TrainingRecord) -> float | None:
    """Busy worker-seconds over all worker-seconds: sum(busy) / (workers * makespan)."""
    available = sum(record.cluster.workers.values()) * record.makespan_seconds
    return _finite(float(record.busy_seconds.sum()) / available) if available > 0 else None


def cost_dollars(record: TrainingRecord) -> float | None:
    """What all jobs cost together; None where nothing has a price."""
    total = float(np.nansum(record.jobs.cost_dollars))
    # A cluster without prices may have been given some later in the run, so prices alone don't decide.
    return total if record.cluster.prices or total > 0 else None


def teams_of(record: TrainingRecord) -> list[str]:
    """The teams that own jobs, in order of arrival."""
    return list(dict.fromkeys(entity for entity in record.jobs.entities if entity is not None))


def owned_by(record: TrainingRecord, team: str | None) -> BoolArray:
    """Which jobs belong to a team."""
    return np.array([entity == team for entity in record.jobs.entities], dtype=np.bool_)


def _by_team(record: TrainingRecord) -> dict[str, GroupSummary]:
    return {team: _group(record, record.jobs.counted & owned_by(record, team)) for team in teams_of(record)}


def _by_weight(record: TrainingRecord) -> dict[str, GroupSummary]:
    """By weight where weights differ, and otherwise nothing."""
    weight = record.jobs.weight
    values = np.unique(weight[record.jobs.counted]).tolist()
    if len(values) < 2:
        return {}
    return {f"{value:g}": _group(record, record.jobs.counted & (weight == value)) for value in values}


def _group(record: TrainingRecord, among: BoolArray) -> GroupSummary:
    return {
        "jobs": int(among.sum()),
        "completed": int(completed(record, among).sum()),
        "jct_seconds": _distribution(completion_times(record, among)),
        "rho": _mean_and_max(finish_time_fairness(record, among)),
    }


def _slo_violations(record: TrainingRecord) -> int | None:
    """How many jobs missed their deadline, or None without deadlines.

    A job that is still unfinished when the run ends has missed only a deadline that has passed by then; one that can
    never run has missed any.
    """
    jobs = record.jobs
    due = jobs.counted & np.isfinite(jobs.deadline)
    if not due.any():
        return None
    done = jobs.outcome == Outcome.COMPLETED
    late = np.where(done, jobs.finish > jobs.deadline, jobs.deadline <= record.makespan_seconds)
    late |= jobs.outcome == Outcome.UNRUNNABLE
    return int((due & late).sum())


def _per_job(record: TrainingRecord) -> list[JobTimes]:
    jobs = record.jobs
    done = completed(record, jobs.counted)
    rows: list[JobTimes] = []
    for k in np.flatnonzero(jobs.counted).tolist():
        arrival = float(jobs.arrival[k])
        finish = float(jobs.finish[k]) if done[k] else None
        jct = None if finish is None else finish - arrival
        rows.append({"id": jobs.ids[k], "arrival": arrival, "finish": finish, "jct": jct})
    return rows


def _distribution(values: FloatArray) -> Distribution:
    if not values.size:
        return {"mean": None, "p50": None, "p95": None, "p99": None, "max": None}
    p50, p95, p99 = np.percentile(values, [50, 95, 99]).tolist()
    return {"mean": float(values.mean()), "p50": p50, "p95": p95, "p99": p99, "max": float(values.max())}


def _mean_and_max(values: FloatArray) -> MeanAndMax:
    if not values.size:
        return {"mean": None, "max": None}
    return {"mean": float(values.mean()), "max": float(values.max())}


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
