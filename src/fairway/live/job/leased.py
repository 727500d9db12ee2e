"""What a cooperative job iterates its batches through: `for batch in fairway.leased(loader, checkpoint=...)`.

It counts steps, tells the agent how fast they go, saves checkpoints, and stops the job cleanly when its lease ends;
when the lease is renewed the job never notices. After a stop the job is started again and goes on at the step it had
saved. On an emulated accelerator it also slows the job down to the rate of the accelerator's type. Outside Fairway it
is a plain iterator. Only small modules of the standard library are imported: every job pays for it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from functools import cache
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar, cast

from fairway.live.backend.channel import STOPPED, LeaseState, RankProgress, RunChannel
from fairway.live.job.agreement import Agreement, Alone, Next
from fairway.live.job.checkpoint import Checkpoints
from fairway.live.job.pacing import Meter, Pace

B = TypeVar("B")

_LOOK_SECONDS = 0.01
_REPORT_SECONDS = 0.5


class LeaseEnded(SystemExit):
    """The lease is over and the checkpoint saved; uncaught, it ends the process with a code that says so."""


class Leased(Generic[B]):
    """The batches of a loader, for as long as the lease lasts.

    `start` is the step to start from, `state` what was saved then (None the first time), `step` the number of steps
    done so far, `stopped` whether the lease has ended.
    """

    def __init__(
        self,
        loader: Iterable[B],
        rank: Rank,
        checkpoint: Callable[[int], object] | None,
        *,
        every: int | None,
        steps: int | None,
        skip: bool,
        at_end: Literal["exit", "break"],
    ) -> None:
        self._loader, self._rank, self._checkpoint = loader, rank, checkpoint
        self._every, self._skip, self._at_end = every, skip, at_end
        self._total = steps if steps is not None else rank.total

    @property
    def start(self) -> int:
        """The step to start from: 0, or the step of the last checkpoint."""
        return self._rank.start

    @property
    def state(self) -> Any:
        """What the checkpoint function had returned at that step; None without a checkpoint."""
        return self._rank.state

    @property
    def step(self) -> int:
        """How many steps are done, in all attempts together."""
        return self._rank.step

    @property
    def stopped(self) -> bool:
        """Whether the lease has ended."""
        return self._rank.stopped

    def __len__(self) -> int:
        return len(cast(Sized, self._loader))  # a loader without a length says so itself

    def __iter__(self) -> Iterator[B]:
        rank = self._rank
        for batch in self._loader:
            if self._skip and rank.passed < rank.start:
                rank.passed += 1
                continue
            if self._finished() or not self._go_on():
                return
            yield batch
            rank.count()
            self._save_if_due()
            if self._finished():
                rank.finish(self._checkpoint)
                return
        rank.report()

    def _finished(self) -> bool:
        return self._total is not None and self._rank.step >= self._total

    def _save_if_due(self) -> None:
        if self._every and self._rank.step % self._every == 0 and not self._finished():
            self._rank.save(self._checkpoint)

    def _go_on(self) -> bool:
        """Whether there is a next step; saves before, if it is time to."""
        while not self._rank.stopped:
            match self._rank.next(can_save=self._checkpoint is not None):
                case "step":
                    return True
                case "save":
                    self._rank.save(self._checkpoint)
                case "stop":
                    self._rank.stop(self._checkpoint)
        if self._at_end == "exit":
            raise LeaseEnded(STOPPED)
        return False


class Rank:
    """One process of a job in its run; all the `leased` of a process share it, such as one for every epoch."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.number = int(environment.get("FAIRWAY_RANK", 0))
        world_size = int(environment.get("FAIRWAY_WORLD_SIZE", 1))
        run, checkpoints = environment.get("FAIRWAY_RUN_DIR"), environment.get("FAIRWAY_CHECKPOINT_DIR")
        self._channel = RunChannel(Path(run)) if run else None
        self._checkpoints = Checkpoints(Path(checkpoints), self.number, world_size) if checkpoints else None
        self._agreement: Agreement = Alone()
        where = environment.get("FAIRWAY_AGREEMENT")
        if where is not None and world_size > 1:
            from fairway.live.job.remote_gang import RemoteGang  # noqa: PLC0415 - only gangs on several nodes need it

            self._agreement = RemoteGang(where, environment.get("FAIRWAY_AGREEMENT_SECRET", ""), self.number)
        elif self._channel is not None and world_size > 1:
            from fairway.live.job.gang import Gang  # noqa: PLC0415 - locks as Unix has them; a loop alone runs anywhere

            self._agreement = Gang(self._channel.gang_path, self.number, world_size)
        steps, seconds = environment.get("FAIRWAY_STEPS"), environment.get("FAIRWAY_CHECKPOINT_SECONDS")
        self.total = int(steps) if steps else None
        self._save_seconds = float(seconds) if seconds else None
        saved = self._checkpoints.latest() if self._checkpoints is not None else None
        self.start = self.step = saved or 0
        self.state = self._checkpoints.load(saved) if self._checkpoints is not None and saved is not None else None
        self._saved = saved
        self._saving_seconds = 0.0
        self.passed = 0
        self.stopped = self._begun = False
        self._lease: LeaseState | None = None
        self._lease_seen: tuple[int, int] | None = None
        self._ends: float | None = None
        self._pace, self._meter = Pace(), Meter()
        self._looked = self._reported = -1.0
        self._last_save = time.monotonic()
        self._look()
        self.report()

    def count(self) -> None:
        """A step was done."""
        self.step += 1
        self._pace.step()
        now = time.monotonic()
        if self.step == self.start + 1 or now - self._reported >= _REPORT_SECONDS:
            self._meter.mark(self.step)
            self.report()

    def next(self, *, can_save: bool) -> Next:
        """What to do now, as the lease and the rest of the gang would have it."""
        now = time.monotonic()
        if not self._begun:  # what the job did before its first step was no step
            self._begun, self._last_save = True, now
            self._pace.begin()
        if now - self._looked >= _LOOK_SECONDS:
            self._look()
        lease = self._lease
        stop = lease is not None and (
            lease.stop == "save" or (lease.expires and self._ends is not None and now >= self._ends)
        )
        due = can_save and self._save_seconds is not None and now - self._last_save >= self._save_seconds
        return self._agreement.next(self.step, stop=stop, save=due)

    def save(self, checkpoint: Callable[[int], object] | None) -> None:
        """Save a checkpoint of this step, unless there is one."""
        if checkpoint is not None and self._saved != self.step:
            began = time.monotonic()
            state = checkpoint(self.step)
            if self._checkpoints is not None:
                self._checkpoints.save(self.step, state)
            self._saved = self.step
            self._saving_seconds = time.monotonic() - began
            self._pace.pause(self._saving_seconds)
            self._meter.pause(self._saving_seconds)
            self.report()
        self._last_save = time.monotonic()

    def stop(self, checkpoint: Callable[[int], object] | None) -> None:
        """The lease is over."""
        self.save(checkpoint)
        self.stopped = True
        self._meter.mark(self.step)
        self.report()

    def finish(self, checkpoint: Callable[[int], object] | None) -> None:
        """All steps are done; saved, so that nothing is done again if what follows is cut short."""
        self.save(checkpoint)
        self._meter.mark(self.step)
        self.report()

    def report(self) -> None:
        """Tell the agent how far this rank is."""
        self._reported = time.monotonic()
        if self._channel is None:
            return
        try:
            self._channel.write_progress(
                RankProgress(
                    self.number,
                    self.step,
                    self.start,
                    self._meter.steps_per_second,
                    self._saved,
                    self._saving_seconds,
                    self.stopped,
                    time.time(),
                    self._lease.lease if self._lease is not None else 0,
                )
            )
        except OSError:  # training is worth more than being watched
            return

    def _look(self) -> None:
        """Read the lease again if it has changed."""
        self._looked = time.monotonic()
        if self._channel is None:
            return
        try:
            status = self._channel.lease_path.stat()
        except OSError:
            return
        seen = (status.st_mtime_ns, status.st_ino)
        if seen != self._lease_seen:
            self._lease_seen = seen
            before, self._lease = self._lease, self._channel.lease() or self._lease
            until = None if self._lease is None else self._lease.until
            # On the clock that is never set: what is left of a lease is the same whatever the wall clock does.
            self._ends = None if until is None else self._looked + until - time.time()
            if before is not None and self._lease is not None and before.lease != self._lease.lease:
                self._meter.restart()  # the one that it shared with has left: how fast it was says nothing any more
            self._pace.set(self._lease.pace if self._lease is not None else None)


@cache
def _this_rank() -> Rank:
    return Rank(os.environ)


def leased(
    loader: Iterable[B],
    checkpoint: Callable[[int], object] | None = None,
    *,
    every: int | None = None,
    steps: int | None = None,
    skip: bool = True,
    at_end: Literal["exit", "break"] = "exit",
) -> Leased[B]:
    """Iterate batches for as long as this job holds its lease.

    `checkpoint` is called with the number of steps done. What it returns (a dict of arrays, tensors, anything that can
    be pickled) is saved and handed back as `state` when the job goes on; it may also save on its own and return None.
    It is called when the lease ends, every `every` steps, at the interval of the job's description, and at the end. In
    a gang every rank calls it after the same step. `steps` ends the loop after so many steps of this rank, counted over
    all attempts; without it the job's description decides.

    When a job goes on, batches that were done before are passed over, in as many loops as it takes; `skip=False` is for
    a loader that begins at `start` by itself. When the lease ends, the process exits (`at_end="exit"`), or, with
    "break", the loop ends and `stopped` is true; every loop after it is empty.

        run = fairway.leased(batches, checkpoint=lambda step: {"weights": weights})
        if run.state is not None:
            weights = run.state["weights"]
        for batch in run:
            weights = train(weights, batch)
    """
    return Leased(loader, _this_rank(), checkpoint, every=every, steps=steps, skip=skip, at_end=at_end)
