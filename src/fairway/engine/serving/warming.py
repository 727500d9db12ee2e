"""Which copies of models an engine that plans knows of at its workers, and when it wants more of them (ESG §3.5).

Workers manage their own memory and report each change; here their copies are counted: those that are there, those on
their way, and those that batches of this engine use. A job whose model is idle at no worker with room beside it waits
in its queue, holds nothing, and has a copy begun; never more at a time than jobs of the model wait. Ahead of need,

- a batch that takes the last idle copy of its model has another one begun there;
- a batch has copies for the stages after it begun where it runs, so that they are there when it ends;
- an entry stage has one begun at the home of its workflow, in time for the next request.

What is begun ahead never drives anything out of memory; what a job waits for may. No worker gets more copies of a model
than it could run at once. A worker that had no room is asked again after a while, when what is idle there may go.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from heapq import heapify, heappop, heappush

import numpy as np

from fairway.configure.arrays import BoolArray, IntArray
from fairway.configure.warmth import Gaps, prewarm_entry, prewarm_later
from fairway.engine.serving.messages import PeerCopies, Warm
from fairway.place.batch import NOWHERE
from fairway.place.fleet import Fleet
from fairway.place.memory import GRACE_SECONDS

Tell = Callable[[int, Warm], None]
"""Brings a message to a worker."""


class Warming:
    """By model and worker, the copies `there`, `coming` and in use (`busy`); and what is to be begun later."""

    def __init__(self, fleet: Fleet, most: int, *, prewarms: bool, initial: int = 0, epoch: int = 0) -> None:
        shape = (len(fleet.models), len(fleet))
        self.there: IntArray = np.zeros(shape, np.int64)
        self.coming: IntArray = np.zeros(shape, np.int64)
        self.busy: IntArray = np.zeros(shape, np.int64)
        # The numbers of the last messages, those of this engine: workers may still answer those of one before it.
        self._asked: IntArray = np.full(shape, epoch << 40, np.int64)
        self._answered: IntArray = self._asked.copy()
        self._sizes = fleet.model_bytes
        self._memory = fleet.memory
        self._cold_seconds: list[float] = fleet.fetch_seconds.tolist()
        self._most = most
        self._prewarms = prewarms
        self._absent = np.zeros(len(fleet), np.bool_)
        self._no_room_until = np.full(shape, -math.inf)
        self._full_until = [-math.inf] * len(fleet.models)
        self._later: list[tuple[float, int, int]] = []
        self._gaps: dict[int, Gaps] = {}
        for model in range(len(fleet.models)):
            for _ in range(initial):
                self.there[model] += self._room() >= self._sizes[model]

    @property
    def due(self) -> float:
        """When something is to be begun, or may be tried again."""
        return self._later[0][0] if self._later else math.inf

    @property
    def unanswered(self) -> IntArray:
        """By model and worker, how many copies were asked for without an answer yet."""
        return self._asked - self._answered

    def warm(self, model: int) -> BoolArray:
        """The workers with an idle copy of a model."""
        mask: BoolArray = self.there[model] > self.busy[model]
        return mask

    def take(self, model: int, worker: int) -> None:
        """A batch uses a copy, or will as soon as there is one."""
        self.busy[model, worker] += 1

    def give(self, model: int, worker: int) -> None:
        """The batch of a copy has ended."""
        self.busy[model, worker] -= 1

    def reported(self, event: PeerCopies, now: float) -> None:
        """A worker says how many copies of a model it has; one that had no room for another is not asked at once."""
        at = (event.model, event.worker)
        before = self.there[at] + self.coming[at]
        self.there[at], self.coming[at] = event.there, event.coming
        if event.answered > self._answered[at]:
            self._answered[at] = event.answered
            if event.there + event.coming <= before:
                self._no_room_until[at] = self._look_again(event.model, now)

    def time_passed(self, now: float, tell: Tell) -> None:
        """Begin what is due."""
        while self._later and self._later[0][0] <= now:
            _, model, worker = heappop(self._later)
            if worker != NOWHERE:
                self._begin_ahead(model, worker, tell)

    def job_waits(self, model: int, waiting: int, near: int, now: float, tell: Tell) -> None:
        """Have a copy begun for a job, near there or where there is most room; nothing if enough are on their way."""
        if now < self._full_until[model] or int(self._starting(model).sum()) >= waiting:
            return
        copies = self._copies()
        may_have = (copies[model] < self._most) & (self._no_room_until[model] <= now) & ~self._absent
        for worker in (near, *np.argsort(copies.sum(axis=0), kind="stable").tolist()):
            if may_have[worker] and self._may_fit(model, worker):
                self._ask(model, worker, tell, ahead=False)
                return
        self._full_until[model] = self._look_again(model, now)

    def settle(self, model: int, worker: int, now: float, tell: Tell) -> None:
        """Have a copy where a plan wants one, unless it is there or on its way; others may have to go for it."""
        at = (model, worker)
        if not (self._absent[worker] or self._copies()[at] or now < self._no_room_until[at]):
            self._ask(model, worker, tell, ahead=False)

    def batch_started(
        self, model: int, worker: int, after: Iterable[int], run_seconds: float, now: float, tell: Tell
    ) -> None:
        """See to the next batch of this model, and to those of the stages that come after."""
        if not self._prewarms:
            return
        if self.there[model, worker] <= self.busy[model, worker]:
            self._begin_ahead(model, worker, tell)
        for other in after:
            if self.there[other, worker] <= self.busy[other, worker]:
                self._at(other, worker, prewarm_later(run_seconds, self._cold_seconds[other]), now, tell)

    def entry_arrived(self, queue: int, model: int, home: int, now: float, tell: Tell) -> None:
        """See to the next request of a workflow."""
        if not self._prewarms:
            return
        gaps = self._gaps[queue] = self._gaps.get(queue, Gaps()).after(now)
        if self.there[model, home] > self.busy[model, home]:
            return
        seconds = prewarm_entry(gaps, now, self._cold_seconds[model])
        if seconds is not None:
            self._at(model, home, seconds, now, tell)

    def worker_lost(self, worker: int) -> None:
        """Its copies are gone, and what was to be begun there is not."""
        for counts in (self.there, self.coming, self.busy):
            counts[:, worker] = 0
        self._answered[:, worker] = self._asked[:, worker]
        self._absent[worker] = True
        self._later = [each for each in self._later if each[2] != worker]
        heapify(self._later)

    def worker_joined(self, worker: int) -> None:
        """A worker is there, or back; it reports what it has."""
        self._absent[worker] = False
        self._no_room_until[:, worker] = -math.inf
        self._full_until = [-math.inf] * len(self._full_until)

    def _look_again(self, model: int, now: float) -> float:
        """Try again when what is idle now may go; when that is."""
        then = now + GRACE_SECONDS
        heappush(self._later, (then, model, NOWHERE))
        return then

    def _starting(self, model: int) -> IntArray:
        """By worker, the copies on their way, and those that were asked for without an answer yet."""
        starting: IntArray = self.coming[model] + self.unanswered[model]
        return starting

    def _copies(self) -> IntArray:
        copies: IntArray = self.there + self.coming + self.unanswered
        return copies

    def _room(self) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        """By worker, the bytes that no copy takes."""
        return np.asarray(self._memory - self._sizes @ self._copies())

    def _may_fit(self, model: int, worker: int) -> bool:
        """Whether a worker has room for a copy, counting what idle copies take."""
        idle = np.maximum(self.there[:, worker] - self.busy[:, worker], 0)
        idle[model] = 0
        return bool(self._room()[worker] + float(self._sizes @ idle) >= self._sizes[model])

    def _at(self, model: int, worker: int, seconds: float, now: float, tell: Tell) -> None:
        if seconds <= 0:
            self._begin_ahead(model, worker, tell)
        else:
            heappush(self._later, (now + seconds, model, worker))

    def _begin_ahead(self, model: int, worker: int, tell: Tell) -> None:
        """One at a time on each worker, and not more than could run at once."""
        if self._absent[worker] or self._starting(model)[worker] or self._copies()[model, worker] >= self._most:
            return
        if self._room()[worker] >= self._sizes[model]:
            self._ask(model, worker, tell, ahead=True)

    def _ask(self, model: int, worker: int, tell: Tell, *, ahead: bool) -> None:
        self._asked[model, worker] += 1
        tell(worker, Warm(model, ahead, int(self._asked[model, worker])))
