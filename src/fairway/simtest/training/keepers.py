"""Keepers in virtual time: they claim a run, start its job, see it to its end and write down how it ended.

They are what the agent's table of runs takes for its keepers. A keeper goes the real way of a stop (`stopping`), and
can be killed before and after anything that it does, or be stopped for a while; its job dies with it, as on Linux.
"""

from __future__ import annotations

import math
import signal
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from fairway.fault_points import reached
from fairway.live.local.agent.keepers import keeper_of, write_notice
from fairway.live.local.keeper.stopping import Stopping
from fairway.live.local.run_files import RunExit, RunFiles, RunOrder
from fairway.simtest.training.jobs import START_SECONDS, SimulatedJob
from fairway.simtest.virtual_loop import Due, ProcessKilledError, Timeline

_CLAIM_SECONDS = 0.05
_TOLD_SECONDS = 0.01
_WRITE_AGAIN_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class RunSeen:
    """That a job began to run, or ended, as the machine itself saw it: with its places and its checkpoint."""

    job: str
    lease: int
    places: frozenset[tuple[str, int]]
    first: int
    total: float
    code: int | None = None
    step: float = 0.0


class Witness(Protocol):
    """Who hears what the machine sees of runs, each by the number of its keeper."""

    def began(self, pid: int, run: RunSeen) -> None:
        """The processes of a job run."""

    def ended(self, pid: int, run: RunSeen) -> None:
        """They have ended."""

    def saved(self, job: str, step: int) -> None:
        """A job has saved a checkpoint."""

    def exit_written(self, pid: int) -> None:
        """How a run ended is on the disk."""

    def changed(self) -> None:
        """An agent that watches looks again."""


class Keeper:
    """One keeper and its job."""

    def __init__(self, machine: Keepers, files: RunFiles, pid: int, places: frozenset[tuple[str, int]]) -> None:
        self._machine, self.files, self.pid, self._places = machine, files, pid, places
        self.alive, self.stopped = True, False
        self.job: SimulatedJob | None = None
        self.run: RunSeen | None = None
        self._order: RunOrder | None = None
        self._told = False
        self._stop: Stopping | None = None
        self._due: Due | None = None
        self._start_at = math.inf
        self._exit: RunExit | None = None
        self._kept = False
        self._wake_at(machine.timeline.now + _CLAIM_SECONDS)

    @property
    def job_name(self) -> str:
        """The job that it keeps, by the name of its directory."""
        return self.files.directory.name.split("-", 1)[1]

    def poll(self) -> int | None:
        """As a process that was spawned."""
        return None if self.alive else 0

    def tell(self) -> None:
        """The agent has signalled that the lease says something new, which the job sees, too."""
        if self.alive:
            self._told = True
            lease = self.files.lease()
            if self.job is not None and lease is not None and lease.stop == "save":
                self.job.notice(self._machine.timeline.now)
            self._wake_at(self._machine.timeline.now + _TOLD_SECONDS)

    def kill(self) -> None:
        """It is killed, and its job with it: the system sees to that."""
        self.alive = False
        if self._due is not None:
            self._due.cancel()
        if self.job is not None and self.job.code is None:
            self.job.code = -int(signal.SIGKILL)
        self._job_is_over()

    def look(self) -> None:
        """Let the job write down how far it is, since the agent is about to look."""
        if self.alive and self.job is not None and self.job.code is None:
            self._act(self._advance_job)

    def proceed(self) -> None:
        """Let it go on, if it was stopped."""
        if self.stopped:
            self.stopped = False
            self.wake()

    def wake(self) -> None:
        """Do what is due."""
        if self.alive and not self.stopped:
            self._act(self._go_on)

    def _act(self, action: Callable[[], None]) -> None:
        machine = self._machine
        before, machine.acting = machine.acting, self
        try:
            action()
        except ProcessKilledError:
            self.kill()
        finally:
            machine.acting = before

    def _wake_at(self, when: float) -> None:
        if self._due is not None:
            self._due.cancel()
        self._due = None if when == math.inf else self._machine.timeline.at(when, self.wake)

    def _go_on(self) -> None:
        now = self._machine.timeline.now
        if not self._kept:
            self._claim()
        elif self._exit is None:
            if self.job is None and now >= self._start_at:
                self._start()
            self._advance_job()
            self._advance_stop()
        if self._exit is not None:
            self._write_down(self._exit)
        if self.alive:
            self._wake_at(self._next_time())

    def _next_time(self) -> float:
        now = self._machine.timeline.now
        if self._exit is not None or not self._kept:
            return now + _WRITE_AGAIN_SECONDS
        if self.job is None:
            return max(self._start_at, now)
        deadline = math.inf if self._stop is None or self._stop.deadline is None else self._stop.deadline
        return max(min(self.job.next_time(), deadline), now + 0.001)

    def _claim(self) -> None:
        self._order = self.files.order()
        claim = {"pid": self.pid, "start": self.pid, "boot": self._machine.boot}
        try:
            claimed = self._order is not None and self.files.claim(claim)
        except OSError:
            if self.files.directory.is_dir():
                return  # it is tried again
            claimed = False
        if not claimed or self._order is None:
            self._leave()
            return
        reached("keeper.claimed")
        self._kept = True
        order, timeline = self._order, self._machine.timeline
        self._stop = Stopping(
            checkpoint_seconds=order.checkpoint_seconds,
            grace_seconds=order.grace_seconds,
            deliver=self._deliver,
            is_over=lambda: self.job is None or self.job.code is not None,
            now=lambda: timeline.now,
        )
        lease = self.files.lease()
        if lease is None or lease.stop is None:
            self._start_at = timeline.now + START_SECONDS - _CLAIM_SECONDS
        else:
            self._stop.asked = lease.stop
            self._exit = RunExit([], asked=lease.stop, time=self._machine.wall())

    def _start(self) -> None:
        assert self._order is not None
        machine, order = self._machine, self._order
        self.job = SimulatedJob(self.files, order, machine.checkpoints, machine.timeline.now, machine.seen.saved)
        self.run = RunSeen(order.job, order.lease, self._places, self.job.first, self.job.total)
        machine.seen.began(self.pid, self.run)
        reached("keeper.started")
        with suppress(OSError):  # a full disk is no reason to stop a job that runs
            self.files.write_started(machine.wall())
        machine.seen.changed()

    def _advance_job(self) -> None:
        if self.job is not None and self.job.code is None:
            self.job.advance(self._machine.timeline.now)
            if not self.job.alive:
                self._job_is_over()

    def _advance_stop(self) -> None:
        stop, job = self._stop, self.job
        assert stop is not None
        if self._told:
            self._told = False
            lease = self.files.lease()
            wish = None if lease is None else lease.stop
            if wish is not None and job is None:
                stop.asked = wish
                self._exit = RunExit([], asked=wish, time=self._machine.wall())
                return
            if wish is not None and job is not None:
                stop.ask(wish, cooperative=lambda: self.files.is_cooperative(range(job.ranks)))
        if job is None:
            return
        codes = {} if job.code is None else dict.fromkeys(range(job.ranks), job.code)
        stop.advance(codes, job.ranks)
        if job.code is not None:
            codes = dict.fromkeys(range(job.ranks), job.code)
            stop.advance(codes, job.ranks)
            first = 0 if job.code else None
            self._exit = RunExit(list(codes.values()), first, stop.failed, None, stop.asked, stop.terminated,
                                 stop.killed, self._machine.wall())  # fmt: skip

    def _deliver(self, number: signal.Signals) -> None:
        if self.job is not None:
            self.job.signalled(number, self._machine.timeline.now)
            if self.job.code is not None:
                self._job_is_over()

    def _job_is_over(self) -> None:
        if self.run is not None and self.job is not None:
            run, self.run = self.run, None
            self._machine.seen.ended(
                self.pid, RunSeen(run.job, run.lease, run.places, run.first, run.total, self.job.code, self.job.step)
            )

    def _write_down(self, ended: RunExit) -> None:
        reached("keeper.exiting")
        try:
            self.files.write_exit(ended)
        except OSError:
            if self.files.directory.is_dir():
                return  # it is tried again
        else:
            if not ended.terminated:  # otherwise a job that ends well may have saved on its way out
                self._machine.seen.exit_written(self.pid)
        reached("keeper.exited")
        self._leave()

    def _leave(self) -> None:
        self.alive = False
        if self._due is not None:
            self._due.cancel()
        self._machine.seen.changed()


class Keepers:
    """All keepers of the machine; also what the table of runs takes for its keepers.

    `seen` hears of all that the machine sees, `places_of` says which accelerators a run has that is to be started.
    """

    def __init__(
        self,
        timeline: Timeline,
        *,
        wall: Callable[[], float],
        seen: Witness,
        places_of: Callable[[RunFiles], frozenset[tuple[str, int]]],
    ) -> None:
        self.timeline, self.wall, self.seen, self._places_of = timeline, wall, seen, places_of
        self.checkpoints: dict[str, int] = {}
        self.keepers: dict[int, Keeper] = {}
        self.acting: Keeper | None = None
        self.boots = 0

    @property
    def boot(self) -> str:
        """The name of the machine's current boot."""
        return f"boot {self.boots}"

    def alive(self) -> list[Keeper]:
        """The keepers that live, the oldest first."""
        return [keeper for keeper in self.keepers.values() if keeper.alive]

    def lose_power(self) -> None:
        """All processes of the machine end at once."""
        for keeper in self.alive():
            keeper.kill()
        self.boots += 1

    # As keepers of a table of runs

    def start(self, files: RunFiles) -> Keeper:
        """Set a keeper on a run."""
        reached("agent.spawning")
        pid = len(self.keepers) + 1
        keeper = self.keepers[pid] = Keeper(self, files, pid, self._places_of(files))
        return keeper

    def has_keeper(self, files: RunFiles) -> bool:
        """Whether the run is claimed."""
        return keeper_of(files) is not None

    def is_alive(self, files: RunFiles) -> bool:
        """Whether the keeper lives; one that was stopped goes on."""
        keeper = self._of(files)
        if keeper is None or not keeper.alive:
            return False
        keeper.proceed()
        keeper.look()
        return keeper.alive

    def watch(self, files: RunFiles) -> None:
        """The agent hears of every end anyway."""

    def ask_to_stop(self, files: RunFiles, *, save: bool) -> None:
        """Give notice."""
        write_notice(files, save=save)
        keeper = self._of(files)
        if keeper is not None:
            keeper.stopped = False
            keeper.tell()

    def clear_up(self, files: RunFiles) -> bool:
        """Kill what is left of a run: also keepers that have not claimed it yet."""
        for keeper in self.alive():
            if keeper.files.directory == files.directory and (keeper is self._of(files) or self._of(files) is None):
                keeper.kill()
        return True

    def _of(self, files: RunFiles) -> Keeper | None:
        identity = keeper_of(files)
        return None if identity is None or identity.boot != self.boot else self.keepers.get(identity.pid)
