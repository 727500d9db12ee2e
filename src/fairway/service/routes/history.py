"""The history over HTTP: jobs, leases, attempts and rates as a saved run, or what of it changed since a moment."""

from __future__ import annotations

import gzip
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from fairway.dashboard.of_store import saved_store
from fairway.service.authentication import Caller, team_of
from fairway.service.context import Service, ServiceOf
from fairway.service.http.openapi import problems_for
from fairway.service.page_news import run_text
from fairway.service.scheduler_view import SchedulerView

router = APIRouter(tags=["history"])

_LAST = 1e12
_WORTH_PACKING = 64 * 1024
STEP_SECONDS = 5.0
"""Pages ask for what changed since moments of their own; rounded down, many of them ask the same."""


class HistoryQuery(BaseModel):
    """What of the history."""

    model_config = ConfigDict(extra="forbid")

    since: float | None = Field(
        default=None, ge=0, le=_LAST, description="Only what changed since then, in seconds since 1970, and not before."
    )


class SavedRun(BaseModel):
    """A saved run (docs/dashboard.md says what stands in it)."""

    model_config = ConfigDict(title="SavedRun", extra="allow")

    format: str
    version: int
    runs: list[dict[str, Any]]


@router.get("/history", summary="Read what happened", responses={200: {"model": SavedRun}, **problems_for(422)})
async def get_history(
    request: Request, service: ServiceOf, token: Caller, query: Annotated[HistoryQuery, Query()]
) -> Response:
    """The newest jobs with their leases, attempts and measured rates, as the one run of a saved run.

    A member sees the jobs of its team; leases of others have no job there. Decisions are in the journal.
    """
    team = team_of(token)
    since = None if query.since is None else query.since // STEP_SECONDS * STEP_SECONDS

    def answered() -> Response:
        text, headers = history_text(service, team, since), {}
        if len(text) > _WORTH_PACKING and "gzip" in request.headers.get("accept-encoding", ""):
            plain = text
            text = service.answers.text((team, since, "gzip"), lambda: gzip.compress(plain, compresslevel=1, mtime=0))
            headers = {"Content-Encoding": "gzip"}
        return Response(text, media_type="application/json", headers=headers)

    return await service.run_slowly(answered)


def history_text(service: Service, team: str | None, since: float | None) -> bytes:
    """The history as a team may see it, as the text of a saved run: made once for all that ask at the same time."""
    return service.answers.text((team, since), lambda: run_text(history_run(service.scheduler, team, since)).encode())


def history_run(scheduler: SchedulerView, team: str | None, since: float | None) -> dict[str, Any]:
    """The run of a scheduler as a team may see it, or what of it changed since a moment."""
    run = scheduler.store.read(saved_store, team=team, since=since, decisions=False)
    run["time_scale"] = scheduler.settings.time_scale
    run["prices"] = dict(scheduler.cluster.prices)
    return run
