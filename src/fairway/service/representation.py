"""The JSON forms of what the service answers, which are also what the OpenAPI document promises.

Times are seconds since 1970, durations seconds. `emulated` says that accelerators are emulated.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import Connection

from fairway.errors import InputError
from fairway.jobs.accelerators import AcceleratorRequest
from fairway.store.changes import Whereabouts, whereabouts
from fairway.store.listing import ASKED, NODES
from fairway.store.queries import JobHistory
from fairway.store.records import JobRecord
from fairway.store.states import HOLDING, JobState


class _Form(BaseModel):
    model_config = ConfigDict(frozen=True, from_attributes=True, ser_json_inf_nan="null")


class JobForm(_Form):
    """A job."""

    model_config = ConfigDict(title="Job")

    id: str | None = Field(description="Null only for a job that was not submitted (dry_run).")
    number: int | None = Field(description="Its place in the order of submission.")
    name: str | None
    array_id: str | None = Field(description="Of a job of an array, the id of the first one.")
    array_name: str | None = Field(description="The name that the jobs of its array have in common.")
    team: str | None
    state: JobState
    weight: float
    priority_class: str | None = Field(description="The class of priority that it names.")
    submitted_at: float
    submitted_by: str
    started_at: float | None
    ended_at: float | None
    changed_at: float
    attempt_count: int = Field(description="How often its processes were started.")
    failures: int
    exit_code: int | None
    reason_code: str | None = Field(description="Why it waits, or why it ended: a code that stays the same.")
    reason: str | None = Field(description="The same as a sentence.")
    steps: float | None
    steps_left: float | None
    steps_per_second: float | None = Field(description="As measured where it runs; null before it was measured.")
    checkpoint_steps_left: float | None
    accelerators: str = Field(description="What it asks for, as in '[a100, v100]:2'.")
    count: int = Field(description="How many workers it asks for.")
    part: float = Field(1.0, description="How much of the worker it asks for, where it is less than a whole one.")
    accelerator: str | None = Field(description="The type that it runs on.")
    emulated: bool
    cancel_requested_at: float | None


class AttemptForm(_Form):
    """One start of a job's processes."""

    model_config = ConfigDict(title="Attempt")

    attempt: int
    lease: int
    started_at: float
    ended_at: float | None
    outcome: str | None = Field(description="succeeded, failed, cancelled, preempted or lost; null while it runs.")
    exit_code: int | None
    reason: str | None


class LeaseForm(_Form):
    """The right to run on some workers."""

    model_config = ConfigDict(title="Lease")

    number: int
    jobs: list[str]
    accelerator: str
    workers: list[int]
    until: float
    planned_at: float
    granted_at: float | None
    extended_at: float | None
    ended_at: float | None
    reason: str | None
    part: float = Field(1.0, description="How much of each of the workers; 1 for whole ones.")


class RateForm(_Form):
    """How fast a job was seen to run on a type, alone or beside another job."""

    model_config = ConfigDict(title="Rate")

    accelerator: str
    beside: str | None
    steps_per_second: float
    measured_at: float


class JobDetails(JobForm):
    """A job with its past and its description."""

    model_config = ConfigDict(title="JobDetails")

    attempts: list[AttemptForm]
    leases: list[LeaseForm]
    rates: list[RateForm]
    spec: dict[str, Any] = Field(description="Its description, in the fields of a JobDescription that were given.")


class JobPage(_Form):
    """Some jobs; `next` is the `after` of the next page, null behind the last job."""

    model_config = ConfigDict(title="JobPage")

    jobs: list[JobForm]
    next: int | None


class PredictionForm(_Form):
    """When a job is expected to start and to finish."""

    model_config = ConfigDict(title="Prediction")

    start_at: float | None
    earliest_at: float | None
    latest_at: float | None
    finish_at: float | None
    basis: str = Field(description="How it was predicted.")


class DryRun(_Form):
    """A job as it would be, had it been submitted."""

    model_config = ConfigDict(title="DryRun")

    job: JobForm
    prediction: PredictionForm | None
    emulated: bool


class JobList(_Form):
    """Jobs that were submitted together, in their order."""

    model_config = ConfigDict(title="JobList")

    jobs: list[JobForm]


class Cancelled(_Form):
    """A job that is to be cancelled; one that runs is stopped first."""

    model_config = ConfigDict(title="Cancelled")

    id: str
    state: JobState


class CancelledJobs(_Form):
    """Jobs that are to be cancelled; `more` says that there are others, for which to ask again."""

    model_config = ConfigDict(title="CancelledJobs")

    jobs: list[Cancelled]
    more: bool


@dataclass(frozen=True, slots=True)
class Terms:
    """What a job's JSON needs besides the job: whether accelerators are emulated, and how much faster than the clock.

    The store holds rates by the seconds of the engine; people live by those of the clock.
    """

    emulated: bool
    time_scale: float = 1.0


def job_form(job: JobRecord, where: Whereabouts | None, terms: Terms) -> JobForm:
    """A job as JSON."""
    return JobForm(**_job_fields(job, where, terms))


def planned_job(job: JobRecord, terms: Terms) -> JobForm:
    """A job that is not in the store, as it would be there."""
    return JobForm(**_job_fields(job, None, terms) | {"id": None, "number": None})


def job_details(history: JobHistory, where: Whereabouts | None, terms: Terms) -> JobDetails:
    """A job as JSON, with its past."""
    return JobDetails(
        **_job_fields(history.job, where, terms),
        attempts=[AttemptForm.model_validate(attempt) for attempt in history.attempts],
        leases=[LeaseForm.model_validate(lease) for lease in history.leases],
        rates=[
            RateForm(
                accelerator=rate.accelerator,
                beside=rate.beside or None,
                steps_per_second=rate.steps_per_second * terms.time_scale,
                measured_at=rate.measured_at,
            )
            for rate in history.rates
        ],
        spec=dict(history.job.spec),
    )


def places_of(connection: Connection, jobs: Iterable[JobRecord]) -> dict[str, Whereabouts]:
    """Where those of the jobs run that do."""
    running = [job.id for job in jobs if job.state in HOLDING]
    return whereabouts(connection, running) if running else {}


def job_forms(connection: Connection, jobs: Sequence[JobRecord], terms: Terms) -> list[JobForm]:
    """Jobs as JSON, each with the place where it runs."""
    places = places_of(connection, jobs)
    return [job_form(job, places.get(job.id), terms) for job in jobs]


def listed_forms(connection: Connection, jobs: Sequence[Mapping[str, Any]], terms: Terms) -> list[JobForm]:
    """Jobs of a listing as JSON, each with the place where it runs."""
    running = [job["id"] for job in jobs if job["state"] in HOLDING]
    places = whereabouts(connection, running) if running else {}
    return [
        JobForm(
            **job,
            attempt_count=job["attempts"],
            **_surroundings(_asked(job[ASKED], job[NODES]), places.get(job["id"]), terms),
        )
        for job in jobs
    ]


def request_of(spec: Mapping[str, Any]) -> AcceleratorRequest:
    """The accelerators that a stored job asks for, of all of its machines."""
    resources = spec.get("resources")
    given = resources.get("accelerators") if isinstance(resources, Mapping) else None
    return _request(given, spec.get("num_nodes"))


@lru_cache(maxsize=1024)
def _asked(text: str | None, nodes: str | int | None) -> AcceleratorRequest:
    return _request(None if text is None else json.loads(text), nodes)


def _request(given: Any, nodes: str | int | None) -> AcceleratorRequest:
    try:
        request = AcceleratorRequest() if given is None else AcceleratorRequest.read(given)
        return replace(request, count=request.count * int(nodes or 1))
    except InputError:  # of a version that knew other forms
        return AcceleratorRequest()


_SAME = [name for name in JobForm.model_fields if name in {field.name for field in fields(JobRecord)}]


def _job_fields(job: JobRecord, where: Whereabouts | None, terms: Terms) -> dict[str, Any]:
    same = {name: getattr(job, name) for name in _SAME}
    return {
        **same,
        "attempt_count": job.attempts,
        "priority_class": job.spec.get("priority_class"),
        **_surroundings(request_of(job.spec), where, terms),
    }


def _surroundings(request: AcceleratorRequest, where: Whereabouts | None, terms: Terms) -> dict[str, Any]:
    """What a job asks for and what it has."""
    rate = where.steps_per_second if where else None
    return {
        "steps_per_second": None if rate is None else rate * terms.time_scale,
        "accelerators": str(request),
        "count": request.count,
        "part": request.part,
        "accelerator": where.accelerator if where else None,
        "emulated": terms.emulated,
    }
