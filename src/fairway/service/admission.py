"""Looks at jobs at the door: what could never run is refused there, with what is wrong with it, and nothing is stored.

Besides its form, that is: accelerators that this cluster does not have, gangs that are larger than it, what the policy
cannot decide about, and what the backend's machines lack. Most jobs are looked at in a tenth of a millisecond,
right where requests come in; what may take longer is done on another thread.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from fairway.documents import about
from fairway.errors import InputError
from fairway.jobs.description import JobDescription, parse_jobs
from fairway.jobs.expansion import count_of
from fairway.live.training.start_command import program_of
from fairway.service.authentication import require_own_team, team_of
from fairway.service.context import Service
from fairway.service.http.documents_in import TEXT, YAML, looks_like_json, refuse_long_yaml
from fairway.store.tokens import Token

_SOURCE = "job"
_QUICK_BYTES = 32 * 1024
_MOST_FAMILIAR = 10_000


@dataclass(frozen=True, slots=True)
class Admitted:
    """A job that may be submitted, and the team that it belongs to."""

    description: JobDescription
    team: str | None

    @property
    def count(self) -> int:
        """How many jobs it stands for."""
        return count_of(self.description)


async def admit(service: Service, token: Token, body: bytes, kind: str | None) -> list[Admitted]:
    """Read and check the jobs of a body, all of them or none; `kind` is the media type that was given, if one was."""
    if looks_like_json(body) and kind not in YAML:
        quick = len(body) <= _QUICK_BYTES
        admitted = _read(body, kind, token) if quick else await service.run(lambda: _read(body, kind, token))
    else:  # YAML, of which many at once would take all of the processor for themselves
        admitted = await service.run_slowly(lambda: _read(body, kind, token))
    for number in range(1, len(admitted) + 1):
        try:
            admitted[number - 1] = _with_parts(service, admitted[number - 1])
            await _check(service, admitted[number - 1])
        except InputError as error:
            raise about(_SOURCE if len(admitted) == 1 else f"{_SOURCE}, document {number}", error) from None
    return admitted


def _with_parts(service: Service, admitted: Admitted) -> Admitted:
    """The job with a part of an accelerator in place of so much of its memory; what is smallest of a type counts."""
    job = admitted.description
    if job.accelerators.memory_bytes is None:
        return admitted
    memory: dict[str, int | None] = dict.fromkeys(service.scheduler.cluster.types)
    for (name, _), device in service.scheduler.devices().items():
        if device.memory_bytes is not None:
            memory[name] = min(memory.get(name) or device.memory_bytes, device.memory_bytes)
    try:
        request = job.accelerators.with_parts(memory)
    except InputError as error:
        raise InputError(f"resources.accelerators: {error}") from None
    resources = job.resources.model_copy(update={"accelerators": request})
    return replace(admitted, description=job.model_copy(update={"resources": resources}))


async def _check(service: Service, admitted: Admitted) -> None:
    """Refuse a job that could never run here; all of an array need the same."""
    familiar, look = service.familiar, _look_of(admitted)
    if look in familiar and not program_of(admitted.description).names_files:
        service.scheduler.check(admitted.description, admitted.team)
    else:
        await service.run(lambda: service.scheduler.check(admitted.description, admitted.team))
    if len(familiar) >= _MOST_FAMILIAR:
        familiar.clear()
    familiar.add(look)


def _read(body: bytes, kind: str | None, token: Token) -> list[Admitted]:
    admitted: list[Admitted] = []
    for description in _descriptions(body, kind):
        require_own_team(token, description.team)
        admitted.append(Admitted(description, description.team if description.team is not None else team_of(token)))
    return admitted


def _look_of(admitted: Admitted) -> object:
    """What the first of its kind has to be tried for, which takes the scheduler a while."""
    job, rates = admitted.description, admitted.description.throughputs
    runs_on = None if rates is None else tuple(name for name, rate in rates.items() if rate > 0)
    asked = job.accelerators, job.job_type, job.preemptible, runs_on
    return asked, admitted.team, job.steps is None, type(job.deadline)


def _descriptions(body: bytes, kind: str | None) -> list[JobDescription]:
    is_json = looks_like_json(body)
    if kind in YAML or (kind in {None, TEXT} and not is_json):
        refuse_long_yaml(body)
        return parse_jobs(body, f"{_SOURCE}.yaml")
    if not is_json and body.strip():
        raise InputError(f"{_SOURCE}: not valid JSON: an object {{…}} expected; send YAML as application/yaml")
    return parse_jobs(body, _SOURCE)
