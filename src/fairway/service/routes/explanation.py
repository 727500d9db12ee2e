"""Why a job waits, over HTTP: the engine's answer about a job that is active, the store's about one that is not.

The engine is copied on its own thread, which takes a few milliseconds, and the copy asked on another, which may take
seconds: scheduling goes on meanwhile.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import Connection
from starlette.responses import Response

from fairway.engine.training.engine import TrainingEngine
from fairway.engine.training.explanation import Explanation, explain, snapshot
from fairway.errors import InputError
from fairway.jobs.description import JobDescription
from fairway.service.authentication import Caller
from fairway.service.context import Service, ServiceOf, json_answer
from fairway.service.http.openapi import problems_for
from fairway.service.prediction import predicted_of, stored_spec
from fairway.service.representation import PredictionForm
from fairway.service.routes.events import visible_job
from fairway.service.routes.jobs import JobId
from fairway.service.scheduler_view import SchedulerView
from fairway.service.words import clock_time, span
from fairway.store.records import JobRecord
from fairway.store.states import JobState
from fairway.store.workers import all_workers

router = APIRouter(tags=["jobs"])

_PATIENCE_SECONDS = 2.0
"""How long to look for changes that would start a job."""

_OTHERWISE = {
    JobState.QUEUED: ("WaitingForRound", "it was submitted just now and is looked at in a moment"),
    JobState.RUNNING: ("Running", "it runs"),
    JobState.PREEMPTING: ("Preempting", "it saves a checkpoint and stops, to make room for others"),
    JobState.SUCCEEDED: ("Succeeded", "it has finished"),
    JobState.FAILED: ("Failed", "it has failed"),
    JobState.CANCELLED: ("Cancelled", "it was cancelled"),
}


class AheadForm(BaseModel):
    """A job that has, or gets, workers that the waiting one could use."""

    model_config = ConfigDict(title="Ahead", from_attributes=True)

    job: str
    team: str | None
    accelerator: str
    workers: int
    why: str


class PriceForm(BaseModel):
    """What a worker of a type costs by the last decision, and what it is worth with this job on it."""

    model_config = ConfigDict(title="Price", from_attributes=True)

    price: float | None
    worth: float | None
    affordable: bool


class ExplanationForm(BaseModel):
    """Why a job is where it is."""

    model_config = ConfigDict(title="Explanation", ser_json_inf_nan="null")

    job: str
    state: JobState
    code: str = Field(description="The dominant reason; stays the same over versions.")
    reason: str = Field(description="The same as a sentence, with names and numbers.")
    since: float = Field(description="When the job came into its state.")
    position: int | None = Field(default=None, description="Its place among the jobs that wait, from 1.")
    waiting: int | None = Field(default=None, description="How many wait.")
    ahead: list[AheadForm] = Field(
        default=[], description="Who has workers that it could use; the first of `ahead_count`."
    )
    ahead_count: int = 0
    prices: dict[str, PriceForm] | None = Field(default=None, description="By type; null where the policy has none.")
    prediction: PredictionForm | None = None
    smallest_change: str | None = Field(default=None, description="The smallest change that would start it.")
    emulated: bool


@router.get(
    "/jobs/{job}/explain",
    summary="Ask why a job waits",
    responses={200: {"model": ExplanationForm}, **problems_for(404, 422)},
)
async def explain_job(service: ServiceOf, token: Caller, job: JobId) -> Response:
    """One dominant reason, who is ahead, the prices, when it is expected to start, and what would start it now."""
    record = await visible_job(service, token, job)
    return await service.run_slowly(lambda: json_answer(_explained(service, record)))


def _explained(service: Service, job: JobRecord) -> ExplanationForm:
    scheduler = service.scheduler
    if job.active:
        engine = scheduler.look(snapshot)
        if job.id in engine.jobs and job.state is not JobState.PREEMPTING:
            found = _asked(scheduler, engine, job, service.store.read(drained_counts))
            return ExplanationForm(
                job=job.id,
                state=job.state,
                code=found.code,
                reason=found.reason,
                since=job.changed_at,
                position=found.position,
                waiting=found.waiting or None,
                ahead=[AheadForm.model_validate(one) for one in found.ahead],
                ahead_count=found.ahead_count,
                prices=_prices(found),
                prediction=predicted_of(scheduler, engine, job),
                smallest_change=found.smallest_change,
                emulated=scheduler.emulated,
            )
    code, sentence = _OTHERWISE[job.state]
    return ExplanationForm(
        job=job.id,
        state=job.state,
        code=job.reason_code or code,
        reason=job.reason or sentence,
        since=job.changed_at,
        emulated=scheduler.emulated,
    )


def _asked(scheduler: SchedulerView, engine: TrainingEngine, job: JobRecord, drained: Mapping[str, int]) -> Explanation:
    until = time.monotonic() + _PATIENCE_SECONDS
    scale = scheduler.settings.time_scale
    return explain(
        engine,
        job.id,
        drained=drained,
        other_rates=_other_rates(scheduler, stored_spec(job)),
        when=lambda at: clock_time(scheduler.wall(at)),
        span=lambda seconds: span(seconds / scale),
        enough=lambda: time.monotonic() > until,
    )


def drained_counts(connection: Connection) -> dict[str, int]:
    """How many workers of each type are drained."""
    counts: dict[str, int] = {}
    for worker in all_workers(connection):
        if worker.drained_at is not None and worker.lost_at is None:
            counts[worker.accelerator] = counts.get(worker.accelerator, 0) + 1
    return counts


def _other_rates(scheduler: SchedulerView, spec: JobDescription | None) -> dict[str, float]:
    """How fast a job would run on types of the cluster that it does not accept, where the profiles know."""
    if spec is None or spec.job_type is None or scheduler.table is None or not spec.accelerators.types:
        return {}
    with suppress(InputError):
        accepted = set(spec.accelerators.among(scheduler.cluster.types))
        known = scheduler.table.rates(spec.job_type, spec.workers)
        return {name: rate for name, rate in known.items() if name in scheduler.cluster.types and name not in accepted}
    return {}


def _prices(found: Explanation) -> dict[str, PriceForm] | None:
    if found.prices is None:
        return None
    return {name: PriceForm.model_validate(price) for name, price in found.prices.items()}
