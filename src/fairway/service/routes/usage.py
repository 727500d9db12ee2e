"""Accounting over HTTP: accelerator seconds, cost and jobs, by team and user, from the leases in the store."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from fairway.errors import InputError
from fairway.service.authentication import Caller, require_own_team, team_of
from fairway.service.context import ServiceOf, json_answer
from fairway.service.http.openapi import problems_for
from fairway.store.usage import Used, usage

router = APIRouter(tags=["usage"])

_WEEK = 7 * 86400.0
_LAST = 1e12


class UsageQuery(BaseModel):
    """What to add up."""

    model_config = ConfigDict(extra="forbid")

    by: list[Literal["team", "user"]] = Field(default=["team"], max_length=2, description="One row for each of these.")
    since: float | None = Field(default=None, ge=0, le=_LAST, description="Seconds since 1970; a week ago otherwise.")
    until: float | None = Field(default=None, ge=0, le=_LAST, description="Seconds since 1970; now otherwise.")
    team: str | None = Field(default=None, min_length=1, max_length=256, description="Only jobs of this team.")


class UsageRow(BaseModel):
    """What the jobs of a team, of a user or of both have used."""

    model_config = ConfigDict(title="UsageRow")

    team: str | None = Field(description="Null for jobs without one, and where rows are not by team.")
    user: str | None = Field(description="The name of the token that submitted them; null where rows are not by user.")
    jobs: int = Field(description="Jobs that held workers in that time.")
    accelerator_seconds: dict[str, float] = Field(description="By type, on the wall clock.")
    cost_dollars: float | None = Field(description="Null where a type has no price.")


class UsageForm(BaseModel):
    """What was used between two moments."""

    model_config = ConfigDict(title="Usage")

    since: float
    until: float
    by: list[str]
    rows: list[UsageRow]
    emulated: bool


@router.get("/usage", summary="Add up what was used", responses={200: {"model": UsageForm}, **problems_for(403, 422)})
async def get_usage(service: ServiceOf, token: Caller, query: Annotated[UsageQuery, Query()]) -> Response:
    """Accelerator seconds by type, cost and jobs, by team, by user or by both; a member sees its own team."""
    require_own_team(token, query.team)
    now = time.time()
    until = now if query.until is None else min(query.until, now)
    since = until - _WEEK if query.since is None else query.since
    if since >= until:
        raise InputError(f"since: {since:.0f} given, expected a time before {until:.0f}, in seconds since 1970")
    team = query.team if query.team is not None else team_of(token)
    prices = service.scheduler.cluster.prices

    def added_up() -> Response:
        found = service.store.read(usage, since=since, until=until, team=team)
        rows = _rows(found, query.by, prices)
        return json_answer(
            UsageForm(since=since, until=until, by=list(query.by), rows=rows, emulated=service.scheduler.emulated)
        )

    return await service.run_slowly(added_up)


def _rows(found: Sequence[Used], by: Sequence[str], prices: Mapping[str, float]) -> list[UsageRow]:
    rows: dict[tuple[str | None, str | None], UsageRow] = {}
    for used in found:
        user = used.submitted_by.rpartition(" (")[0] or used.submitted_by
        who = used.team if "team" in by else None, user if "user" in by else None
        row = rows.setdefault(who, UsageRow(team=who[0], user=who[1], jobs=0, accelerator_seconds={}, cost_dollars=0.0))
        row.jobs += used.jobs
        for accelerator, seconds in used.seconds.items():
            row.accelerator_seconds[accelerator] = row.accelerator_seconds.get(accelerator, 0.0) + seconds
    for row in rows.values():
        known = all(accelerator in prices for accelerator in row.accelerator_seconds)
        dollars = [prices.get(name, 0.0) * seconds / 3600 for name, seconds in row.accelerator_seconds.items()]
        row.cost_dollars = sum(dollars) if known else None
    return list(rows.values())
