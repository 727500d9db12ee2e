"""Workers over HTTP: what they are and do, and taking them out of use."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field
from pydantic.dataclasses import dataclass
from sqlalchemy import Connection
from starlette.responses import Response

from fairway.documents import Form, Name
from fairway.errors import InputError
from fairway.live.backend.accelerators import Accelerator
from fairway.options import nearest
from fairway.service.authentication import Admin, Caller
from fairway.service.context import Service, ServiceOf, json_answer
from fairway.service.http.documents_in import JSON, read_form
from fairway.service.http.openapi import body_of, problems_for
from fairway.service.worker_state import WorkerState, state_of
from fairway.store.leases import open_leases
from fairway.store.records import LeaseRecord, Worker
from fairway.store.workers import all_workers

router = APIRouter(tags=["workers"])

_NAMED = re.compile(r"(?P<type>[^/]+)(?:/(?P<number>\d{1,9}))?")
_MOST_NAMES = 10_000


class WorkerForm(BaseModel):
    """One accelerator."""

    model_config = ConfigDict(title="Worker")

    accelerator: str
    number: int
    agent: str
    device: str = Field(description="What it is, for people.")
    emulated: bool
    state: WorkerState
    jobs: list[str]
    lease: int | None
    trouble: str | None = Field(None, description="Why it was taken out of service by itself: what is wrong with it.")
    memory_bytes: int | None = Field(None, description="The memory of the device, where it has its own and says so.")
    memory_used_bytes: int | None = None
    utilization: float | None = Field(None, description="From 0 to 1, as the driver measures it.")
    power_watts: float | None = None
    links: list[str] = Field([], description="The workers that it reaches over NVLink.")
    parts: dict[str, float] = Field({}, description="How much of it each job has, where jobs have parts of it.")


class WorkersForm(BaseModel):
    """Workers by type and number."""

    model_config = ConfigDict(title="Workers")

    workers: list[WorkerForm]
    emulated: bool


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class DrainFields:
    """Which workers to take out of use, or to use again."""

    workers: Annotated[list[Name], Field(min_length=1, max_length=_MOST_NAMES)]
    on: bool = True


_DRAIN: Form[DrainFields] = Form(
    DrainFields,
    {
        "": 'workers to drain, as in {"workers": ["v100/0", "k80"], "on": true}',
        "workers": f"a list of 1 to {_MOST_NAMES} workers, as in ['v100/0', 'k80']",
        "workers.*": "a worker as in 'v100/0', or a type as in 'k80' for all of its workers",
        "on": "true to drain, false to use them again",
    },
    {"": DrainFields},
)
_DRAIN_SCHEMA = {
    "title": "Drain",
    "type": "object",
    "properties": {
        "workers": {
            "type": "array",
            "minItems": 1,
            "maxItems": _MOST_NAMES,
            "items": {"type": "string", "minLength": 1, "examples": ["v100/0", "k80"]},
        },
        "on": {"type": "boolean", "default": True},
    },
    "required": ["workers"],
    "additionalProperties": False,
}


@router.get("/workers", summary="List workers", responses={200: {"model": WorkersForm}})
async def get_workers(service: ServiceOf, _: Caller) -> Response:
    """Every worker that is or was there, and what runs on it."""
    return await service.run(lambda: json_answer(_listed(service)))


@router.post(
    "/workers/drain",
    summary="Drain workers, or use them again",
    responses={200: {"model": WorkersForm}, **problems_for(403, 408, 413, 415, 422)},
    openapi_extra={"requestBody": body_of(_DRAIN_SCHEMA, JSON)},
)
async def drain_workers(request: Request, service: ServiceOf, _: Admin) -> Response:
    """Let nothing run on workers any more, or again; what runs there is moved. Answers how they stand then."""
    asked = await read_form(request, _DRAIN)

    def drained() -> Response:
        wanted = named_workers(asked.workers, service.store.read(all_workers))
        service.scheduler.drain(wanted, on=asked.on)
        return json_answer(_listed(service, wanted))

    return await service.run_slowly(drained)


def named_workers(names: Sequence[str], workers: Sequence[Worker]) -> list[tuple[str, int]]:
    """The workers that names as `v100/0` or `k80` mean, each once; refuses what is not there."""
    by_type: dict[str, list[int]] = {}
    for worker in workers:
        by_type.setdefault(worker.accelerator, []).append(worker.number)
    spelled = {name.lower(): name for name in by_type}
    found: dict[tuple[str, int], None] = {}
    for name in names:
        match = _NAMED.fullmatch(name)
        accelerator = spelled.get(match["type"].lower()) if match else None
        if match is None or accelerator is None:
            hint = nearest(match["type"].lower() if match else name, spelled)
            known = ", ".join(by_type) or "none"
            raise InputError(f"workers: '{name}' is no worker of this cluster{hint}; types: {known}")
        numbers = by_type[accelerator] if match["number"] is None else [int(match["number"])]
        for number in numbers:
            if number not in by_type[accelerator]:
                last = max(by_type[accelerator])
                raise InputError(f"workers: '{name}' given, but {accelerator} has the numbers 0 to {last}")
            found[accelerator, number] = None
    return list(found)


def _listed(service: Service, only: Sequence[tuple[str, int]] | None = None) -> WorkersForm:
    def both(connection: Connection) -> tuple[list[Worker], list[LeaseRecord]]:
        return all_workers(connection), open_leases(connection)

    workers, leases = service.store.read(both)
    holders: dict[tuple[str, int], list[LeaseRecord]] = {}
    for lease in leases:
        for number in lease.workers if lease.held else ():
            holders.setdefault((lease.accelerator, number), []).append(lease)
    devices = service.scheduler.devices()
    names = {device.device: f"{kind}/{number}" for (kind, number), device in devices.items() if not device.emulated}
    wanted = None if only is None else set(only)
    forms = []
    for worker in workers:
        key = worker.accelerator, worker.number
        if wanted is None or key in wanted:
            forms.append(_form(worker, holders.get(key, []), devices.get(key), names))
    return WorkersForm(workers=forms, emulated=service.scheduler.emulated)


def _form(
    worker: Worker, leases: Sequence[LeaseRecord], device: Accelerator | None, names: Mapping[str | None, str]
) -> WorkerForm:
    reading = None if device is None else device.reading
    return WorkerForm(
        accelerator=worker.accelerator,
        number=worker.number,
        agent=worker.agent,
        device=worker.device if device is None else device.description,
        emulated=worker.emulated,
        state=state_of(worker, held=bool(leases)),
        jobs=[job for lease in leases for job in lease.jobs],
        lease=leases[0].number if leases else None,
        parts={job: lease.part for lease in leases if lease.part < 1 for job in lease.jobs},
        trouble=None if device is None else device.sick,
        memory_bytes=None if device is None else device.memory_bytes,
        memory_used_bytes=None if reading is None else reading.memory_used_bytes,
        utilization=None if reading is None else reading.utilization,
        power_watts=None if reading is None else reading.power_watts,
        links=[names[peer] for peer in device.links if peer in names] if device else [],
    )
