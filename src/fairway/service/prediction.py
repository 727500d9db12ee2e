"""When a job is expected to start and to finish, for the answers of the service: the simulator run from the present.

It runs on a copy of the engine, so scheduling goes on meanwhile. Times are turned from the engine's clock to the
wall's.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime

from fairway.engine.training.engine import TrainingEngine
from fairway.engine.training.what_if import snapshot
from fairway.errors import InputError
from fairway.jobs import Job
from fairway.jobs.description import JobDescription, job_of
from fairway.live.training.engine_job import described_rates, engine_job
from fairway.service.representation import PredictionForm
from fairway.service.scheduler_view import SchedulerView
from fairway.service.words import span
from fairway.sim.prediction import Prediction, predict
from fairway.store.records import JobRecord
from fairway.store.states import HOLDING

_SECONDS = 1.0
"""How long a prediction may take."""

_NOT_SUBMITTED = "(not submitted)"
"""The name of a job that is only tried; no job can have it."""


def predicted(scheduler: SchedulerView, spec: JobDescription, team: str | None) -> PredictionForm | None:
    """When a job would start if it were submitted now; None if nothing can be said."""
    rates, left = described_rates(spec, scheduler.cluster, scheduler.table), spec.seconds_left(datetime.now(UTC))
    job = engine_job(
        _NOT_SUBMITTED,
        spec,
        rates,
        team=team,
        steps_left=spec.steps,
        slo_seconds=left,
        priority=scheduler.settings.priority_of(spec, team),
    )
    found = _predicted(scheduler, scheduler.look(snapshot), job)
    return None if found is None else _form(scheduler, found)


def predicted_of(scheduler: SchedulerView, engine: TrainingEngine, job: JobRecord) -> PredictionForm | None:
    """When a job that waits is expected to start, or one that runs to finish; `engine` is a copy that has the job."""
    found = _predicted(scheduler, engine, job.id)
    if found is None:
        return None
    form = _form(scheduler, found)
    if job.state in HOLDING and job.started_at is not None:
        started = {"start_at": job.started_at, "earliest_at": job.started_at, "latest_at": job.started_at}
        return form.model_copy(update=started)
    return form


def stored_spec(job: JobRecord) -> JobDescription | None:
    """What a job says that was stored; None if this version cannot read it any more."""
    try:
        return job_of(job.spec, job.id)
    except InputError:
        return None


def _predicted(scheduler: SchedulerView, engine: TrainingEngine, job: str | Job) -> Prediction | None:
    scale = scheduler.settings.time_scale
    try:
        return predict(engine, job, table=scheduler.table, seconds=_SECONDS, span=lambda seconds: span(seconds / scale))
    except InputError:
        return None


def _form(scheduler: SchedulerView, found: Prediction) -> PredictionForm:
    def wall(time: float | None) -> float | None:
        return None if time is None or not math.isfinite(time) else scheduler.wall(time)

    return PredictionForm(
        start_at=wall(found.start),
        earliest_at=wall(found.earliest),
        latest_at=wall(found.latest),
        finish_at=wall(found.finish),
        basis=found.basis,
    )
