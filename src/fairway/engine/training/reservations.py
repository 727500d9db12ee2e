"""Workers that are a team's alone for some time: what other jobs have to leave free for it.

A reservation is for so many workers of a type, whichever they are, from one time to another. Jobs of the team, and of
the teams below it, count against it first. What they do not use stays free. A round that would reach into the time of a
reservation begins as if that had begun: jobs of others that are in the way save and stop before it does, and go
elsewhere where there is room. A job that must not be preempted and runs keeps its workers to its end; one that waits is
not started if it might still run then, by what is known of its length.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from fairway.allocate.arrays import BoolArray, FloatArray, IntArray
from fairway.engine.training.job_table import NONE, JobTable
from fairway.engine.training.messages import Reserved
from fairway.jobs import Entity


@dataclass(slots=True)
class Reservations:
    """All reservations that are not over, by name; `entities` are the teams."""

    types: tuple[str, ...]
    entities: Mapping[str, Entity]
    known: dict[str, Reserved] = field(default_factory=dict)

    def forget_past(self, now: float) -> None:
        """Let go of what is over."""
        for name in [name for name, one in self.known.items() if one.ends <= now]:
            del self.known[name]

    def kept(self, jobs: JobTable, now: float, seconds: float) -> Kept | None:
        """What is kept from jobs that run for so long from now on; None if nothing is."""
        if not self.known:
            return None
        until = np.full(len(jobs), now + seconds)
        waits = (jobs.fixed > 0) & (jobs.on < 0)
        if waits.any():
            until[waits] = np.maximum(until[waits], now + jobs.left[waits] / jobs.rates[waits].max(axis=1))
        last = float(until.max(initial=now + seconds))
        near = [one for one in self.known.values() if one.begins < last and one.ends > now]
        return Kept(self.types, jobs, self._lineages(), until, near) if near else None

    def _lineages(self) -> list[frozenset[str]]:
        """Each team, in order, with those above it."""
        found = []
        for name in self.entities:
            teams = set[str]()
            team: str | None = name
            while team is not None and team not in teams:
                teams.add(team)
                team = self.entities[team].parent if team in self.entities else None
            found.append(frozenset(teams))
        return found


class Kept:
    """The reservations of a round, and how much of each the jobs of its team have used so far."""

    def __init__(
        self, types: tuple[str, ...], jobs: JobTable, lineages: list[frozenset[str]], until: FloatArray,
        reserved: list[Reserved],
    ) -> None:  # fmt: skip
        self._types, self._jobs, self._lineages, self._until = types, jobs, lineages, until
        self._reserved = reserved
        self._left = [dict(one.workers) for one in reserved]

    def leave_out_impossible(self, rates: FloatArray, present: IntArray) -> None:
        """Let the rate of a job be 0 on types where too few workers are not reserved for others, whatever else runs."""
        for job, column in np.argwhere(rates > 0).tolist():
            if present[column] - self.from_job(job, column) < self._jobs.scale[job]:
                rates[job, column] = 0.0

    def holders(self, now: float, seconds: float) -> BoolArray:
        """The jobs for which workers are reserved in the coming seconds: those that run there, then in their order."""
        jobs = self._jobs
        mine = np.zeros(len(jobs), np.bool_)
        for one in self._reserved:
            if one.begins >= now + seconds:
                continue
            for name, left in one.workers.items():
                column = self._types.index(name)
                for job in np.argsort(jobs.on != column, kind="stable").tolist():
                    able = not mine[job] and jobs.rates[job, column] > 0 and jobs.on[job] in {NONE, column}
                    if able and jobs.scale[job] <= left and one.team in self._teams_of(job):
                        mine[job] = True
                        left -= int(jobs.scale[job])  # noqa: PLW2901 - what is left of it
        return mine

    def fresh(self) -> Kept:
        """The same with nothing used."""
        return Kept(self._types, self._jobs, self._lineages, self._until, self._reserved)

    def from_job(self, job: int, column: int) -> int:
        """How many free workers of a type a job has to leave to others."""
        return sum(left.get(self._types[column], 0) for one, left in self._against(job))

    def promised(self, job: int, column: int) -> list[Reserved]:
        """The reservations of others for workers of a type, while a job would run."""
        return [one for one, _ in self._against(job) if self._types[column] in one.workers]

    def _against(self, job: int) -> list[tuple[Reserved, dict[str, int]]]:
        return [
            (one, left)
            for one, left in zip(self._reserved, self._left, strict=True)
            if one.begins < self._until[job] and one.team not in self._teams_of(job)
        ]

    def use(self, job: int, column: int, workers: int) -> None:
        """A job of a team is given workers, some of which may be reserved for it."""
        teams, name = self._teams_of(job), self._types[column]
        for one, left in zip(self._reserved, self._left, strict=True):
            if workers and one.team in teams and left.get(name, 0):
                used = min(workers, left[name])
                left[name] -= used
                workers -= used

    def _teams_of(self, job: int) -> frozenset[str]:
        team = int(self._jobs.team[job])
        return frozenset() if team < 0 else self._lineages[team]
