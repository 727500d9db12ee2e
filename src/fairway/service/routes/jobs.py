"""Jobs over HTTP: submit, list, look at, cancel."""

from __future__ import annotations

import time
from typing import Annotated, Literal

from fastapi import APIRouter, Header, Path, Query, Request
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import Connection
from starlette.responses import Response

from fairway.jobs.description import JobDescription
from fairway.service.admission import admit
from fairway.service.authentication import Caller, Changer, changer, require_own_team, require_visible, team_of
from fairway.service.context import Service, ServiceOf, json_answer, refuse_other_parameters, service_of
from fairway.service.http.documents_in import JSON, TEXT, YAML, media_type, read_body
from fairway.service.http.openapi import JOB_BODY, problems_for
from fairway.service.prediction import predicted
from fairway.service.representation import (
    Cancelled,
    DryRun,
    JobDetails,
    JobForm,
    JobPage,
    Terms,
    job_details,
    job_form,
    listed_forms,
    places_of,
    planned_job,
)
from fairway.store.errors import IllegalChangeError
from fairway.store.job_changes import job_named, request_cancel
from fairway.store.listing import listing
from fairway.store.queries import job_history
from fairway.store.records import JobRecord, Reason
from fairway.store.states import JobState
from fairway.store.submissions import Submission

router = APIRouter(tags=["jobs"])

_KINDS = frozenset({JSON, TEXT, *YAML})
_LARGEST = 2**63 - 1

JobId = Annotated[str, Path(description="The id of a job.", max_length=128, examples=["job-1"])]


class ListQuery(BaseModel):
    """Which jobs to list."""

    model_config = ConfigDict(extra="forbid")

    state: list[JobState] = Field(default=[], description="Only jobs in these states.")
    team: str | None = Field(default=None, min_length=1, max_length=256, description="Only jobs of this team.")
    after: int | None = Field(default=None, ge=0, le=_LARGEST, description="The `next` of the page before.")
    limit: int = Field(default=100, ge=1, le=1000)
    order: Literal["newest", "oldest"] = "newest"


@router.post(
    "/jobs",
    status_code=201,
    summary="Submit a job",
    responses={
        200: {"model": JobForm | DryRun, "description": "The job had been submitted with this key; or a dry run."},
        201: {"model": JobForm, "description": "The job is stored durably."},
        **problems_for(403, 408, 409, 413, 415, 422),
    },
    openapi_extra={"requestBody": JOB_BODY},
)
async def submit_job(
    request: Request,
    dry_run: Annotated[bool, Query(description="Check the job and predict its start; store nothing.")] = False,
    idempotency_key: Annotated[
        str | None,
        Header(min_length=1, max_length=256, description="Sent again with the same key, the same job is answered."),
    ] = None,
) -> Response:
    """Take in a job in YAML or JSON; once it is acknowledged it is not lost.

    A job that can never run here is refused: malformed, with accelerators or a command that are not there, a gang
    larger than the cluster, or directories that are missing or cannot be written.
    """
    # The route that has to be fast: what FastAPI would do for it takes as long as the job itself.
    service, token = await service_of(request), await changer(request)
    refuse_other_parameters(request, "dry_run")
    kind = media_type(request, _KINDS)
    admitted = await admit(service, token, await read_body(request), kind)
    submission = Submission.of(
        admitted.description,
        team=admitted.team,
        submitted_by=f"{token.name[:200]} ({token.id})",
        idempotency_key=idempotency_key,
    )
    if dry_run:
        return await service.run_slowly(lambda: _tried(service, admitted.description, submission))
    taken = await service.intake.take(submission)
    if taken.new:
        service.scheduler.notify()
        return json_answer(job_form(taken.job, None, service.terms), 201)
    return await service.run(lambda: json_answer(service.store.read(_standing, taken.job, service.terms)))


def _tried(service: Service, spec: JobDescription, submission: Submission) -> Response:
    terms = service.terms
    job = planned_job(submission.record(0, at=time.time()), terms)
    prediction = predicted(service.scheduler, spec, submission.team)
    return json_answer(DryRun(job=job, prediction=prediction, emulated=terms.emulated))


def _standing(connection: Connection, job: JobRecord, terms: Terms) -> JobForm:
    return job_form(job, places_of(connection, [job]).get(job.id), terms)


@router.get(
    "/jobs",
    summary="List jobs, page by page",
    responses={200: {"model": JobPage}, **problems_for(403, 422)},
)
async def get_jobs(service: ServiceOf, token: Caller, query: Annotated[ListQuery, Query()]) -> Response:
    """Jobs in the order of submission; `next` of a page is the `after` of the following one."""
    require_own_team(token, query.team)
    terms = service.terms

    def page(connection: Connection) -> JobPage:
        found = listing(
            connection,
            states=query.state or None,
            team=query.team if query.team is not None else team_of(token),
            after=query.after,
            limit=query.limit,
            newest_first=query.order == "newest",
        )
        return JobPage(jobs=listed_forms(connection, found.jobs, terms), next=found.after)

    return await service.run(lambda: json_answer(service.store.read(page)))


@router.get(
    "/jobs/{job}",
    summary="Look at one job",
    responses={200: {"model": JobDetails}, **problems_for(404, 422)},
)
async def get_job(service: ServiceOf, token: Caller, job: JobId) -> Response:
    """A job with its attempts, leases, measured rates and its description."""
    terms = service.terms

    def details(connection: Connection) -> JobDetails:
        history = job_history(connection, job)
        record = require_visible(token, history.job)
        return job_details(history, places_of(connection, [record]).get(job), terms)

    return await service.run(lambda: json_answer(service.store.read(details)))


@router.post(
    "/jobs/{job}/cancel",
    status_code=202,
    summary="Cancel a job",
    responses={202: {"model": Cancelled}, **problems_for(403, 404, 409, 422)},
)
async def cancel_job(service: ServiceOf, token: Changer, job: JobId) -> Response:
    """Take a job back. One that waits is cancelled at once, one that runs is stopped first."""

    def cancel(connection: Connection) -> JobState:
        before = require_visible(token, job_named(connection, job)).state
        if before in {JobState.SUCCEEDED, JobState.FAILED}:
            raise IllegalChangeError(f"job '{job}' has {before} already and cannot be cancelled any more")
        reason = Reason("Cancelled", f"cancelled by {token.name[:200]}")
        return request_cancel(connection, job, at=time.time(), reason=reason)

    def cancelled() -> Response:
        state = service.store.write_vital(cancel)
        service.scheduler.notify(job)
        return json_answer(Cancelled(id=job, state=state), 202)

    return await service.run(cancelled)
