"""Jobs of simulated histories: numbers that move on with the clock, and leave the files that a job would leave.

What a job does is one word of its command. `steps` does its steps and heeds the wish to save; `fail` fails after a
second. The hostile ones: `deaf` heeds neither notice nor SIGTERM, `garbage` writes progress that is none, `huge` a file
of progress that is too large, `linked` a link in its place, and `nested` brackets without end.
"""

from __future__ import annotations

import math
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from fairway.fault_points import reached
from fairway.live.backend.channel import STOPPED, RankProgress
from fairway.live.local.run_files import RunFiles, RunOrder

START_SECONDS, SAVE_SECONDS, STOP_SECONDS = 0.3, 0.2, 0.1
CHECKPOINT_SECONDS = 2.0
HOSTILE = ("deaf", "garbage", "huge", "linked", "nested")
WORDS = ("steps", "fail", *HOSTILE)


class SimulatedJob:
    """The processes of one run, all ranks together. `step` counts over all ranks, from the first attempt on."""

    def __init__(
        self,
        files: RunFiles,
        order: RunOrder,
        checkpoints: dict[str, int],
        now: float,
        saved: Callable[[str, int], None],
    ) -> None:
        self.files, self.order, self._checkpoints, self._on_saved = files, order, checkpoints, saved
        self._where = order.environment["FAIRWAY_CHECKPOINT_DIR"]
        self.word = order.run if isinstance(order.run, str) else order.run[0]
        self.ranks = len(order.ranks)
        self.first = checkpoints.get(self._where, 0)
        self.step = float(self.first)
        self.begun = self._moved = now
        self._saved_at = now
        self.code: int | None = None
        self._stop_at, self._stop_code = math.inf, 0
        self._written: tuple[int, int | None, bool] | None = None
        self._rate = 1.0
        if self.word in HOSTILE and self.word != "deaf":
            self._spoil()

    @property
    def total(self) -> float:
        """The steps that it has to do, over all ranks."""
        steps = self.order.environment.get("FAIRWAY_STEPS")
        return math.inf if steps is None else int(steps) * self.ranks

    @property
    def alive(self) -> bool:
        """Whether its processes run."""
        return self.code is None

    @property
    def cooperative(self) -> bool:
        """Whether it knows of leases."""
        return self.word in {"steps", "fail"}

    def next_time(self) -> float:
        """When something happens to it next."""
        if self.code is not None:
            return math.inf
        times = [self._stop_at, self._moved + max(self.total - self.step, 0.0) / self._rate]
        if self.word == "fail":
            times.append(self.begun + 1.0)
        if self.cooperative:
            times.append(self._saved_at + CHECKPOINT_SECONDS)
        return min(times)

    def advance(self, now: float) -> None:
        """Let it come to a time."""
        if self.code is not None:
            return
        lease = self.files.lease()
        self._rate = (1.0 if lease is None or lease.pace is None else lease.pace) * self.ranks
        self.step = min(self.step + (now - self._moved) * self._rate, self.total)
        self._moved = now
        if now >= self._stop_at:
            if self._stop_code == STOPPED:
                self._save()
            self.code = self._stop_code
        elif self.word == "fail" and now >= self.begun + 1.0:
            self.code = 1
        elif self.step >= self.total - 1e-6:
            self.step = float(self.total)
            self._save()
            self.code = 0
        elif self.cooperative and now >= self._saved_at + CHECKPOINT_SECONDS:
            self._saved_at = now
            self._save()
        self.tell(lease=0 if lease is None else lease.lease)

    def tell(self, *, lease: int = 0) -> None:
        """Write down how far it is, if that is news."""
        if not self.cooperative:
            return
        ranks, saved = self.ranks, self._checkpoints.get(self._where)
        news = int(self.step / ranks), saved, self.code == STOPPED
        if news == self._written:
            return
        self._written = news
        with suppress(OSError):  # a job whose disk is full, or whose channel is gone, goes on
            for rank in range(ranks):
                self.files.write_progress(
                    RankProgress(rank, news[0], self.first // ranks, self._rate / ranks,
                                 None if saved is None else saved // ranks, stopped=news[2], time=self._moved,
                                 lease=lease)
                )  # fmt: skip

    def notice(self, now: float) -> None:
        """It sees the wish to save and stop."""
        if self.cooperative and self._stop_at == math.inf:
            self._stop_at, self._stop_code = now + SAVE_SECONDS, STOPPED

    def signalled(self, number: signal.Signals, now: float) -> None:
        """It, or the kernel for it, gets a signal."""
        if self.code is not None:
            return
        if number is signal.SIGKILL:
            self.code = -int(signal.SIGKILL)
        elif number is signal.SIGTERM and self.word != "deaf" and now + STOP_SECONDS < self._stop_at:
            self._stop_at, self._stop_code = now + STOP_SECONDS, -int(signal.SIGTERM)

    def _save(self) -> None:
        if not self.cooperative:
            return
        reached("job.saving")
        done = int(self.step / self.ranks) * self.ranks
        self._checkpoints[self._where] = done = max(done, self._checkpoints.get(self._where, 0))
        self._on_saved(self.order.job, done)
        reached("job.saved")

    def _spoil(self) -> None:
        """What a hostile job puts where its progress is looked for."""
        with suppress(OSError):
            for rank in range(self.ranks):
                path: Path = self.files.channel.directory / f"progress-{rank}.json"
                match self.word:
                    case "garbage":
                        path.write_text('{"rank": "x", "step": -1e400, "since": null}')
                    case "huge":
                        path.write_bytes(b"[" + b" " * 70_000 + b"]")
                    case "nested":
                        path.write_text("[" * 2000)
                    case "linked":  # to nothing of the machine's own: a fault that follows must not write there
                        path.unlink(missing_ok=True)
                        path.symlink_to(self.files.channel.directory / "elsewhere")
