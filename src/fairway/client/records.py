"""The answers of the server, as small records.

A record has the fields of `fairway.service`'s JSON objects and knows those that it was written for; the whole object,
with fields that a newer server adds, is its `document`. What an older server leaves out has a default. Times are Unix
seconds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, Self

ENDED = frozenset({"succeeded", "failed", "cancelled"})
"""States that a job never leaves."""

ACTIVE = ("queued", "running", "preempting")
"""The others."""


@dataclass(frozen=True, kw_only=True)
class Record:
    """What all records have in common."""

    document: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Self:
        """The record of a JSON object; raises `KeyError` for a field that it cannot do without."""
        given = {**document, **cls._parts(document)}
        values: dict[str, Any] = {}
        for one in fields(cls):
            needed = one.default is MISSING and one.default_factory is MISSING
            if needed or given.get(one.name) is not None:
                values[one.name] = given[one.name]
        return cls(**{**values, "document": document})

    @classmethod
    def _parts(cls, _document: Mapping[str, Any]) -> Mapping[str, Any]:
        """The fields that are records themselves."""
        return {}


@dataclass(frozen=True, kw_only=True)
class Attempt(Record):
    """One start of a job's processes; `outcome` is None while it runs."""

    attempt: int
    started_at: float | None = None
    ended_at: float | None = None
    outcome: str | None = None
    exit_code: int | None = None
    reason: str | None = None
    lease: int | None = None


@dataclass(frozen=True, kw_only=True)
class Lease(Record):
    """The right of a job to workers of one type, until a time."""

    number: int
    accelerator: str | None = None
    workers: Sequence[int] = ()
    until: float | None = None
    granted_at: float | None = None
    ended_at: float | None = None
    reason: str | None = None
    part: float = 1.0


@dataclass(frozen=True, kw_only=True)
class Rate(Record):
    """How fast a job was seen to run on an accelerator type."""

    accelerator: str
    steps_per_second: float
    measured_at: float | None = None
    beside: str | None = None


@dataclass(frozen=True, kw_only=True)
class Job(Record):
    """A job as the server knows it.

    `accelerators` is what it asks for, `accelerator` the type it runs on now. `reason_code` and `reason` say why it
    waits, or why it ended. Jobs of an array have `array_name` and the id of the
    first in common. `spec`, its description, `attempts`, `leases` and `rates` are there only if one
    asks for one job.
    """

    id: str
    state: str
    number: int = 0
    name: str | None = None
    array_id: str | None = None
    array_name: str | None = None
    team: str | None = None
    weight: float = 1.0
    priority_class: str | None = None
    submitted_at: float | None = None
    submitted_by: str | None = None
    started_at: float | None = None
    ended_at: float | None = None
    changed_at: float | None = None
    cancel_requested_at: float | None = None
    attempt_count: int = 0
    failures: int = 0
    exit_code: int | None = None
    reason_code: str | None = None
    reason: str | None = None
    steps: float | None = None
    steps_left: float | None = None
    steps_per_second: float | None = None
    checkpoint_steps_left: float | None = None
    accelerators: str | None = None
    count: int = 1
    accelerator: str | None = None
    emulated: bool = False
    spec: Mapping[str, Any] | None = None
    attempts: Sequence[Attempt] = ()
    leases: Sequence[Lease] = ()
    rates: Sequence[Rate] = ()

    @classmethod
    def _parts(cls, document: Mapping[str, Any]) -> Mapping[str, Any]:
        return {
            "attempts": tuple(map(Attempt.of, document.get("attempts") or ())),
            "leases": tuple(map(Lease.of, document.get("leases") or ())),
            "rates": tuple(map(Rate.of, document.get("rates") or ())),
        }

    @property
    def ended(self) -> bool:
        """Whether it has come to its end, good or bad."""
        return self.state in ENDED

    @property
    def steps_done(self) -> float | None:
        """How far it is; None for a job of unknown length."""
        return None if self.steps is None or self.steps_left is None else self.steps - self.steps_left


@dataclass(frozen=True, kw_only=True)
class Prediction(Record):
    """When a job will start and finish, with the interval of its start; `basis` says how it was found."""

    start_at: float | None = None
    earliest_at: float | None = None
    latest_at: float | None = None
    finish_at: float | None = None
    basis: str | None = None


@dataclass(frozen=True, kw_only=True)
class DryRun(Record):
    """What would become of a job that was not submitted; such a job has no id."""

    job: Job
    prediction: Prediction | None = None
    emulated: bool = False

    @classmethod
    def _parts(cls, document: Mapping[str, Any]) -> Mapping[str, Any]:
        job = {
            "id": "",
            "state": "queued",
            **{name: value for name, value in document["job"].items() if value is not None},
        }
        return {"job": Job.of(job), "prediction": _prediction(document)}


@dataclass(frozen=True, kw_only=True)
class Explanation(Record):
    """Why a job is where it is, which jobs are ahead of it, and what would change it."""

    job: str
    state: str
    code: str | None = None
    reason: str | None = None
    since: float | None = None
    ahead: Sequence[Mapping[str, Any]] = ()
    ahead_count: int = 0
    position: int | None = None
    waiting: int | None = None
    prices: Mapping[str, Any] = field(default_factory=dict)
    prediction: Prediction | None = None
    smallest_change: str | None = None
    emulated: bool = False

    @classmethod
    def _parts(cls, document: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"prediction": _prediction(document)}


def _prediction(document: Mapping[str, Any]) -> Prediction | None:
    given = document.get("prediction")
    return None if given is None else Prediction.of(given)


@dataclass(frozen=True, kw_only=True)
class Worker(Record):
    """One accelerator: `free`, `busy`, `drained` or `lost`.

    `trouble` is what is wrong with it, if it was taken out of service by itself; what the device measures of itself is
    None where it does not.
    """

    accelerator: str
    number: int
    state: str = ""
    emulated: bool = False
    agent: str | None = None
    device: str | None = None
    jobs: Sequence[str] = ()
    lease: int | None = None
    trouble: str | None = None
    memory_bytes: int | None = None
    memory_used_bytes: int | None = None
    utilization: float | None = None
    power_watts: float | None = None
    links: Sequence[str] = ()
    parts: Mapping[str, float] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """As it is called in commands."""
        return f"{self.accelerator}/{self.number}"


@dataclass(frozen=True, kw_only=True)
class Reservation(Record):
    """Workers that are a team's alone from `begins_at` to `ends_at`, in seconds since 1970; how many, by type."""

    id: str
    team: str
    workers: Mapping[str, int]
    begins_at: float
    ends_at: float
    created_by: str = ""


@dataclass(frozen=True, kw_only=True)
class Status(Record):
    """The cluster in a few numbers: jobs by state, workers by type."""

    version: str | None = None
    policy: str | None = None
    round_seconds: float | None = None
    round_ends_at: float | None = None
    rounds: int | None = None
    solves: int | None = None
    time_scale: float = 1.0
    emulated: bool = False
    healthy: bool = True
    trouble: str | None = None
    store: str | None = None
    jobs: Mapping[str, int] = field(default_factory=dict)
    workers: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    caveats: Sequence[str] = ()


@dataclass(frozen=True, kw_only=True)
class Usage(Record):
    """What was used between two moments: a row for each team, user or both that `by` names.

    A row has `team`, `user`, `jobs`, `accelerator_seconds` by type and `cost_dollars`, which is None without prices.
    """

    since: float
    until: float
    by: Sequence[str] = ()
    rows: Sequence[Mapping[str, Any]] = ()
    emulated: bool = False


@dataclass(frozen=True, kw_only=True)
class Token(Record):
    """What is known of a token; `token`, the secret itself, only in the answer that made it."""

    id: str
    role: str
    name: str | None = None
    team: str | None = None
    created_at: float | None = None
    revoked_at: float | None = None
    expires_at: float | None = None
    used_at: float | None = None
    token: str | None = field(default=None, repr=False)


@dataclass(frozen=True, kw_only=True)
class Event(Record):
    """Something that happened: `kind` is `job` (it changed its state) or `progress`; `job` is how it stands now."""

    id: str | None
    kind: str
    job: Job | None = None


@dataclass(frozen=True, kw_only=True)
class JournalEntry(Record):
    """An entry of the journal: an event that the engine took in, a command that it gave or a decision, and when."""

    sequence: int
    kind: str
    name: str | None = None
    at: float | None = None
    cause: int | None = None
    body: Any = None
