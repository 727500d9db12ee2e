"""Which jobs hold which workers: changes the job table and the pool of workers together, so that they always agree.

A lease is held by one job, or by two that share its workers. Leases are numbered on, and no number is used twice. When
one of two jobs that share leaves, the other runs on alone on the same workers, under a new lease.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairway.allocate.arrays import IntArray
from fairway.allocate.packing.requests import WHOLE
from fairway.engine.training.job_table import NONE, JobTable
from fairway.engine.training.messages import Command, Grant, LeaseResumed, Revoke
from fairway.engine.training.pair_rates import PairRates
from fairway.engine.training.rounds import charge_alone
from fairway.engine.training.worker_pool import WorkerPool


@dataclass(slots=True)
class Leases:
    """Grants leases and takes them back; `last` is the highest number that a lease ever had.

    A job that is started anew makes no progress for `restart_seconds`. Leases are granted `until` the round ends.
    """

    types: tuple[str, ...]
    jobs: JobTable
    workers: WorkerPool
    pair_rates: PairRates
    restart_seconds: float
    last: int

    def start(
        self, members: tuple[int, ...], column: int, *, now: float, until: float,
        workers: tuple[int, ...] | None = None,
    ) -> Grant:  # fmt: skip
        """Give free workers of a type, any or these, to a job that waits, or to two that are to share."""
        self.last += 1
        if workers is None:
            workers, spread = self.workers.take(column, int(self.jobs.scale[members[0]]), self.last)
        else:
            held = self.workers.hold(column, workers, self.last, int(self.jobs.part[members[0]]))
            assert held, f"{workers} of {self.types[column]} were chosen, but are not free"
            spread = self.workers.spans_nodes(column, workers)
        self._run(members, self.last, column, spread, since=now + self.restart_seconds)
        return self._grant(members, column, workers, until, spread=spread, restart=True)

    def stop(self, positions: IntArray, *, now: float) -> list[Command]:
        """Let these jobs, with all that they share with, save a checkpoint and give their workers back."""
        leases, columns = self.jobs.lease[positions].tolist(), self.jobs.on[positions].tolist()
        holders: dict[int, list[str]] = {}
        for position, lease, column in zip(positions.tolist(), leases, columns, strict=True):
            if lease in holders:
                holders[lease].append(self.jobs.ids[position])
            else:
                holders[lease] = [self.jobs.ids[position]]
                self.workers.give_back(column, lease)
        self._stop(positions, now)
        return [Revoke(lease, tuple(names)) for lease, names in holders.items()]

    def release(self, position: int, *, now: float, until: float) -> list[Command]:
        """End the lease of a job, if it holds one; a job that it shared with runs on alone on the same workers."""
        jobs = self.jobs
        lease, column, beside = int(jobs.lease[position]), int(jobs.on[position]), int(jobs.beside[position])
        if lease == NONE:
            return []
        self._stop(np.array([position]), now)
        if beside == NONE:
            self.workers.give_back(column, lease)
            return [Revoke(lease, (jobs.ids[position],), restart=False)]
        other = int(jobs.positions(np.array([beside]))[0])
        self.last += 1
        workers, spread = self.workers.hand_over(column, lease, self.last)
        self._run((other,), self.last, column, spread)
        charge_alone(jobs, other, column)
        both = tuple(jobs.ids[member] for member in sorted((position, other)))
        granted = self._grant((other,), column, workers, until, spread=spread, restart=False)
        return [Revoke(lease, both, restart=False), granted]

    def leave(self, column: int, workers: tuple[int, ...], *, now: float, drain: bool) -> list[Command]:
        """Take workers out, and back from the jobs that hold them; `fixed` jobs keep theirs to their end in a drain."""
        fixed = set(self.jobs.lease[self.jobs.fixed > 0].tolist()) if drain else set()
        kept = [lease for lease in self.workers.holders(column, workers) if lease in fixed]
        commands: list[Command] = []
        for lease in self.workers.leave(column, workers, except_held_by=kept):
            held = np.flatnonzero(self.jobs.lease == lease)
            commands.append(Revoke(lease, tuple(self.jobs.ids[position] for position in held), restart=drain))
            self._stop(held, now)
            self.workers.give_back(column, lease)
        return commands

    def resume(self, resumed: LeaseResumed, column: int, *, now: float) -> bool:
        """Let jobs that are here hold a lease of before; False, and nothing is changed, if its workers are not free."""
        part = int(self.jobs.part[self.jobs.position(resumed.jobs[0])])
        if not self.workers.hold(column, resumed.workers, resumed.lease, part):
            return False
        members = tuple(self.jobs.position(job) for job in resumed.jobs)
        self.last = max(self.last, resumed.lease)
        self._run(members, resumed.lease, column, resumed.spread, since=now)
        for member in members:
            charge_alone(self.jobs, member, column)
        return True

    def share_anew(self, column: int) -> None:
        """The rates of pairs on a type are others than was believed: those that share there run at them already."""
        jobs, partners = self.jobs, self.jobs.partners()
        shared = np.flatnonzero((jobs.on == column) & (partners >= 0))
        jobs.rate[shared] = self.pair_rates.table[jobs.kind[shared], jobs.kind[partners[shared]], column, 0]

    def members(self) -> dict[int, list[int]]:
        """The positions of the jobs that hold each lease."""
        members: dict[int, list[int]] = {}
        for position, lease in enumerate(self.jobs.lease.tolist()):
            if lease != NONE:
                members.setdefault(lease, []).append(position)
        return members

    def resumption(self) -> list[LeaseResumed]:
        """The events by which another engine, which knows the jobs, takes over all leases that are held."""
        events = []
        for lease, members in self.members().items():
            column, part = int(self.jobs.on[members[0]]), float(self.jobs.part[members[0]]) / WHOLE
            workers, names = self.workers.held_by(column, lease), tuple(self.jobs.ids[member] for member in members)
            spread = self.workers.spans_nodes(column, workers)
            events.append(LeaseResumed(lease, names, self.types[column], workers, spread, part))
        return events

    def _grant(
        self, members: tuple[int, ...], column: int, workers: tuple[int, ...], until: float, *, spread: bool,
        restart: bool,
    ) -> Grant:  # fmt: skip
        names = tuple([self.jobs.ids[member] for member in members])
        part = float(self.jobs.part[members[0]]) / WHOLE
        return Grant(self.last, names, self.types[column], workers, until, restart, spread, part)

    def _run(
        self, members: tuple[int, ...], lease: int, column: int, spread: bool, *, since: float | None = None
    ) -> None:
        """Write down that these jobs, one or two that share, hold a lease, and make progress `since` then."""
        jobs = self.jobs
        together = self.pair_rates.of(*jobs.kind[list(members)]) if len(members) == 2 else None
        for side, member in enumerate(members):
            if together is not None:
                jobs.beside[member], jobs.rate[member] = jobs.number[members[1 - side]], together[column, side]
            else:
                jobs.beside[member] = NONE
                jobs.rate[member] = (jobs.spread if spread else jobs.rates)[member, column]
            jobs.on[member], jobs.lease[member] = column, lease
            if since is not None:
                jobs.since[member] = jobs.changed[member] = since

    def _stop(self, positions: IntArray, now: float) -> None:
        """Write down that these jobs hold nothing."""
        jobs = self.jobs
        for column in (jobs.on, jobs.lease, jobs.beside, jobs.charged):
            column[positions] = NONE
        jobs.rate[positions] = 0.0
        jobs.since[positions] = jobs.changed[positions] = now
