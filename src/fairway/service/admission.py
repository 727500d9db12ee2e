"""Looks at a job at the door: what could never run is refused there, with what is wrong with it, and nothing is stored.

Besides its form, that is: accelerators that this cluster does not have, gangs that are larger than it, what the policy
cannot decide about, and what this machine lacks (`runnable`). Most jobs are looked at in a tenth of a millisecond,
right where requests come in; what may take longer is done on another thread.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from fairway.documents import about
from fairway.errors import InputError
from fairway.live.job_spec import JobSpec, job_document, parse_job_spec
from fairway.service.authentication import require_own_team, team_of
from fairway.service.context import Service
from fairway.service.documents_in import TEXT, YAML, looks_like_json, refuse_long_yaml
from fairway.service.runnable import is_quick, refuse_what_cannot_run
from fairway.service.scheduler_view import SchedulerView
from fairway.store.tokens import Token

_SOURCE = "job"
_QUICK_BYTES = 32 * 1024
_MOST_FAMILIAR = 10_000


@dataclass(frozen=True, slots=True)
class Admitted:
    """A job that may be submitted: as it was written, what it says, and whose it is."""

    document: dict[str, Any]
    spec: JobSpec
    team: str | None


async def admit(service: Service, token: Token, body: bytes, kind: str | None) -> Admitted:
    """Read and check a job; `kind` is the media type that was given, if one was."""
    if looks_like_json(body) and kind not in YAML and len(body) <= _QUICK_BYTES:
        admitted = _read(body, kind, token)
    else:
        admitted = await service.run(lambda: _read(body, kind, token))
    spec, familiar = admitted.spec, service.familiar
    look = _look_of(admitted)
    try:
        if look in familiar and is_quick(spec):
            _refuse_what_never_runs(service.scheduler, admitted)
        else:
            await service.run(lambda: _refuse_what_never_runs(service.scheduler, admitted))
    except InputError as error:
        raise about(_SOURCE, error) from None
    if len(familiar) >= _MOST_FAMILIAR:
        familiar.clear()
    familiar.add(look)
    return admitted


def _read(body: bytes, kind: str | None, token: Token) -> Admitted:
    document = _document(body, kind)
    spec = parse_job_spec(json.dumps(document), _SOURCE)
    require_own_team(token, spec.team)
    return Admitted(document, spec, spec.team if spec.team is not None else team_of(token))


def _refuse_what_never_runs(scheduler: SchedulerView, admitted: Admitted) -> None:
    scheduler.check(admitted.spec, admitted.team)
    refuse_what_cannot_run(admitted.spec)


def _look_of(admitted: Admitted) -> object:
    """What the first of its kind has to be tried for, which takes the scheduler a while."""
    spec, rates = admitted.spec, admitted.spec.throughputs
    runs_on = None if rates is None else tuple(name for name, rate in rates.items() if rate > 0)
    asked = spec.accelerators, spec.job_type, spec.preemptible, runs_on
    return asked, admitted.team, spec.steps is None, spec.slo_seconds is None, spec.deadline is None


def _document(body: bytes, kind: str | None) -> Any:
    is_json = looks_like_json(body)
    if kind in YAML or (kind in {None, TEXT} and not is_json):
        refuse_long_yaml(body)
        return job_document(body, f"{_SOURCE}.yaml")
    if not is_json and body.strip():
        raise InputError(f"{_SOURCE}: not valid JSON: an object {{…}} expected; send YAML as application/yaml")
    return job_document(body, _SOURCE)
