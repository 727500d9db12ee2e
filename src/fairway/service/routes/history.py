"""The history over HTTP: jobs, leases, attempts and rates as a saved run, or what of it changed since a moment."""

from __future__ import annotations

import gzip
import json
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from fairway.dashboard.of_store import saved_store
from fairway.dashboard.run_file import document
from fairway.service.authentication import Caller, team_of
from fairway.service.context import ServiceOf
from fairway.service.http.openapi import problems_for

router = APIRouter(tags=["history"])

_LAST = 1e12
_WORTH_PACKING = 64 * 1024


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

    def answered() -> Response:
        run = service.store.read(saved_store, team=team_of(token), since=query.since, decisions=False)
        run["time_scale"] = service.scheduler.settings.time_scale
        run["prices"] = dict(service.scheduler.cluster.prices)
        text = json.dumps(document([run]), allow_nan=False, separators=(",", ":")).encode()
        headers = {}
        if len(text) > _WORTH_PACKING and "gzip" in request.headers.get("accept-encoding", ""):
            text, headers = gzip.compress(text, compresslevel=1, mtime=0), {"Content-Encoding": "gzip"}
        return Response(text, media_type="application/json", headers=headers)

    return await service.run_slowly(answered)
