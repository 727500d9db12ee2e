"""One frame of `fairway top`: the round, the workers by type, the teams' shares, what runs and what waits."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from fairway.cli import words
from fairway.cli.jobs.job_table import job_table
from fairway.client.records import Job, Status, Worker

MOST_JOBS = 1000
"""More than any screen shows; their team and name are needed for what the workers do."""

_BAR = 24
_LINES_BESIDE_JOBS = 12
_MOST_SHOWN = 40


def frame(
    status: Status, workers: Sequence[Worker], jobs: Sequence[Job], now: float, height: int | None = None
) -> RenderableType:
    """The frame, of at most so many lines if a height is given."""
    by_id = {job.id: job for job in jobs}
    types = _types(workers, by_id)
    teams = _teams(workers, by_id)
    running = [job for job in jobs if job.state != "queued"]
    waiting = [job for job in jobs if job.state == "queued"]
    room = _MOST_SHOWN if height is None else max(4, height - _LINES_BESIDE_JOBS - len(types.rows) - len(teams.rows))
    shown = [*running, *waiting][:room]
    parts: list[RenderableType] = [_head(status, now), Text(), types]
    if teams.rows:
        parts += [Text(), teams]
    parts += [Text(), job_table(shown, now) if shown else Text("no job waits or runs", style="dim")]
    hidden = sum(status.jobs.get(name, 0) for name in ("queued", "running", "preempting")) - len(shown)
    if hidden > 0:
        parts.append(Text(f"… and {hidden} more", style="dim"))
    return Group(*parts)


def _head(status: Status, now: float) -> Text:
    line = Text.assemble(("Fairway", "bold"), f" {status.version or ''}  ", words.text(status.policy))
    if status.round_ends_at is not None:
        line.append(f"  round ends in {words.span(max(0.0, status.round_ends_at - now))}")
    if status.time_scale != 1:
        line.append(f"  time × {status.time_scale:g}")
    if status.emulated:
        line.append("  EMULATED accelerators", style="bold magenta")
    if not status.healthy:
        line.append("  not healthy", style="bold red")
    counts = [f"{number} {name}" for name, number in status.jobs.items() if number]
    line.append(f"\n{', '.join(counts) or 'no jobs'}")
    return line


def _types(workers: Sequence[Worker], jobs: Mapping[str, Job]) -> Table:
    """A row for each accelerator type: how many are busy, the rate of all that runs there, and who it is."""
    table = Table("accelerator", "busy", "", "steps/s", "runs", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    by_type: dict[str, list[Worker]] = defaultdict(list)
    for worker in workers:
        by_type[worker.accelerator].append(worker)
    for name, those in by_type.items():
        states = Counter(worker.state for worker in those)
        ids = list(dict.fromkeys(job for worker in those for job in worker.jobs))
        rates = [rate for job in ids if job in jobs and (rate := jobs[job].steps_per_second) is not None]
        emulated = " (emulated)" if any(worker.emulated for worker in those) else ""
        usable = len(those) - states["drained"] - states["lost"]
        away = "".join(f", {states[state]} {state}" for state in ("drained", "lost") if states[state])
        table.add_row(
            Text.assemble(words.text(name, "bold"), (emulated, "magenta")),
            f"{states['busy']} of {usable}{away}",
            _bar(states["busy"], len(those)),
            words.number(sum(rates)) if rates else words.NOTHING,
            words.text(", ".join(_called(job, jobs) for job in ids)),
        )
    return table


def _called(job: str, jobs: Mapping[str, Job]) -> str:
    name = jobs[job].name if job in jobs else None
    return f"{job} ({name})" if name else job


def _teams(workers: Sequence[Worker], jobs: Mapping[str, Job]) -> Table:
    """A row for each team with active jobs: which part of the workers it holds now."""
    held: dict[str, float] = defaultdict(float)
    for worker in workers:
        for job in worker.jobs:
            if job in jobs:  # two jobs that share a worker hold half of it each, as far as this goes
                held[jobs[job].team or ""] += 1 / len(worker.jobs)
    waiting = Counter(job.team or "" for job in jobs.values() if job.state == "queued")
    table = Table("team", "workers", "", "waiting", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    names = sorted({*held, *waiting})
    if names == [""]:  # no job has a team
        return table
    for name in names:
        part = held[name] / len(workers) if workers else 0.0
        row = (f"{held[name]:g} ({part:.0%})", _bar(held[name], len(workers)), str(waiting[name]))
        table.add_row(words.text(name or "no team"), *row)
    return table


def _bar(part: float, whole: int) -> Text:
    filled = round(_BAR * part / whole) if whole else 0
    return Text.assemble(("█" * filled, "cyan"), ("░" * (_BAR - filled), "dim"))
