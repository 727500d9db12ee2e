"""Reads back what the jobs of the live benchmarks wrote down (see `_live_job.py`)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(slots=True)
class Life:
    """What one process of a job did: where it began, each step with its time, and what it is known to have saved."""

    job: str
    lease: int
    pid: int
    began_at: float
    first: int
    steps: list[tuple[float, int]] = field(default_factory=list)
    saved: list[tuple[float, int]] = field(default_factory=list)
    last_at: float = 0.0
    ended: bool = False

    @property
    def last(self) -> int:
        """The last step that it did."""
        return self.steps[-1][1] if self.steps else self.first


def lives_of(trace: Path) -> list[Life]:
    """The processes of a job, in the order in which they began; the last line may be cut short by a kill."""
    lives: list[Life] = []
    by_pid: dict[tuple[int, int], Life] = {}
    if not trace.exists():
        return lives
    for line in trace.read_text().splitlines():
        words = line.split()
        if len(words) != 5:
            continue
        time, lease, pid, what, step = float(words[0]), int(words[1]), int(words[2]), words[3], int(words[4])
        if what == "begin":
            by_pid[lease, pid] = Life(trace.name, lease, pid, time, step, last_at=time)
            lives.append(by_pid[lease, pid])
            continue
        life = by_pid[lease, pid]
        life.last_at = time
        if what == "step":
            life.steps.append((time, step))
        elif what == "saved":
            life.saved.append((time, step))
        elif what == "end":
            life.ended = True
    return lives


def all_lives(traces: Iterable[Path]) -> list[Life]:
    """Those of all jobs."""
    return [life for trace in traces for life in lives_of(trace)]
