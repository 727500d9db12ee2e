"""The saved run of a simulated run of training jobs, made of its `TrainingRecord`."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fairway.report.plain_json import plain
from fairway.report.training.metrics import seed_of, summarize
from fairway.report.training.record import LeaseColumns, Outcome, TrainingRecord

_STATES = {
    Outcome.COMPLETED: "succeeded",
    Outcome.UNFINISHED: "queued",
    Outcome.UNRUNNABLE: "failed",
    Outcome.FAILED: "failed",
    Outcome.CANCELLED: "cancelled",
}
_DIGITS = 3
"""Times of simulated jobs are kept to the millisecond."""


def saved_training(record: TrainingRecord) -> dict[str, Any]:
    """A run with its jobs, leases and rounds; of leases only what the record kept."""
    jobs, cluster = record.jobs, record.cluster
    seed = seed_of(record)
    nowhere: list[None] = [None] * len(jobs)
    workers = [(column, number) for column, kind in enumerate(cluster.types) for number in range(cluster.workers[kind])]
    entities: dict[str, Any] = dict(record.settings.get("entities") or {})
    teams = list(dict.fromkeys([*entities, *(name for name in jobs.entities if name is not None)]))
    never = jobs.outcome == Outcome.UNRUNNABLE
    return {
        "kind": "training",
        "label": record.policy if seed is None else f"{record.policy}, seed {seed}",
        "policy": record.policy,
        "settings": plain(record.settings),
        "summary": {name: value for name, value in plain(summarize(record)).items() if name != "per_job"},
        "begins_at": None,
        "end": round(float(record.makespan_seconds), _DIGITS) if np.isfinite(record.makespan_seconds) else 0.0,
        "time_scale": 1.0,
        "emulated": False,
        "types": list(cluster.types),
        "prices": dict(cluster.prices),
        "per_node": dict(cluster.workers_per_node),
        "workers": {
            "type": [column for column, _ in workers],
            "number": [number for _, number in workers],
            "node": [None] * len(workers),
            "device": [None] * len(workers),
            "since": [None] * len(workers),
            "drained": [None] * len(workers),
            "lost": [None] * len(workers),
        },
        "teams": {"name": teams, "weight": [entities.get(name, {}).get("weight", 1.0) for name in teams]},
        "jobs": {
            "id": list(jobs.ids),
            "name": nowhere,
            "type": list(jobs.job_types),
            "team": list(jobs.entities),
            "user": nowhere,
            "state": [_STATES[Outcome(each)] for each in jobs.outcome.tolist()],
            "submitted": _known(jobs.arrival),
            "started": _known(jobs.start),
            "ended": _known(np.where(jobs.outcome == Outcome.UNFINISHED, np.nan, jobs.finish)),
            "count": jobs.scale_factor.tolist(),
            "asked": nowhere,
            "weight": _known(jobs.weight),
            "deadline": _known(jobs.deadline),
            "isolated": _known(jobs.isolated_seconds),
            "attempts": nowhere,
            "preemptions": jobs.preemptions.tolist(),
            "steps": nowhere,
            "steps_left": nowhere,
            "reason_code": ["NeverFits" if each else None for each in never.tolist()],
            "reason": ["it can never run on this cluster" if each else None for each in never.tolist()],
            "counted": jobs.counted.tolist(),
        },
        "leases": _leases(record.leases),
        "attempts": {name: [] for name in ("job", "attempt", "start", "end", "outcome", "exit_code", "reason")},
        "rates": {name: [] for name in ("job", "type", "beside", "steps_per_second", "measured")},
        "rounds": {
            "time": _known(record.timeline.time),
            "waiting": record.timeline.waiting.tolist(),
            "running": record.timeline.running.tolist(),
            "busy": record.timeline.busy.tolist(),
        },
        "decisions": {
            "entry": [number for number, _, _ in record.decisions],
            "time": [round(at, _DIGITS) for _, at, _ in record.decisions],
            "policy": [record.policy] * len(record.decisions),
            "body": [plain(body) for _, _, body in record.decisions],
        },
    }


def _leases(leases: LeaseColumns) -> dict[str, list[Any]]:
    workers, offset = leases.workers.tolist(), leases.offset.tolist()
    return {
        "number": list(range(1, len(leases) + 1)),
        "job": leases.job.tolist(),
        "partner": leases.partner.tolist(),
        "type": leases.accelerator.tolist(),
        "start": _known(leases.start),
        "end": _known(leases.end),
        "steps": _known(leases.steps),
        "partner_steps": _known(leases.partner_steps),
        "workers": [workers[offset[k] : offset[k + 1]] for k in range(len(leases))],
        "reason": [None] * len(leases),
    }


def _known(values: npt.NDArray[np.float64]) -> list[float | None]:
    """Rounded, and null where something did not happen."""
    return [value if np.isfinite(value) else None for value in np.round(values, _DIGITS).tolist()]
