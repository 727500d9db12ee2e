"""The tables. What must never happen is refused by the database itself, whatever the program does.

`held_workers` has at most one row per worker and `lease_jobs` at most one held row per job: no two leases hold the same
worker, no job runs twice at once. Numbers of jobs, leases and journal entries come from `counters`: they only grow,
also over restarts. Times are seconds since 1970.
"""

from __future__ import annotations

from sqlalchemy import (
    Boolean,
    CheckConstraint,
    Column,
    Double,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    MetaData,
    Table,
    UniqueConstraint,
)

from fairway.store.database.columns import Json, State, Whole, Words
from fairway.store.states import JobState

VERSION = 5
"""Of these tables. Raise it with every change, and add the step that makes the change to `migrations`."""

metadata = MetaData()

schema_version = Table(
    "fairway_schema",
    metadata,
    Column("version", Integer, nullable=False),
)

counters = Table(
    "counters",
    metadata,
    Column("name", Words, primary_key=True),
    Column("value", Whole, nullable=False),
)

jobs = Table(
    "jobs",
    metadata,
    Column("number", Whole, primary_key=True, autoincrement=False),
    Column("id", Words, nullable=False, unique=True),
    Column("name", Words),
    Column("team", Words),
    Column("weight", Double, nullable=False),
    Column("spec", Json, nullable=False),
    Column("state", State, nullable=False),
    Column("submitted_by", Words, nullable=False),
    Column("submitted_at", Double, nullable=False),
    Column("changed_at", Double, nullable=False),
    Column("started_at", Double),
    Column("ended_at", Double),
    Column("cancel_requested_at", Double),
    Column("attempts", Whole, nullable=False),
    Column("failures", Whole, nullable=False),
    Column("exit_code", Whole),
    Column("reason_code", Words),
    Column("reason", Words),
    Column("steps", Double),
    Column("steps_left", Double),
    Column("checkpoint_steps_left", Double),
    Column("checkpoint_at", Double),
    Column("checkpoint", Words),
    Column("idempotency_key", Words),
    Column("content", Words, nullable=False),
    Column("array_id", Words),
    Column("array_name", Words),
    UniqueConstraint("submitted_by", "idempotency_key"),
    CheckConstraint(f"state IN ({', '.join(repr(state.value) for state in JobState)})"),
    CheckConstraint("steps_left <= checkpoint_steps_left"),
    Index("jobs_by_state", "state", "number"),
    Index("jobs_by_team", "team", "number"),
    Index("jobs_by_team_and_state", "team", "state", "number"),
    Index("jobs_by_change", "changed_at", "number"),
    Index("jobs_by_name", "name", "number"),
    Index("jobs_by_array_name", "array_name", "number"),
)

labels = Table(
    "labels",
    metadata,
    Column("label", Words, primary_key=True),
    Column("value", Words, primary_key=True),
    Column("job", Whole, ForeignKey(jobs.c.number), primary_key=True, autoincrement=False),
)

dependencies = Table(
    "dependencies",
    metadata,
    Column("job", Whole, ForeignKey(jobs.c.number), primary_key=True, autoincrement=False),
    Column("needs", Whole, ForeignKey(jobs.c.number), primary_key=True, autoincrement=False),
    Column("succeeded", Boolean, nullable=False),
)

agents = Table(
    "agents",
    metadata,
    Column("name", Words, primary_key=True),
    Column("details", Json, nullable=False),
    Column("registered_at", Double, nullable=False),
    Column("seen_at", Double, nullable=False),
)

workers = Table(
    "workers",
    metadata,
    Column("accelerator", Words, primary_key=True),
    Column("number", Whole, primary_key=True, autoincrement=False),
    Column("agent", Words, ForeignKey(agents.c.name), nullable=False),
    Column("device", Words, nullable=False),
    Column("emulated", Boolean, nullable=False),
    Column("registered_at", Double, nullable=False),
    Column("drained_at", Double),
    Column("lost_at", Double),
    UniqueConstraint("agent", "device", "accelerator"),
)

leases = Table(
    "leases",
    metadata,
    Column("number", Whole, primary_key=True, autoincrement=False),
    Column("jobs", Json, nullable=False),
    Column("accelerator", Words, nullable=False),
    Column("workers", Json, nullable=False),
    Column("until", Double, nullable=False),
    Column("restart", Boolean, nullable=False),
    Column("spread", Boolean, nullable=False),
    Column("planned_at", Double, nullable=False),
    Column("granted_at", Double),
    Column("extended_at", Double),
    Column("revoked_at", Double),
    Column("ended_at", Double),
    Column("reason", Words),
    Column("part", Double, nullable=False, server_default="1"),
)
Index("leases_open", leases.c.number, sqlite_where=leases.c.ended_at.is_(None),
      postgresql_where=leases.c.ended_at.is_(None))  # fmt: skip

lease_jobs = Table(
    "lease_jobs",
    metadata,
    Column("job", Words, ForeignKey(jobs.c.id), primary_key=True),
    Column("lease", Whole, ForeignKey(leases.c.number), primary_key=True),
    Column("held", Boolean, nullable=False),
    Index("lease_jobs_by_lease", "lease"),
)
Index("one_lease_per_job", lease_jobs.c.job, unique=True, sqlite_where=lease_jobs.c.held,
      postgresql_where=lease_jobs.c.held)  # fmt: skip

held_workers = Table(
    "held_workers",
    metadata,
    Column("accelerator", Words, primary_key=True),
    Column("worker", Whole, primary_key=True, autoincrement=False),
    Column("lease", Whole, ForeignKey(leases.c.number), nullable=False, index=True),
    ForeignKeyConstraint(["accelerator", "worker"], [workers.c.accelerator, workers.c.number]),
)

held_parts = Table(
    "held_parts",
    metadata,
    Column("accelerator", Words, primary_key=True),
    Column("worker", Whole, primary_key=True, autoincrement=False),
    Column("lease", Whole, ForeignKey(leases.c.number), primary_key=True, autoincrement=False, index=True),
    Column("part", Double, nullable=False),
    ForeignKeyConstraint(["accelerator", "worker"], [workers.c.accelerator, workers.c.number]),
)

attempts = Table(
    "attempts",
    metadata,
    Column("job", Words, ForeignKey(jobs.c.id), primary_key=True),
    Column("attempt", Whole, primary_key=True, autoincrement=False),
    Column("lease", Whole, ForeignKey(leases.c.number), nullable=False),
    Column("started_at", Double, nullable=False),
    Column("ended_at", Double),
    Column("outcome", Words),
    Column("exit_code", Whole),
    Column("reason", Words),
)
Index("attempts_open", attempts.c.job, unique=True, sqlite_where=attempts.c.ended_at.is_(None),
      postgresql_where=attempts.c.ended_at.is_(None))  # fmt: skip

rates = Table(
    "rates",
    metadata,
    Column("job", Words, ForeignKey(jobs.c.id), primary_key=True),
    Column("accelerator", Words, primary_key=True),
    Column("beside", Words, primary_key=True),
    Column("steps_per_second", Double, nullable=False),
    Column("measured_at", Double, nullable=False),
)

journal = Table(
    "journal",
    metadata,
    Column("sequence", Whole, primary_key=True, autoincrement=False),
    Column("at", Double, nullable=False),
    Column("kind", Words, nullable=False),
    Column("name", Words, nullable=False),
    Column("cause", Whole),
    Column("body", Json, nullable=False),
    Index("journal_by_kind", "kind", "sequence"),
)

standing = Table(
    "standing",
    metadata,
    Column("name", Words, primary_key=True),
    Column("at", Double, nullable=False),
    Column("body", Json, nullable=False),
)

reservations = Table(
    "reservations",
    metadata,
    Column("number", Whole, primary_key=True, autoincrement=False),
    Column("team", Words, nullable=False),
    Column("workers", Json, nullable=False),
    Column("begins_at", Double, nullable=False),
    Column("ends_at", Double, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("created_by", Words, nullable=False),
    Column("cancelled_at", Double),
    CheckConstraint("begins_at < ends_at"),
)

tokens = Table(
    "tokens",
    metadata,
    Column("id", Words, primary_key=True),
    Column("digest", Words, nullable=False, unique=True),
    Column("name", Words, nullable=False),
    Column("role", Words, nullable=False),
    Column("team", Words),
    Column("created_at", Double, nullable=False),
    Column("revoked_at", Double),
    Column("expires_at", Double),
    Column("used_at", Double),
    CheckConstraint("(role = 'member' AND team IS NOT NULL) OR (role IN ('admin', 'reader') AND team IS NULL)"),
)
