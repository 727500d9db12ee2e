"""Looks after workers: starts them, takes their deaths and signs of life in, and clears up after the dead.

Each turn looks at all workers; there are few of them, and nothing here is urgent but a death, for which the
supervisor's thread is woken. When a worker dies, its row is marked absent at once, so that nothing more is placed
there, and the other workers hear of it. Only when all of them have taken that in does a new process take its place, so
that no worker takes the two for one.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence

from fairway.live.serving.seams.run_record import LaneKind, Running, RunRecord
from fairway.live.serving.seams.state_board import RowMarks
from fairway.live.serving.seams.transport import Line, Message
from fairway.live.serving.seams.worker_pool import WorkerPool
from fairway.live.serving.supervise.blame import Blame, Death
from fairway.live.serving.supervise.supervised_worker import SupervisedWorker

_LOG = logging.getLogger(__name__)

_TURN_SECONDS = 0.5
_STARTING_TURN_SECONDS = 0.02
_SIGN_SECONDS = 1.0
_MOST_WAIT_FOR_SIGNS_SECONDS = 2.0
_STOPPED_SECONDS = 1.0
_SILENT_SECONDS = 5.0
_START_SECONDS = 120.0
_STAND_BY_AFTER_SECONDS = 3.0
_CLEAR_SECONDS = 10.0


_QUIET_SHARE = {LaneKind.STAGE: 1 / 3, LaneKind.LOAD: 1.0, LaneKind.LOOP: 1.0}
"""For which part of its limit what is done may keep its worker from giving a sign."""


class Monitor:
    """The workers of one application, by turns; `now` is the clock.

    `replaces`: a worker that ends is replaced; not before all have started, since one that cannot start would never be
    able to. Until then all doors stay closed, so that no request can keep the others from being served at all.
    `clear_after` lets go what a life of a worker, by number and epoch, has left, `clear_after_clients` what dead
    clients have. `record` says what each process does; `blame` judges what they die of, for the processes that take
    requests, the `doors`.
    """

    def __init__(
        self,
        workers: list[SupervisedWorker],
        pool: WorkerPool,
        marks_of: Callable[[Callable[[int, Message], None]], RowMarks],
        now: Callable[[], float],
        clear_after: Callable[[int, int], None],
        clear_after_clients: Callable[[], None],
        record: RunRecord,
        blame: Blame,
        doors: Sequence[int],
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
        self._cleared_at = self._began_at = self._turned_at = now()
        self._lanes = [record.lanes(worker.number) for worker in workers]
        self._blame, self._doors = blame, doors
        self._overran: dict[int, LaneKind] = {}
        self._put_aside: set[int] = set()
        self._newest: dict[bytes, float] = {}
        self._late: dict[tuple[int, LaneKind], float] = {}
        self._called_busy: dict[int, float] = {}

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
        # What this thread has slept through while the machine was busy says nothing about the workers.
        passed, self._turned_at = min(now - self._turned_at, 2 * _TURN_SECONDS), now
        self._take_stock()
        for worker in self.workers:
            worker.take_signs(now)
            self._take_reports(worker)
            if worker.number in self._due:
                if now >= self._due[worker.number] and self._all_know(worker, now):
                    self._replace(worker)
            elif (status := self._pool.ended(worker.number)) is not None:
                if self.replaces:
                    self._bury(worker, status, now)
            elif self.replaces and (why := self._why_lost(worker, now, passed)) is not None:
                _LOG.warning("%s is ended: %s", worker.name, why)
                self._pool.kill(worker.number)
            elif worker.number in self._starting:
                self._welcome(worker, now)
            elif worker.number not in self._put_aside and self.replaces and self._holds_others_up(worker, now):
                _LOG.warning("%s is ended: a stage takes longer than usual, and others wait", worker.name)
                self._overran[worker.number] = LaneKind.STAGE
                self._put_aside.add(worker.number)
                self._pool.kill(worker.number)
            elif worker.line is None:
                worker.call()
            elif worker.wanted == worker.given:
                if now - worker.last_sign_at >= _SIGN_SECONDS:
                    worker.tell(now)
            elif (silent := worker.silent_seconds(now)) >= _SIGN_SECONDS and worker.has_row:
                self._call_busy(worker, now, now + silent)
        if now - self._cleared_at >= _CLEAR_SECONDS:
            self._clear(now)
        all_there = not self._starting and not self._due and all(worker.is_there for worker in self.workers)
        running = sum(worker.is_there and worker.has_row for worker in self.workers)
        self._blame.time_passed(now, all_there=all_there, several_there=running > 1, running=self._newest.keys())
        has_just_started = not self.replaces and all_there
        self.replaces |= has_just_started
        if has_just_started or (self._blame.is_new and self.replaces):
            self._tell_doors(now)
        if all_there and self.replaces and now - self._began_at > _STAND_BY_AFTER_SECONDS:
            self._pool.stand_by()

    def _call_busy(self, worker: SupervisedWorker, now: float, until: float) -> None:
        """Say that a worker is busy; now and then only, since signs that others have heard it lead to the next turn."""
        if now - self._called_busy.get(worker.number, -math.inf) >= _TURN_SECONDS:
            self._called_busy[worker.number] = now
            self._marks.call_busy(worker.number, until)

    def _why_lost(self, worker: SupervisedWorker, now: float, passed: float) -> str | None:
        """Why a worker counts as lost though its process lives; None if it does not.

        Code that runs may let no other code of its process run, and so no sign be given, for a part of the time that it
        may take: a load for all of it, since reading a large model often does. Where a worker is silent and several
        things are under way, any of them may keep the others from going on, so none of them is named for it.
        """
        doing = [each for lane in self._lanes[worker.number] if (each := lane.read()) is not None and each.is_active]
        is_clear = len(doing) == 1 or worker.silent <= _SIGN_SECONDS
        for each in doing:
            if now > each.until and self._is_still(worker, each):
                if is_clear:
                    self._overran[worker.number] = each.kind
                return f"a {each.kind.name.lower()} has taken longer than {each.until - each.since:.3g} s"
        worker.stopped = worker.stopped + passed if self._pool.is_stopped(worker.number) else 0.0
        if worker.stopped > _STOPPED_SECONDS:
            return f"its process has been stopped for {worker.stopped:.2g} s"
        if worker.number in self._starting:
            return f"it has not started in {_START_SECONDS:g} s" if worker.age(now) > _START_SECONDS else None
        worker.silent = worker.silent + passed if worker.line is None or worker.wanted != worker.given else 0.0
        patience = max([_SILENT_SECONDS, *(_QUIET_SHARE[each.kind] * (each.until - each.since) for each in doing)])
        if worker.silent <= patience:
            return None
        if len(doing) == 1 and doing[0].kind != LaneKind.LOAD:
            self._overran[worker.number] = doing[0].kind
        return f"it has given no sign for {worker.silent:.2g} s"

    def _holds_others_up(self, worker: SupervisedWorker, now: float) -> bool:
        """Whether a worker is in a run that takes longer than usual, while others wait for it.

        Requests that hang would otherwise hold all workers, each until its limit.
        """
        stage = self._overdue_stage(worker, now)
        if stage is None or not self._is_still(worker, stage):
            return False
        if worker.waiting or worker.silent > _SIGN_SECONDS:
            return True
        planners_queue = sum(other.waiting for other in self.workers if not other.has_row)
        return planners_queue > 0 and all(
            self._overdue_stage(other, now) is not None for other in self.workers if other.is_there and other.has_row
        )

    def _overdue_stage(self, worker: SupervisedWorker, now: float) -> Running | None:
        """The stage that a worker runs, if it takes longer than it may while others wait."""
        stage = self._lanes[worker.number][LaneKind.STAGE].read() if worker.has_row else None
        if stage is None or not stage.is_active:
            return None
        # A client whose worker was lost has asked another one: no client takes the result of the run that this one had.
        is_newest = all(self._newest.get(mark, stage.since) <= stage.since for mark in stage.marks)
        usual = (stage.overdue - stage.since) * (self._blame.allowance(stage.marks) if is_newest else 1.0)
        return stage if now > stage.since + usual else None

    def _take_stock(self) -> None:
        """Since when the requests run that run now, by mark; of two runs of one, the later."""
        self._newest.clear()
        for worker in self.workers:
            stage = self._lanes[worker.number][LaneKind.STAGE].read() if worker.is_there else None
            if stage is not None and stage.is_active:
                for mark in stage.marks:
                    self._newest[mark] = max(stage.since, self._newest.get(mark, stage.since))

    def _is_still(self, worker: SupervisedWorker, doing: Running) -> bool:
        """Whether a worker does what it did a turn ago: what is read while it is written may be of two things."""
        before = self._late.get((worker.number, doing.kind))
        self._late[worker.number, doing.kind] = doing.since
        return before == doing.since

    def _take_reports(self, worker: SupervisedWorker) -> None:
        for word, what in worker.reports:
            if word == "cleared":
                self._blame.cleared(what)
            elif word == "loaded":
                self._blame.loaded(what)
        worker.reports.clear()

    def _notice(self) -> Message:
        tries_at = min(
            (each.number for each in self.workers if each.is_there and each.number in self._doors), default=-1
        )
        return ("notice", tuple(self._blame.notice(tries_at)))

    def _tell_doors(self, now: float) -> None:
        notice = self._notice()
        for worker in self.workers:
            worker.tell(now, notice)
        self._blame.told()

    def close(self) -> None:
        """End the lines to all workers."""
        for worker in self.workers:
            worker.close()

    def _start(self, worker: SupervisedWorker) -> None:
        worker.begin_life(self._now())
        for lane in self._lanes[worker.number]:
            lane.clear()
        self._pool.start(worker.number, worker.epoch)
        self._starting.add(worker.number)

    def _welcome(self, worker: SupervisedWorker, now: float) -> None:
        """Once a new process has given a sign, it and the others hear of each other."""
        if not worker.is_there:
            if worker.call() and worker.wanted == 0:
                worker.tell(now)
            return
        self._starting.discard(worker.number)
        self._tell_others(worker.number, ("joined", worker.number, worker.epoch))
        others = [other for other in self.workers if other.is_there and other is not worker]
        lives = ("lives", tuple((other.number, other.epoch) for other in others))
        # It may have met these before there was a line to it.
        lost = [("lost", number, self.workers[number].epoch) for number in self._due]
        greeting = self._marks.greeting([other.number for other in others])
        # The notice opens its door: before, it would not know where to place what comes in.
        worker.tell(now, *greeting, lives, *lost, *([self._notice()] if self.replaces else []))

    def _bury(self, worker: SupervisedWorker, status: str, now: float) -> None:
        """A worker is dead: nothing more is placed there, and the others hear of it."""
        if worker.has_row:
            self._marks.leave(worker.number)
        doing = [each for lane in self._lanes[worker.number] if (each := lane.read()) is not None]
        at = ", ".join(f"{each.kind.name.lower()} {each.number}" for each in doing if each.is_active)
        _LOG.warning("%s has ended (%s) at %s; it is started again", worker.name, status, at or "rest")
        put_aside = worker.number in self._put_aside
        self._put_aside.discard(worker.number)
        self._blame.died(now, Death(doing, status, self._overran.pop(worker.number, None), put_aside))
        self._starting.discard(worker.number)
        self._due[worker.number] = now + worker.end_life(now)
        self._died[worker.number] = now
        # Other workers may have been sent values of its, and not have opened them yet.
        self._leftovers.append((now + _CLEAR_SECONDS, worker.number, worker.epoch))
        if self._blame.is_new:  # before its requests are planned again
            self._tell_doors(now)
        self._tell_others(worker.number, ("lost", worker.number, worker.epoch))

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
