"""The way of a run to its end: notice, checkpoint, SIGTERM, grace, SIGKILL, each with the time that it may take.

What a keeper decides, without what it does: which stage is due, from the wish to stop, the exit codes of the ranks so
far and the time. Signals are delivered, and processes counted, by the keeper.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping
from typing import Literal

from fairway.live.backend.channel import STOPPED

Stage = Literal["running", "saving", "terminating", "killing"]


class Stopping:
    """One run on its way. `deliver` signals all ranks; `is_over` says whether nothing of the run is left."""

    def __init__(
        self,
        *,
        checkpoint_seconds: float,
        grace_seconds: float,
        deliver: Callable[[signal.Signals], None],
        is_over: Callable[[], bool],
        now: Callable[[], float],
    ) -> None:
        self._seconds: dict[Stage, float] = {"saving": checkpoint_seconds, "terminating": grace_seconds}
        self._deliver, self._is_over, self._now = deliver, is_over, now
        self.stage: Stage = "running"
        self.deadline: float | None = None
        self.asked: str | None = None
        self.failed = self.terminated = self.killed = False

    def ask(self, wish: str, *, cooperative: Callable[[], bool]) -> None:
        """The run is to stop; one whose job does not know of leases has no use for a notice."""
        if self.asked is None:
            self._enter("saving" if wish == "save" and cooperative() else "terminating")
        elif wish == "now" and self.stage == "saving":
            self._enter("terminating")
        self.asked = wish

    def advance(self, codes: Mapping[int, int], ranks: int) -> None:
        """Go on to the next stage when it is due; `codes` are those of the ranks that have ended."""
        over = self.deadline is not None and self._now() >= self.deadline
        failed = any(code not in {0, STOPPED} for code in codes.values())
        ended = len(codes) == ranks
        self.failed |= failed and not self.terminated
        if self.stage == "running" and (failed or ended):
            self._enter("terminating")  # the rest of a gang has no use for itself, nor what an ended job left behind
        elif self.stage == "saving" and (over or failed or ended):
            self._enter("terminating")
        elif self.stage == "terminating" and over:
            self._enter("killing")
        elif self.stage == "killing":
            self._deliver(signal.SIGKILL)

    def _enter(self, stage: Stage) -> None:
        if stage == "terminating" and self._is_over():
            return
        self.stage = stage
        seconds = self._seconds.get(stage)
        self.deadline = None if seconds is None else self._now() + seconds
        if stage == "terminating":
            self.terminated = True
            self._deliver(signal.SIGTERM)
            self._deliver(signal.SIGCONT)  # a stopped process would not hear of it
        elif stage == "killing":
            self.killed = True
            self._deliver(signal.SIGKILL)
