"""Jobs as a table, one row each, for `fairway ls` and `fairway top`."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from fairway.cli import words
from fairway.client.records import Job


def job_table(jobs: Sequence[Job], now: float, *, title: str | None = None) -> Table:
    """What they are, how they stand and why."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), title=title, title_justify="left")
    classed = any(job.priority_class is not None for job in jobs)
    for name in ("job", "name", "team", *(["class"] if classed else []), "state", "accelerator"):
        table.add_column(name, no_wrap=True)
    table.add_column("progress", no_wrap=True, justify="right")
    table.add_column("steps/s", no_wrap=True, justify="right")
    table.add_column("time", no_wrap=True, justify="right")
    table.add_column("reason", overflow="fold")
    for job in jobs:
        table.add_row(
            words.text(job.id, "bold"),
            words.text(job.name),
            words.text(job.team),
            *([words.text(job.priority_class)] if classed else []),
            words.state(job.state),
            words.accelerator(job),
            words.progress(job),
            words.number(job.steps_per_second),
            words.span(words.time_of(job, now)),
            reason(job),
        )
    return table


def reason(job: Job) -> Text:
    """Why it waits, or why it ended: the code, and the sentence unless all is well."""
    if job.cancel_requested_at is not None and not job.ended:
        return Text("is being cancelled")
    if job.state in {"running", "succeeded"} or job.reason is None:
        return words.text(job.reason_code or "", "dim")
    return Text.assemble((f"{job.reason_code}: " if job.reason_code else "", "bold"), words.text(job.reason))
