"""Jobs over HTTP: submit, list, look at, cancel."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Annotated, Literal

from fastapi import APIRouter, Header, Path, Query, Request
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import Connection
from starlette.responses import Response

from fairway.documents import shown
from fairway.errors import InputError
from fairway.jobs.arrays import MOST_JOBS
from fairway.jobs.description import JobDescription
from fairway.jobs.expansion import expanded
from fairway.jobs.values import label_part
from fairway.service.admission import Admitted, admit
from fairway.service.authentication import Caller, Changer, changer, require_own_team, require_visible, team_of
from fairway.service.context import Service, ServiceOf, json_answer, refuse_other_parameters, service_of
from fairway.service.http.documents_in import JSON, TEXT, YAML, media_type, read_body
from fairway.service.http.openapi import JOB_BODY, problems_for
from fairway.service.prediction import predicted
from fairway.service.representation import (
    Cancelled,
    CancelledJobs,
    DryRun,
    JobDetails,
    JobForm,
    JobList,
    JobPage,
    Terms,
    job_details,
    job_form,
    job_forms,
    listed_forms,
    places_of,
    planned_job,
)
from fairway.store.errors import IllegalChangeError
from fairway.store.job_changes import job_named, request_cancel
from fairway.store.listing import listing
from fairway.store.queries import job_history
from fairway.store.records import JobRecord, Reason
from fairway.store.states import ACTIVE, JobState
from fairway.store.submissions import Submission
from fairway.store.tokens import Token

router = APIRouter(tags=["jobs"])

_KINDS = frozenset({JSON, TEXT, *YAML})
_LARGEST = 2**63 - 1
_MOST_LABELS = 10
_CANCELLED_AT_ONCE = 500

JobId = Annotated[str, Path(description="The id of a job.", max_length=128, examples=["job-1"])]


class Selection(BaseModel):
    """Which jobs are meant."""

    model_config = ConfigDict(extra="forbid")

    name: str | None = Field(default=None, min_length=1, max_length=256, description="Only jobs, or arrays, so called.")
    label: list[str] = Field(
        default=[], max_length=_MOST_LABELS, description="Only jobs with all of these labels, each as `name=value`."
    )
    team: str | None = Field(default=None, min_length=1, max_length=256, description="Only jobs of this team.")

    @property
    def labels(self) -> dict[str, str]:
        """The labels by name."""
        found: dict[str, str] = {}
        for one in self.label:
            name, equals, value = one.partition("=")
            if not equals:
                raise InputError(f"label: {shown(one)} given, expected name=value, as in sweep=lr")
            try:
                name, value = label_part(name), label_part(value)
            except InputError as error:
                raise InputError(f"label: {error}") from None
            if found.setdefault(name, value) != value:
                raise InputError(f"label: two values given for '{name}', but a job has one; keep one of them")
        return found


class ListQuery(Selection):
    """Which jobs to list."""

    state: list[JobState] = Field(default=[], description="Only jobs in these states.")
    after: int | None = Field(default=None, ge=0, le=_LARGEST, description="The `next` of the page before.")
    limit: int = Field(default=100, ge=1, le=1000)
    order: Literal["newest", "oldest"] = "newest"


@router.post(
    "/jobs",
    status_code=201,
    summary="Submit a job",
    responses={
        200: {
            "model": JobForm | JobList | DryRun,
            "description": "The job had been submitted with this key; or a dry run.",
        },
        201: {"model": JobForm | JobList, "description": "The job is stored durably, or all of several are."},
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

    Several documents in YAML, or a list in JSON, are several jobs, and so are arrays and matrices: all are taken in, or
    none.
    A job that can never run here is refused: malformed, with accelerators or a command that are not there, a gang
    larger than the cluster, or directories that are missing or cannot be written.
    """
    # The route that has to be fast: what FastAPI would do for it takes as long as the job itself.
    service, token = await service_of(request), await changer(request)
    refuse_other_parameters(request, "dry_run")
    kind = media_type(request, _KINDS)
    body = await read_body(request)
    admitted = await admit(service, token, body, kind)
    submissions = _submissions(admitted, token, idempotency_key)
    if dry_run:
        first_job = expanded(admitted[0].description)[0].job
        if len(admitted) > 1:
            raise InputError(f"dry_run: {len(admitted)} jobs given; try them one by one")
        return await service.run_slowly(lambda: _tried(service, first_job, submissions[0]))
    taken = await service.intake.take(submissions)
    new = any(one.new for one in taken)
    if new:
        service.scheduler.notify()
    if len(submissions) == 1 and not admitted[0].description.many and not body.lstrip().startswith(b"["):
        if new:
            return json_answer(job_form(taken[0].job, None, service.terms), 201)
        return await service.run(lambda: json_answer(service.store.read(_standing, taken[0].job, service.terms)))
    jobs = [one.job for one in taken]
    return await service.run(
        lambda: json_answer(JobList(jobs=service.store.read(job_forms, jobs, service.terms)), 201 if new else 200)
    )


def _submissions(admitted: Sequence[Admitted], token: Token, key: str | None) -> list[Submission]:
    """What is to be stored; of jobs that come together, each has a key of its own."""
    count = sum(one.count for one in admitted)
    if count > MOST_JOBS:
        raise InputError(f"job: {count} jobs given; at most {MOST_JOBS} are made at once")
    members = [(member, one.team) for one in admitted for member in expanded(one.description)]
    return [
        Submission.of(
            member.job,
            team=team,
            submitted_by=f"{token.name[:200]} ({token.id})",
            sees_team=team_of(token),
            idempotency_key=key if key is None or not number else f"{key}/{number}",
            together=count,
            array_name=member.array_name,
            array_position=member.position,
        )
        for number, (member, team) in enumerate(members)
    ]


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
    terms, labels = service.terms, query.labels

    def page(connection: Connection) -> JobPage:
        found = listing(
            connection,
            states=query.state or None,
            team=query.team if query.team is not None else team_of(token),
            name=query.name,
            labels=labels,
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
    "/jobs/cancel",
    status_code=202,
    summary="Cancel the jobs of a name, of some labels or of a team",
    responses={202: {"model": CancelledJobs}, **problems_for(403, 422)},
)
async def cancel_jobs(service: ServiceOf, token: Changer, query: Annotated[Selection, Query()]) -> Response:
    """Take back those of the jobs that wait or run, some hundreds at once; `more` says that others are left."""
    require_own_team(token, query.team)
    labels = query.labels
    if query.name is None and not labels and query.team is None:
        raise InputError("no jobs named; give a name, a label or a team")

    def cancel(connection: Connection) -> CancelledJobs:
        found = listing(
            connection,
            states=ACTIVE,
            team=query.team if query.team is not None else team_of(token),
            name=query.name,
            labels=labels,
            to_cancel=True,
            limit=_CANCELLED_AT_ONCE,
        )
        reason, now = Reason("Cancelled", f"cancelled by {token.name[:200]}"), time.time()
        return CancelledJobs(
            jobs=[Cancelled(id=job["id"], state=request_cancel(connection, job["id"], at=now, reason=reason))
                  for job in found.jobs],
            more=found.after is not None,
        )  # fmt: skip

    def cancelled() -> Response:
        answer = service.store.write_vital(cancel)
        for job in answer.jobs:
            service.scheduler.notify(job.id)
        return json_answer(answer, 202)

    return await service.run(cancelled)


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
