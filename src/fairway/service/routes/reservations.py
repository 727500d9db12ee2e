"""Reservations over HTTP: list them, and, for admins, make and cancel them."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request
from pydantic import BaseModel, ConfigDict, Field, PlainValidator
from pydantic.dataclasses import dataclass
from starlette.responses import Response

from fairway.documents import Form, Name, shown
from fairway.errors import InputError
from fairway.magnitudes import MOST_WORKERS
from fairway.quantities import A_SPAN, seconds_of
from fairway.service.authentication import Admin, Caller
from fairway.service.context import ServiceOf, json_answer
from fairway.service.http.documents_in import JSON, read_form
from fairway.service.http.openapi import body_of, problems_for
from fairway.store.reservations import Reservation, cancel_reservation, open_reservations, reserve

router = APIRouter(tags=["reservations"])

_A_TIME = "a time with its zone, as in '2027-01-31T18:00+01:00', or 'now'"
_COUNTS = 'whole numbers above 0 by accelerator type, as in {"v100": 2}'
ReservationId = Annotated[str, Path(description="The id of a reservation.", max_length=128)]


class ReservationForm(BaseModel):
    """Workers that are a team's for some time."""

    model_config = ConfigDict(title="Reservation")

    id: str
    team: str
    workers: Mapping[str, int] = Field(description="How many, by accelerator type.")
    begins_at: float
    ends_at: float
    created_by: str


class ReservationsForm(BaseModel):
    """Reservations that are not over, the oldest first."""

    model_config = ConfigDict(title="Reservations")

    reservations: list[ReservationForm]


def _time(given: object) -> float | None:
    if given == "now":
        return None
    try:
        time = datetime.fromisoformat(given) if isinstance(given, str) and re.match(r"\d{4}-", given) else None
    except ValueError:
        time = None
    if time is None or time.tzinfo is None:
        raise InputError(f"{shown(given)} given, expected {_A_TIME}")
    try:
        return time.astimezone(UTC).timestamp()
    except (OverflowError, ValueError):
        raise InputError(f"{shown(given)} given, expected {_A_TIME}, of the years 1 to 9999") from None


def _counts(given: object) -> dict[str, int]:
    counts = given if isinstance(given, dict) and given else None
    for count in (counts or {"": None}).values():
        if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= MOST_WORKERS:
            raise InputError(f"{shown(given)} given, expected {_COUNTS}")
    return dict(counts or {})


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class ReservationFields:
    """A reservation to be made."""

    team: Name
    accelerators: Annotated[dict[str, int], PlainValidator(_counts)]
    seconds: Annotated[float, PlainValidator(seconds_of)] = Field(alias="for")
    begins: Annotated[float | None, PlainValidator(_time)] = Field(default=None, alias="from")


_FORM: Form[ReservationFields] = Form(
    ReservationFields,
    {
        "": 'a reservation, as in {"team": "vision", "accelerators": {"v100": 2}, "for": "2h"}',
        "team": "the name of a team",
        "accelerators": _COUNTS,
        "from": _A_TIME,
        "for": A_SPAN,
    },
    {"": ReservationFields},
)
_SCHEMA: dict[str, Any] = {
    "title": "ReservationDescription",
    "type": "object",
    "properties": {
        "team": {"type": "string", "minLength": 1, "maxLength": 256},
        "accelerators": {
            "type": "object", "minProperties": 1,
            "additionalProperties": {"type": "integer", "minimum": 1, "maximum": MOST_WORKERS},
        },
        "from": {"type": "string", "default": "now", "description": _A_TIME},
        "for": {"anyOf": [{"type": "number", "exclusiveMinimum": 0}, {"type": "string"}]},
    },
    "required": ["team", "accelerators", "for"],
    "additionalProperties": False,
}  # fmt: skip


@router.get("/reservations", summary="List reservations", responses={200: {"model": ReservationsForm}})
async def get_reservations(service: ServiceOf, _: Caller) -> Response:
    """Every reservation that is not over."""

    def listed() -> Response:
        found = service.store.read(open_reservations, at=time.time())
        return json_answer(ReservationsForm(reservations=[_form(one) for one in found]))

    return await service.run(listed)


@router.post(
    "/reservations",
    status_code=201,
    summary="Reserve workers for a team",
    responses={201: {"model": ReservationForm}, **problems_for(403, 408, 413, 415, 422)},
    openapi_extra={"requestBody": body_of(_SCHEMA, JSON)},
)
async def post_reservation(request: Request, service: ServiceOf, caller: Admin) -> Response:
    """Let workers be a team's alone for some time; jobs of others save and move before it begins."""
    asked = await read_form(request, _FORM)

    def made() -> Response:
        now = time.time()
        begins = now if asked.begins is None else asked.begins
        found = service.store.write(
            reserve, asked.team, asked.accelerators, begins_at=begins, ends_at=begins + asked.seconds, at=now,
            by=caller.name,
        )  # fmt: skip
        service.scheduler.notify()
        return json_answer(_form(found), 201)

    return await service.run(made)


@router.delete(
    "/reservations/{reservation}",
    summary="Cancel a reservation",
    responses={200: {"model": ReservationForm}, **problems_for(403, 404, 422)},
)
async def delete_reservation(service: ServiceOf, _: Admin, reservation: ReservationId) -> Response:
    """Let its workers be for all again."""

    def cancelled() -> Response:
        found = service.store.write(cancel_reservation, reservation, at=time.time())
        service.scheduler.notify()
        return json_answer(_form(found))

    return await service.run(cancelled)


def _form(one: Reservation) -> ReservationForm:
    return ReservationForm(
        id=one.id,
        team=one.team,
        workers=one.workers,
        begins_at=one.begins_at,
        ends_at=one.ends_at,
        created_by=one.created_by,
    )
