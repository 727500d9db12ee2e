"""The saved run of a live cluster, or of one that is not there any more, read from its store.

The same question is asked for a whole run and for what is new since a moment: each answer holds, whole, every job and
lease that changed, and the jobs that these leases are of, so that who asks again only has to replace what it has by
id and number. Of leases only those count that held their workers. To the holder of a member's token, jobs of other
teams do not exist: a lease of theirs is of job -1.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Select, Text, or_, select, type_coerce

from fairway.errors import InputError
from fairway.jobs.accelerators import AcceleratorRequest
from fairway.store.database.in_one_go import in_one_go, rows_of
from fairway.store.database.schema import attempts, jobs, leases, rates
from fairway.store.journal import Entry, last_entry, read_journal
from fairway.store.records import Worker
from fairway.store.workers import all_workers

MOST_JOBS = 20_000
MOST_LEASES = 200_000
MOST_DECISIONS = 2_000

_DIGITS = 3
_PART = 200
_JOBS = (
    jobs.c.number, jobs.c.id, jobs.c.name, jobs.c.team, jobs.c.weight, type_coerce(jobs.c.state, Text).label("state"),
    jobs.c.submitted_by, jobs.c.submitted_at, jobs.c.started_at, jobs.c.ended_at, jobs.c.attempts, jobs.c.steps,
    jobs.c.steps_left, jobs.c.reason_code, jobs.c.reason, type_coerce(jobs.c.spec, Text).label("spec"),
)  # fmt: skip
_LEASES = (
    leases.c.number, type_coerce(leases.c.jobs, Text).label("jobs"), leases.c.accelerator,
    type_coerce(leases.c.workers, Text).label("workers"), leases.c.granted_at, leases.c.ended_at, leases.c.reason,
)  # fmt: skip


def saved_store(
    connection: Connection,
    *,
    label: str | None = None,
    team: str | None = None,
    since: float | None = None,
    decisions: bool = True,
    now: float | None = None,
) -> dict[str, Any]:
    """The newest jobs and leases of a store, of one team only if so asked; or only what changed `since` a moment."""
    as_of = time.time() if now is None else now
    start = last_entry(connection, "start")
    workers = all_workers(connection)
    types = list(dict.fromkeys(worker.accelerator for worker in workers))
    held = _held(connection, since)
    types += [kind for kind in dict.fromkeys(lease["accelerator"] for lease in held) if kind not in types]
    known = _jobs(connection, team, since, {job for lease in held for job in lease["jobs"]})
    begins = _begin(workers, known, held) if since is None else 0.0
    head = _head(start)
    return {
        "kind": "training",
        "label": label or head["policy"] or "live",
        **head,
        "settings": {},
        "summary": {},
        "begins_at": begins,
        "end": round(as_of - begins, _DIGITS),
        "emulated": any(worker.emulated for worker in workers),
        "types": types,
        "per_node": {},
        "workers": _worker_columns(workers, types, begins),
        **_columns(connection, known, held, types, begins, decisions=decisions),
    }


def _columns(
    connection: Connection,
    known: Sequence[Mapping[str, Any]],
    held: Sequence[Mapping[str, Any]],
    types: Sequence[str],
    begins: float,
    *,
    decisions: bool,
) -> dict[str, Any]:
    row_of = {job["id"]: row for row, job in enumerate(known)}
    tried = _of_jobs(connection, select(*attempts.c), attempts.c.job, row_of)
    measured = _of_jobs(connection, select(*rates.c), rates.c.job, row_of)
    preempted: dict[str, int] = {}
    for attempt in tried:
        if attempt["outcome"] == "preempted":
            preempted[attempt["job"]] = preempted.get(attempt["job"], 0) + 1
    decided = _decisions(connection) if decisions else []
    visible = [lease for lease in held if lease["workers"]]
    return {
        "teams": _teams(known, last_entry(connection, "start")),
        "jobs": _job_columns(known, preempted, begins),
        "leases": {
            "number": [lease["number"] for lease in visible],
            "job": [row_of.get(lease["jobs"][0], -1) for lease in visible],
            "partner": [row_of.get(lease["jobs"][1], -1) if len(lease["jobs"]) > 1 else -1 for lease in visible],
            "type": [types.index(lease["accelerator"]) for lease in visible],
            "start": [_after(begins, lease["granted_at"]) for lease in visible],
            "end": [_after(begins, lease["ended_at"]) for lease in visible],
            "steps": [None] * len(visible),
            "partner_steps": [None] * len(visible),
            "workers": [lease["workers"] for lease in visible],
            "reason": [lease["reason"] for lease in visible],
        },
        "attempts": {
            "job": [row_of[each["job"]] for each in tried],
            "attempt": [each["attempt"] for each in tried],
            "start": [_after(begins, each["started_at"]) for each in tried],
            "end": [_after(begins, each["ended_at"]) for each in tried],
            "outcome": [each["outcome"] for each in tried],
            "exit_code": [each["exit_code"] for each in tried],
            "reason": [each["reason"] for each in tried],
        },
        "rates": {
            "job": [row_of[each["job"]] for each in measured],
            "type": [each["accelerator"] for each in measured],
            "beside": [each["beside"] or None for each in measured],
            "steps_per_second": [float(each["steps_per_second"]) for each in measured],
            "measured": [_after(begins, each["measured_at"]) for each in measured],
        },
        "rounds": {"time": [], "waiting": [], "running": [], "busy": []},
        "decisions": {
            "entry": [entry.sequence for entry in decided],
            "time": [_after(begins, entry.at) for entry in decided],
            "policy": [entry.name for entry in decided],
            "body": [dict(entry.body) for entry in decided],
        },
    }


def _head(start: Entry | None) -> dict[str, Any]:
    """What the last start of an engine says of the run."""
    body = {} if start is None else start.body
    return {"policy": body.get("policy"), "prices": dict((body.get("cluster") or {}).get("prices") or {})}


def _begin(workers: Sequence[Worker], known: Sequence[Mapping[str, Any]], held: Sequence[Mapping[str, Any]]) -> float:
    moments = [float(job["submitted_at"]) for job in known] + [float(lease["granted_at"]) for lease in held]
    return min(moments, default=min((worker.registered_at for worker in workers), default=0.0))


def _held(connection: Connection, since: float | None) -> list[dict[str, Any]]:
    """Leases that held their workers, by number: the newest, or those that were granted or ended since a moment."""
    statement = select(*_LEASES).where(leases.c.granted_at.is_not(None))
    if since is not None:
        statement = statement.where(or_(leases.c.ended_at >= since, leases.c.granted_at >= since))
    statement = statement.order_by(leases.c.number.desc()).limit(MOST_LEASES)
    found = _rows(connection, statement)
    for lease in found:
        lease["jobs"], lease["workers"] = json.loads(lease["jobs"]), json.loads(lease["workers"])
    return sorted(found, key=lambda lease: int(lease["number"]))


def _jobs(
    connection: Connection, team: str | None, since: float | None, of_leases: Collection[str]
) -> list[dict[str, Any]]:
    """The newest jobs, or those that changed since a moment, and those of leases; only what a team may see."""
    statement = select(*_JOBS).order_by(jobs.c.number.desc()).limit(MOST_JOBS)
    if team is not None:
        statement = statement.where(jobs.c.team == team)
    if since is not None:
        statement = statement.where(jobs.c.changed_at >= since)
    found = {job["id"]: job for job in _rows(connection, statement)}
    missing = [name for name in of_leases if name not in found]
    for start in range(0, len(missing), _PART):
        some = select(*_JOBS).where(jobs.c.id.in_(missing[start : start + _PART]))
        if team is not None:
            some = some.where(jobs.c.team == team)
        found |= {job["id"]: job for job in _rows(connection, some)}
    return sorted(found.values(), key=lambda job: int(job["number"]))


def _of_jobs(
    connection: Connection, statement: Select[Any], column: Any, names: Collection[str]
) -> list[dict[str, Any]]:
    """The rows of some jobs; of very many jobs, all rows are read at once and the others left out."""
    if len(names) > 5 * _PART:
        return [row for row in _rows(connection, statement) if row["job"] in names]
    listed = sorted(names)
    found: list[dict[str, Any]] = []
    for start in range(0, len(listed), _PART):
        found += _rows(connection, statement.where(column.in_(listed[start : start + _PART])))
    return found


def _rows(connection: Connection, statement: Select[Any]) -> list[dict[str, Any]]:
    names = [column.name for column in statement.selected_columns]
    return [
        dict(zip(names, row, strict=True))
        for row in rows_of(connection, in_one_go(connection.dialect.name, statement), None)
    ]


def _decisions(connection: Connection) -> list[Entry]:
    found: list[Entry] = []
    after = 0
    while len(found) < MOST_DECISIONS:
        page = read_journal(connection, after=after, limit=_PART, kinds=["decision"])
        found += page
        if len(page) < _PART:
            break
        after = page[-1].sequence
    return found


def _worker_columns(workers: Sequence[Worker], types: Sequence[str], begins: float) -> dict[str, Any]:
    return {
        "type": [types.index(worker.accelerator) for worker in workers],
        "number": [worker.number for worker in workers],
        "node": [worker.agent for worker in workers],
        "device": [worker.device for worker in workers],
        "since": [_after(begins, worker.registered_at) for worker in workers],
        "drained": [_after(begins, worker.drained_at) for worker in workers],
        "lost": [_after(begins, worker.lost_at) for worker in workers],
    }


def _teams(known: Sequence[Mapping[str, Any]], start: Entry | None) -> dict[str, Any]:
    options = {} if start is None else start.body.get("options") or {}
    entities: dict[str, Any] = options.get("entities") or {}
    seen = {job["team"] for job in known if job["team"] is not None}
    names = [*(name for name in entities if name in seen), *sorted(seen - set(entities))]
    return {"name": names, "weight": [entities.get(name, {}).get("weight", 1.0) for name in names]}


def _job_columns(known: Sequence[Mapping[str, Any]], preempted: Mapping[str, int], begins: float) -> dict[str, Any]:
    specs = [json.loads(job["spec"]) for job in known]
    asked = [_asked(spec) for spec in specs]
    return {
        "id": [job["id"] for job in known],
        "name": [job["name"] for job in known],
        "type": [spec.get("job_type") for spec in specs],
        "team": [job["team"] for job in known],
        "user": [job["submitted_by"].rpartition(" (")[0] or job["submitted_by"] for job in known],
        "state": [job["state"] for job in known],
        "submitted": [_after(begins, job["submitted_at"]) for job in known],
        "started": [_after(begins, job["started_at"]) for job in known],
        "ended": [_after(begins, job["ended_at"]) for job in known],
        "count": [count for _, count in asked],
        "asked": [text for text, _ in asked],
        "weight": [float(job["weight"]) for job in known],
        "deadline": [None] * len(known),
        "isolated": [None] * len(known),
        "attempts": [job["attempts"] for job in known],
        "preemptions": [preempted.get(job["id"], 0) for job in known],
        "steps": [_number(job["steps"]) for job in known],
        "steps_left": [_number(job["steps_left"]) for job in known],
        "reason_code": [job["reason_code"] for job in known],
        "reason": [job["reason"] for job in known],
        "counted": [True] * len(known),
    }


def _asked(spec: Mapping[str, Any]) -> tuple[str | None, int]:
    """The accelerators that a stored job asks for, in text, and how many of them."""
    resources = spec.get("resources")
    given = resources.get("accelerators") if isinstance(resources, Mapping) else None
    try:
        request = AcceleratorRequest() if given is None else AcceleratorRequest.read(given)
    except InputError:  # of a version that knew other forms
        request = AcceleratorRequest()
    return str(request), request.count


def _after(begins: float, moment: object) -> float | None:
    number = _number(moment)
    return None if number is None else round(number - begins, _DIGITS)


def _number(value: Any) -> float | None:
    return None if value is None else float(value)
