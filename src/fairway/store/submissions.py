"""Takes jobs in: all of a call or none, each once, however often it is sent.

Jobs that are submitted together, such as those of an array, are so many submissions of one call.

A submission may carry an idempotency key. Sent again by the same submitter it finds the job that it made before; with
other content, it is refused. A key belongs to its submitter (`submitted_by`): two submitters may use the same one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from hashlib import sha256
from itertools import count
from typing import Any

from sqlalchemy import Connection, bindparam, insert, select

from fairway.errors import InputError
from fairway.jobs.description import JobDescription, job_of
from fairway.magnitudes import AMOUNTS, FACTORS
from fairway.store import counters
from fairway.store.database.columns import json_text
from fairway.store.database.parts import in_parts
from fairway.store.database.schema import jobs, labels
from fairway.store.dependencies import Named, save_needs
from fairway.store.errors import ConflictError
from fairway.store.names import checked_id, checked_name
from fairway.store.records import JobRecord
from fairway.store.states import JobState

_OURS = re.compile(r"job-\d+")

_COLUMNS = [column.name for column in fields(JobRecord)]
_INSERT = insert(jobs)
_TAKEN = select(jobs.c.id).where(jobs.c.id.in_(bindparam("values")))
_BY_KEY = select(jobs).where(
    jobs.c.submitted_by == bindparam("submitter"), jobs.c.idempotency_key.in_(bindparam("values"))
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """A job to be taken in. `spec` is the document of its description, `id` is chosen by the store if not given.

    It comes `together` with so many jobs, itself included. In an array of the name `array_name` it stands
    `array_position` places behind the first one.
    """

    spec: Mapping[str, Any]
    id: str | None = None
    name: str | None = None
    team: str | None = None
    weight: float = 1.0
    steps: float | None = None
    submitted_by: str = ""
    idempotency_key: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    needs: Named = field(default_factory=Named)
    together: int = 1
    array_name: str | None = None
    array_position: int | None = None

    @classmethod
    def of(
        cls,
        job: JobDescription,
        *,
        team: str | None,
        submitted_by: str = "",
        idempotency_key: str | None = None,
        sees_team: str | None = None,
        together: int = 1,
        array_name: str | None = None,
        array_position: int | None = None,
    ) -> Submission:
        """The job of a description; `team` is the one that it belongs to, which the description may leave open.

        If its submitter sees the jobs of one team only (`sees_team`), it can wait for those only.
        """
        return cls(
            spec=job.document(),
            name=job.name,
            team=team,
            weight=job.weight,
            steps=job.steps,
            submitted_by=submitted_by,
            idempotency_key=idempotency_key,
            labels=job.labels,
            needs=Named(job.after, job.afterok, sees_team),
            together=together,
            array_name=array_name,
            array_position=array_position,
        )

    def __post_init__(self) -> None:
        if self.id is not None and _OURS.fullmatch(checked_id(self.id, "id")):
            raise InputError(f"id: '{self.id}' given, but ids of this form are chosen by the store; choose another")
        for what in ("name", "team", "idempotency_key"):
            value = getattr(self, what)
            if value is not None:
                checked_name(value, what)
        if self.submitted_by:
            checked_name(self.submitted_by, "submitted_by")
        try:
            FACTORS.above_zero(self.weight)
        except InputError as error:
            raise InputError(f"weight: {error}") from None
        try:
            AMOUNTS.zero_or_more(0.0 if self.steps is None else self.steps)
        except InputError as error:
            raise InputError(f"steps: {error}") from None

    def content(self) -> str:
        """A digest of all that the submitter said, by which a repetition is recognised."""
        said = [self.spec, self.id, self.name, self.team, float(self.weight), self.steps and float(self.steps)]
        digest = sha256(json_text(said, in_order=True).encode()).hexdigest()
        return digest if self.together == 1 else f"{digest}/{self.together}"

    def record(self, number: int, *, at: float) -> JobRecord:
        """The job as it stands when it has just been taken in."""
        first = None if self.array_position is None else f"job-{number - self.array_position}"
        return JobRecord(
            number=number,
            id=f"job-{number}" if self.id is None else self.id,
            array_id=first,
            array_name=self.array_name,
            name=self.name,
            team=self.team,
            weight=self.weight,
            spec=self.spec,
            state=JobState.QUEUED,
            submitted_by=self.submitted_by,
            submitted_at=at,
            changed_at=at,
            steps=self.steps,
            steps_left=self.steps,
            idempotency_key=self.idempotency_key,
            content=self.content(),
        )


def submit(connection: Connection, submissions: Sequence[Submission], *, at: float) -> list[JobRecord]:
    """Take jobs in, in this order; returns each as it stands, also one that had been taken in before."""
    known = _known(connection, submissions)
    unknown = sum(_key(submission) not in known for submission in submissions)
    numbers = count(counters.take(connection, counters.JOBS, unknown))
    records: list[JobRecord] = []
    new: list[JobRecord] = []
    labelled: list[dict[str, object]] = []
    waiting: list[tuple[JobRecord, Named]] = []
    for submission in submissions:
        key = _key(submission)
        record = known.get(key)
        if record is None:
            record = submission.record(next(numbers), at=at)
            new.append(record)
            if submission.needs.after or submission.needs.afterok:
                waiting.append((record, submission.needs))
            labelled += [{"label": name, "value": value, "job": record.number}
                         for name, value in submission.labels.items()]  # fmt: skip
            if submission.idempotency_key is not None:
                known[key] = record
        elif not _is_of(record, submission):
            raise ConflictError(
                f"idempotency key '{submission.idempotency_key}' was used for job '{record.id}' with other content; "
                "use a new key for a new job"
            )
        records.append(record)
    _refuse_taken(connection, [record.id for record in new])
    if new:
        connection.execute(_INSERT, [{name: getattr(record, name) for name in _COLUMNS} for record in new])
    if waiting:
        save_needs(connection, waiting)
    if labelled:
        connection.execute(insert(labels), labelled)
    return records


def _key(job: Submission | JobRecord) -> tuple[str, str | None]:
    return job.submitted_by, job.idempotency_key


def _is_of(record: JobRecord, submission: Submission) -> bool:
    """Whether a job was made by the same submission.

    Older versions stored a description as it was written, so the documents of such a job and of its repetition are
    compared where the digests differ.
    """
    content = submission.content()
    if record.content == content:
        return True
    if record.content.partition("/")[2] != content.partition("/")[2]:  # it came together with more, or fewer
        return False
    columns = [(one.name, one.team, one.weight, one.steps) for one in (record, submission)]
    if submission.id not in {None, record.id} or columns[0] != columns[1]:
        return False
    try:
        return job_of(record.spec, record.id).document() == job_of(submission.spec, record.id).document()
    except InputError:
        return False


def _known(connection: Connection, submissions: Sequence[Submission]) -> dict[tuple[str, str | None], JobRecord]:
    """The jobs that were submitted with one of these keys before."""
    keys: dict[str, list[str]] = {}
    for submission in submissions:
        if submission.idempotency_key is not None:
            keys.setdefault(submission.submitted_by, []).append(submission.idempotency_key)
    found: dict[tuple[str, str | None], JobRecord] = {}
    for submitter, values in keys.items():
        for some in in_parts(values):
            for row in connection.execute(_BY_KEY, {"submitter": submitter, "values": some}):
                record = JobRecord(*row)
                found[_key(record)] = record
    return found


def _refuse_taken(connection: Connection, ids: Sequence[str]) -> None:
    given = [name for name in ids if not _OURS.fullmatch(name)]
    taken = {name for some in in_parts(given) for name in connection.execute(_TAKEN, {"values": some}).scalars()}
    for name in given:
        if name in taken:
            raise ConflictError(f"job '{name}' exists already; choose another id")
        taken.add(name)
