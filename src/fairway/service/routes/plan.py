"""What would happen if: plans over HTTP, for admins, since a plan tells of the jobs of all teams.

A plan takes seconds to minutes, so it comes as a stream of server-sent events. Nothing of it stays in the service: who
breaks the stream off ends the simulations.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter
from pydantic.dataclasses import dataclass
from starlette.responses import Response, StreamingResponse

from fairway.allocate.policies import POLICIES
from fairway.allocate.registry import POLICY_PARTS
from fairway.documents import Form
from fairway.errors import InputError
from fairway.experiments.planning.change import Change
from fairway.experiments.planning.documents import found_document, plan_document
from fairway.experiments.planning.goal import Goal
from fairway.experiments.planning.plan import MOST_SEEDS, SEEDS, plan
from fairway.experiments.planning.search import MOST_WORKERS, cheapest_addition
from fairway.experiments.planning.world import LiveQueue
from fairway.service.authentication import Admin
from fairway.service.context import ServiceOf
from fairway.service.http.documents_in import JSON, read_form
from fairway.service.http.openapi import body_of, problems_for
from fairway.service.present import present_of
from fairway.sim.comparison import Pool, Watcher

router = APIRouter(tags=["plan"])

_MOST_CHANGES = 20
_MOST_TYPES = 16
_STREAM = {
    "description": "`progress` with the number of runs that are over, then `plan` with the result, or `failed`.",
    "content": {
        "text/event-stream": {
            "schema": {
                "type": "object",
                "properties": {
                    "event": {"enum": ["progress", "plan", "failed"]},
                    "data": {"type": "string", "contentMediaType": "application/json"},
                },
                "required": ["event", "data"],
            }
        }
    },
}


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class PlanFields:
    """What to plan: changes, each compared with leaving things as they are, or a goal for the cheapest addition."""

    changes: Annotated[
        list[str], Field(max_length=_MOST_CHANGES, description="As text, as in `add a100=8, policy fifo`.")
    ] = Field(default_factory=list)
    find: Annotated[str | None, Field(max_length=200, description="A goal, as in `p95 wait < 1h`.")] = None
    types: Annotated[list[str], Field(max_length=_MOST_TYPES, description="Types that may be added for the goal.")] = (
        Field(default_factory=list)
    )
    most: Annotated[int, Field(ge=1, le=MOST_WORKERS, description="So many workers of each type at most.")] = (
        MOST_WORKERS
    )
    seeds: Annotated[int, Field(ge=1, le=MOST_SEEDS)] = SEEDS
    prices: Annotated[
        dict[str, float], Field(description="Dollars per worker and hour of types that have no price here.")
    ] = Field(default_factory=dict)


_FORM: Form[PlanFields] = Form(
    PlanFields,
    {
        "": 'changes or a goal, as in {"changes": ["add a100=8"]} or {"find": "p95 wait < 1h"}',
        "changes": f"a list of at most {_MOST_CHANGES} changes, as in 'add a100=8, policy fifo'",
        "find": "a goal, as in 'p95 wait < 1h'",
        "types": f"a list of at most {_MOST_TYPES} accelerator types",
        "most": f"a whole number from 1 to {MOST_WORKERS}",
        "seeds": f"a whole number from 1 to {MOST_SEEDS}",
        "prices": 'dollars per hour by accelerator type, as in {"a100": 2.5}',
    },
    {"": PlanFields},
)
_SCHEMA: dict[str, Any] = TypeAdapter(PlanFields).json_schema() | {"title": "PlanDescription"}


class StateQuery(BaseModel):
    """What else to tell."""

    model_config = ConfigDict(extra="forbid")

    type: list[Annotated[str, Field(max_length=128)]] = Field(
        default=[], max_length=_MOST_TYPES, description="Accelerator types that the cluster lacks and may get."
    )


@router.get("/plan/state", summary="Read the state that plans begin from", responses={**problems_for(403, 422)})
async def get_state(service: ServiceOf, _: Admin, query: Annotated[StateQuery, Query()]) -> Response:
    """All that the engine knows at this moment, with how fast jobs would run on types that the cluster lacks."""

    def answered() -> Response:
        document = present_of(service.scheduler, query.type).document()
        return Response(json.dumps(document), media_type="application/json")

    return await service.run_slowly(answered)


@router.post(
    "/plan",
    summary="Ask what would happen if",
    response_class=StreamingResponse,
    responses={200: _STREAM, **problems_for(403, 413, 415, 422, 429)},
    openapi_extra={"requestBody": body_of(_SCHEMA, JSON)},
)
async def make_plan(service: ServiceOf, _: Admin, request: Request) -> Response:
    """Simulate the jobs that are here forward, as they are and with each change, under several seeds."""
    fields = await read_form(request, _FORM)
    changes = [Change.parse(text) for text in fields.changes]
    _refuse_classes(changes)
    goal = None if fields.find is None else Goal.parse(fields.find)
    if bool(changes) == (goal is not None):
        raise InputError("expected either changes or find; give one of them")
    new = dict.fromkeys([*(name for change in changes for name in change.add), *fields.types])
    present = await service.run_slowly(lambda: present_of(service.scheduler, list(new)))
    world = LiveQueue(present)

    def work(pool: Pool, watcher: Watcher) -> dict[str, Any]:
        if goal is None:
            made = plan(world, changes, seeds=fields.seeds, prices=fields.prices, pool=pool, watcher=watcher)
            return plan_document(made) | {"outside": present.outside}
        found = cheapest_addition(
            world, goal, types=fields.types, most=fields.most, seeds=fields.seeds, prices=fields.prices, pool=pool,
            watcher=watcher,
        )  # fmt: skip
        return found_document(found) | {"outside": present.outside}

    events = service.planning.made(work)
    first = await anext(events)
    return StreamingResponse(
        _written(first, events), media_type="text/event-stream", headers={"Cache-Control": "no-store"}
    )


def _refuse_classes(changes: Sequence[Change]) -> None:
    """Whoever starts the server chooses its code: over HTTP a policy has a name, and is no class of any module."""
    for policy in (change.policy for change in changes):
        if policy is not None and not POLICY_PARTS.is_offered(policy):
            known = ", ".join((*POLICIES, *POLICY_PARTS.installed()))
            raise InputError(f"changes: policy '{policy}' given, expected one that this server has by name: {known}")


async def _written(
    first: tuple[str, Mapping[str, Any]], events: AsyncGenerator[tuple[str, dict[str, Any]]]
) -> AsyncIterator[bytes]:
    async with aclosing(events):  # whatever becomes of the stream, the simulations end with it
        yield _event(*first)
        async for event in events:
            yield _event(*event)


def _event(name: str, data: Mapping[str, Any]) -> bytes:
    return f"event: {name}\ndata: {json.dumps(data)}\n\n".encode()
