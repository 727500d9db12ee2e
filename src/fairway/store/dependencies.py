"""Which jobs a job waits for: named when it is submitted, kept by number, and looked up with how they stand.

Only jobs that exist can be named, those before it in the same submission included, so no two can wait for each other.
An id means the job that has it; a name means the newest job so called, and that of an array all of its jobs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, bindparam, insert, or_, select

from fairway.documents import shown
from fairway.errors import InputError
from fairway.store.database.parts import in_parts
from fairway.store.database.schema import dependencies, jobs
from fairway.store.records import JobRecord
from fairway.store.states import ACTIVE, JobState

MOST_AT_ONCE = 10_000
"""Jobs that those of one submission may wait for, counted for each of them."""

_NEEDS = (
    select(dependencies.c.job, jobs.c.id, jobs.c.state, dependencies.c.succeeded)
    .join(jobs, jobs.c.number == dependencies.c.needs)
    .where(dependencies.c.job.in_(bindparam("values")))
    .order_by(dependencies.c.job, dependencies.c.needs)
)
_ENDED = select(jobs.c.id, jobs.c.state).where(jobs.c.changed_at >= bindparam("since"))


@dataclass(frozen=True, slots=True)
class Named:
    """The jobs that one waits for, as they were named, and the team among whose jobs they are looked for, if any."""

    after: Sequence[str] = ()
    afterok: Sequence[str] = ()
    team: str | None = None


@dataclass(frozen=True, slots=True)
class Need:
    """A job that another one waits for, and how it stands; whether it has to end well."""

    job: str
    state: JobState
    succeeded: bool

    @property
    def met(self) -> bool:
        """Whether it is waited for no more."""
        return self.state is JobState.SUCCEEDED or (not self.succeeded and self.state not in ACTIVE)

    @property
    def hopeless(self) -> bool:
        """Whether it has ended otherwise than it had to."""
        return self.succeeded and self.state not in ACTIVE and self.state is not JobState.SUCCEEDED


def save_needs(connection: Connection, waiting: Iterable[tuple[JobRecord, Named]]) -> None:
    """Write down for what jobs wait that were just taken in; refuses a name that none has."""
    found: dict[tuple[str, str | None, int], list[int]] = {}
    rows: list[dict[str, object]] = []
    for record, named in waiting:
        # Of an array, none waits for another, though they have names in common.
        before = record.number if record.array_id is None else int(record.array_id.removeprefix("job-"))
        needs: dict[int, bool] = {}
        for field, names in (("after", named.after), ("afterok", named.afterok)):
            for name in names:
                key = name, named.team, before
                if key not in found:
                    found[key] = _numbers(connection, name, named.team, before)
                if not found[key]:
                    why = "only jobs that exist can be waited for, by id or name"
                    raise InputError(f"{field}: no job {shown(name)}; {why}")
                needs |= dict.fromkeys(found[key], field == "afterok")
        rows += [{"job": record.number, "needs": number, "succeeded": ok} for number, ok in needs.items()]
        if len(rows) > MOST_AT_ONCE:
            raise InputError(f"after: more than {MOST_AT_ONCE} jobs to wait for in one submission; wait for fewer")
    if rows:
        connection.execute(insert(dependencies), rows)


def _numbers(connection: Connection, name: str, team: str | None, before: int) -> list[int]:
    """The jobs that a name means to one that comes after."""
    visible = [jobs.c.number < before, *([] if team is None else [jobs.c.team == team])]
    by_id = connection.execute(select(jobs.c.number).where(jobs.c.id == name, *visible)).scalar_one_or_none()
    if by_id is not None:
        return [by_id]
    called = or_(jobs.c.name == name, jobs.c.array_name == name)
    newest = select(jobs.c.number, jobs.c.name, jobs.c.array_id).where(called, *visible)
    row = connection.execute(newest.order_by(jobs.c.number.desc()).limit(1)).one_or_none()
    if row is None:
        return []
    if row.name == name:
        return [row.number]
    return list(connection.execute(select(jobs.c.number).where(jobs.c.array_id == row.array_id, called)).scalars())


def needs_of(connection: Connection, records: Sequence[JobRecord]) -> dict[str, list[Need]]:
    """What jobs wait for or have waited for, by their ids."""
    ids = {record.number: record.id for record in records if names_others(record.spec)}
    found: dict[str, list[Need]] = defaultdict(list)
    for some in in_parts(list(ids)):
        for job, needed, state, succeeded in connection.execute(_NEEDS, {"values": some}):
            found[ids[job]].append(Need(needed, state, succeeded))
    return dict(found)


def names_others(spec: Mapping[str, object]) -> bool:
    """Whether a job waits for others, by its description."""
    return "after" in spec or "afterok" in spec


def jobs_ended(connection: Connection, *, since: float) -> dict[str, JobState]:
    """The jobs that have ended at this moment or later, and how."""
    return {job: state for job, state in connection.execute(_ENDED, {"since": since}) if state not in ACTIVE}
