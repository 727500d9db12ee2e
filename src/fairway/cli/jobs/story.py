"""What `fairway status` shows: the cluster, or a job with its attempts, leases and measured rates."""

from __future__ import annotations

import time
from collections.abc import Iterable

import yaml
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from fairway.cli import words
from fairway.client.records import Job, Lease, Status


def facts(rows: Iterable[tuple[str, RenderableType | None]]) -> Table:
    """Names and values; a fact without a value is left out."""
    grid = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in rows:
        if value is not None and value != words.NOTHING:
            grid.add_row(name, value)
    return grid


def cluster_story(status: Status) -> RenderableType:
    """Policy, rounds, workers by type and jobs by state."""
    now = time.time()
    left = None if status.round_ends_at is None else max(0.0, status.round_ends_at - now)
    health = (
        Text("healthy", style="green")
        if status.healthy
        else Text(f"not healthy: {status.trouble or 'see its log'}", style="red")
    )
    emulated = Text("emulated", style="magenta") if status.emulated else Text("real")
    rows: list[tuple[str, RenderableType | None]] = [
        ("Fairway", Text.assemble(words.text(status.version), ", ", health)),
        ("accelerators", emulated),
        ("policy", words.text(status.policy)),
        ("round", f"{words.span(status.round_seconds)}, the next in {words.span(left)}" if left is not None else None),
        ("rounds", None if status.rounds is None else f"{status.rounds}, {status.solves or 0} decisions"),
        ("time", None if status.time_scale == 1 else f"runs {status.time_scale:g} times as fast"),
        ("store", words.text(status.store)),
        ("jobs", _counts(status)),
        *[("note", words.text(caveat, "yellow")) for caveat in status.caveats],
    ]
    table = _small_table("type", "workers", "busy", "drained", "lost")
    for name, numbers in status.workers.items():
        counts = (str(numbers.get(column, 0)) for column in ("total", "busy", "drained", "lost"))
        emulation = " (emulated)" if status.emulated else ""
        table.add_row(Text.assemble(words.text(name, "bold"), (emulation, "magenta")), *counts)
    return Group(facts(rows), Text(), table)


def _counts(status: Status) -> Text:
    counts = [Text.assemble(f"{number} ", words.state(name)) for name, number in status.jobs.items() if number]
    return Text(", ").join(counts) if counts else Text("none")


def job_story(job: Job) -> RenderableType:
    """Everything that is known of a job."""
    now = time.time()
    title = Text.assemble(words.text(job.id, "bold"), " ", words.text(job.name) if job.name else "", " ")
    title.append_text(words.state(job.state))
    reason = Text.assemble((job.reason_code or "", "bold"), ": " if job.reason else "", words.text(job.reason or ""))
    rows: list[tuple[str, RenderableType | None]] = [
        ("why", reason if job.reason_code or job.reason else None),
        ("team", words.text(job.team) if job.team else None),
        ("weight", f"{job.weight:g}"),
        ("asks for", words.text(job.accelerators or "any accelerator")),
        ("runs on", words.accelerator(job) if job.accelerator else None),
        ("progress", words.progress(job)),
        ("measured", f"{words.number(job.steps_per_second)} steps/s" if job.steps_per_second else None),
        ("saved", _saved(job)),
        ("submitted", f"{words.moment(job.submitted_at, now)}{f' by {job.submitted_by}' if job.submitted_by else ''}"),
        ("started", words.moment(job.started_at, now)),
        (
            "cancelled",
            f"asked for at {words.moment(job.cancel_requested_at, now)}" if job.cancel_requested_at else None,
        ),
        ("ended", words.moment(job.ended_at, now)),
        ("exit code", None if job.exit_code is None else str(job.exit_code)),
        ("attempts", f"{job.attempt_count}, {job.failures} failed" if job.attempt_count else None),
    ]
    parts: list[RenderableType] = [title, facts(rows)]
    parts += _attempts(job, now) + _leases(job, now) + _rates(job)
    if job.spec is not None:
        parts += [
            Text("\nits description", style="dim"),
            Text(yaml.safe_dump(dict(job.spec), sort_keys=False).rstrip()),
        ]
    return Group(*parts)


def _saved(job: Job) -> str | None:
    if job.steps is None or job.checkpoint_steps_left is None:
        return None
    return f"{words.count(job.steps - job.checkpoint_steps_left)} steps in its last checkpoint"


def _attempts(job: Job, now: float) -> list[RenderableType]:
    if not job.attempts:
        return []
    table = _small_table("attempt", "started", "took", "outcome", "exit code", "reason")
    for one in job.attempts:
        took = None if one.started_at is None else (one.ended_at or now) - one.started_at
        table.add_row(
            str(one.attempt),
            words.moment(one.started_at, now),
            words.span(took),
            words.text(one.outcome or "running"),
            words.text(one.exit_code),
            words.text(one.reason),
        )
    return [Text(), table]


def _leases(job: Job, now: float) -> list[RenderableType]:
    if not job.leases:
        return []
    table = _small_table("lease", "on", "granted", "until", "ended", "reason")
    for lease in job.leases:
        table.add_row(
            str(lease.number),
            words.text(_where(lease)),
            words.moment(lease.granted_at, now),
            words.moment(lease.until, now),
            words.moment(lease.ended_at, now),
            words.text(lease.reason),
        )
    return [Text(), table]


def _where(lease: Lease) -> str:
    return ", ".join(f"{lease.accelerator}/{number}" for number in lease.workers)


def _rates(job: Job) -> list[RenderableType]:
    if not job.rates:
        return []
    table = _small_table("measured on", "steps/s", "beside")
    for rate in job.rates:
        table.add_row(words.text(rate.accelerator), words.number(rate.steps_per_second), words.text(rate.beside))
    return [Text(), table]


def _small_table(*columns: str) -> Table:
    return Table(*columns, box=None, pad_edge=False, padding=(0, 2, 0, 0))
