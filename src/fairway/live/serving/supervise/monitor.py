"""Looks after workers: starts them, takes their deaths and signs of life in, and clears up after the dead.

Each turn looks at all workers; there are few of them, and nothing here is urgent but a death, for which the
supervisor's thread is woken. When a worker dies, its row is marked absent at once, so that nothing more is placed
there, and the other workers hear of it. Only when all of them have taken that in does a new process take its place, so
that no worker takes the two for one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from fairway.live.serving.seams.state_board import RowMarks
from fairway.live.serving.seams.transport import Line, Message
from fairway.live.serving.seams.worker_pool import WorkerPool
from fairway.live.serving.supervise.supervised_worker import SupervisedWorker

_LOG = logging.getLogger(__name__)

_TURN_SECONDS = 0.5
_STARTING_TURN_SECONDS = 0.02
_SIGN_SECONDS = 1.0
_MOST_WAIT_FOR_SIGNS_SECONDS = 5.0
_CLEAR_SECONDS = 10.0


class Monitor:
    """The workers of one application, by turns; `now` is the clock.

    `replaces`: a worker that ends is replaced; not before all have started, since one that cannot start would never be
    able to. `clear_after` lets go what a life of a worker, by number and epoch, has left, `clear_after_clients` what
    dead clients have.
    """

    def __init__(
        self,
        workers: list[SupervisedWorker],
        pool: WorkerPool,
        marks_of: Callable[[Callable[[int, Message], None]], RowMarks],
        now: Callable[[], float],
        clear_after: Callable[[int, int], None],
        clear_after_clients: Callable[[], None],
    ) -> None:
        self.restarts = 0
        self.replaces = False
        self.workers = workers
        self._pool, self._now = pool, now
        self._marks = marks_of(self._tell_others)
        self._clear_after, self._clear_after_clients = clear_after, clear_after_clients
        self._starting: set[int] = set()
        self._due: dict[int, float] = {}  # by worker that has ended, when the next process may be started
        self._died: dict[int, float] = {}
        self._leftovers: list[tuple[float, int, int]] = []
        self._cleared_at = now()

    def start(self) -> None:
        """Start all workers."""
        for worker in self.workers:
            self._start(worker)

    @property
    def lines(self) -> list[Line]:
        """The lines over which signs may come."""
        return [worker.line for worker in self.workers if worker.line is not None]

    @property
    def is_complete(self) -> bool:
        """Whether all workers are there, and have taken in that the others are; from any thread."""
        return not self._starting and all(each.is_there and each.wanted == each.given for each in self.workers)

    @property
    def patience(self) -> float:
        """How long the next turn may be away, in seconds, if nothing happens."""
        return _STARTING_TURN_SECONDS if self._starting or self._due else _TURN_SECONDS

    def turn(self) -> None:
        """Look at all workers, and do what is to be done now."""
        now = self._now()
        for worker in self.workers:
            worker.take_signs(now)
            if worker.number in self._due:
                if now >= self._due[worker.number] and self._all_know(worker, now):
                    self._replace(worker)
            elif (status := self._pool.ended(worker.number)) is not None:
                if self.replaces:
                    self._bury(worker, status, now)
            elif worker.number in self._starting:
                self._welcome(worker, now)
            elif worker.line is None:
                worker.call()
            elif worker.wanted == worker.given:
                if now - worker.last_sign_at >= _SIGN_SECONDS:
                    worker.tell(now)
            elif (silent := worker.silent_seconds(now)) >= _SIGN_SECONDS and worker.has_row:
                self._marks.call_busy(worker.number, now + silent)
        if now - self._cleared_at >= _CLEAR_SECONDS:
            self._clear(now)

    def close(self) -> None:
        """End the lines to all workers."""
        for worker in self.workers:
            worker.close()

    def _start(self, worker: SupervisedWorker) -> None:
        worker.begin_life(self._now())
        self._pool.start(worker.number, worker.epoch)
        self._starting.add(worker.number)

    def _welcome(self, worker: SupervisedWorker, now: float) -> None:
        """Once a new process has given a sign, it and the others hear of each other."""
        if not worker.is_there:
            if worker.call() and worker.wanted == 0:
                worker.tell(now)
            return
        self._starting.discard(worker.number)
        self._tell_others(worker.number, ("joined", worker.number))
        others = [other.number for other in self.workers if other.is_there and other is not worker]
        lost = [("lost", number) for number in self._due]  # it may have met these before there was a line to it
        worker.tell(now, *self._marks.greeting(others), *lost)

    def _bury(self, worker: SupervisedWorker, status: str, now: float) -> None:
        """A worker is dead: nothing more is placed there, and the others hear of it."""
        if worker.has_row:
            self._marks.leave(worker.number)
        _LOG.warning("%s has ended (%s); it is started again", worker.name, status)
        self._starting.discard(worker.number)
        self._due[worker.number] = now + worker.end_life(now)
        self._died[worker.number] = now
        # Other workers may have been sent values of its, and not have opened them yet.
        self._leftovers.append((now + _CLEAR_SECONDS, worker.number, worker.epoch))
        self._tell_others(worker.number, ("lost", worker.number))

    def _all_know(self, worker: SupervisedWorker, now: float) -> bool:
        """Whether all others have heard that a worker is gone; one that gives no sign is not waited for for long."""
        if now - self._died[worker.number] > _MOST_WAIT_FOR_SIGNS_SECONDS:
            return True
        return all(other.wanted == other.given for other in self.workers if other is not worker)

    def _replace(self, worker: SupervisedWorker) -> None:
        self._start(worker)
        self.restarts += 1
        del self._due[worker.number]

    def _tell_others(self, number: int, message: Message) -> None:
        now = self._now()
        for other in self.workers:
            if other.number != number:
                other.tell(now, message)

    def _clear(self, now: float) -> None:
        """Let go what dead workers and dead clients have left."""
        self._cleared_at = now
        for _, number, epoch in [each for each in self._leftovers if each[0] <= now]:
            self._clear_after(number, epoch)
        self._leftovers = [each for each in self._leftovers if each[0] > now]
        self._clear_after_clients()
