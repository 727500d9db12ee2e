"""The supervisor's thread: starts workers, waits for deaths and signs of life, and clears up after the dead.

Each turn of its loop looks at all workers; there are few of them, and nothing here is urgent but a death, for which it
is woken.
"""

from __future__ import annotations

import logging
import os
import select
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from fairway.live.serving.data import clear_files
from fairway.live.serving.settings import ServingSettings
from fairway.live.serving.shared_table import SharedTable
from fairway.live.serving.watched import Watched

_LOG = logging.getLogger(__name__)

_TURN_SECONDS = 0.5
_STARTING_TURN_SECONDS = 0.02
_SIGN_SECONDS = 1.0
_MOST_WAIT_FOR_SIGNS_SECONDS = 5.0
_CLEAR_SECONDS = 10.0
_GRACE_SECONDS = 5.0


class Watch:
    """Looks after the workers until `end`; only its own thread touches them meanwhile.

    `restarts_them`: a worker that ends is replaced; not before all have started, since one that cannot start would
    never be able to. `problem` is what kept it from starting them.
    """

    def __init__(self, settings: ServingSettings, table: SharedTable, workers: Sequence[Watched]) -> None:
        self.restarts = 0
        self.restarts_them = False
        self.problem: Exception | None = None
        self._settings, self._table, self._workers = settings, table, workers
        self._over = False
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._starting: set[int] = set()
        self._due: dict[int, float] = {}  # by worker that has ended, when the next may be started
        self._died: dict[int, float] = {}
        self._leftovers: list[tuple[float, str]] = []
        self._cleared = time.monotonic()

    def run(self) -> None:
        """Until it is over; then the workers are ended."""
        try:
            for worker in self._workers:
                worker.spawn()
                self._starting.add(worker.number)
        except Exception as error:
            self.problem = error
        while not self._over:
            self._wait()
            try:
                self._turn(time.monotonic())
            except Exception:  # such as no memory for a new process; without this thread the workers would end
                _LOG.exception("the workers could not be looked after; tried again")
                time.sleep(_TURN_SECONDS)
        os.close(self._wake)
        for worker in self._workers:  # before the system ends them with this thread, which looks as if it had died
            worker.terminate()
        for worker in self._workers:
            worker.wait_or_kill(_GRACE_SECONDS)

    def end(self) -> None:
        """Let `run` return; from any thread."""
        self._over = True
        with suppress(OSError):
            os.eventfd_write(self._wake, 1)

    def is_there(self, worker: Watched) -> bool:
        """Whether a process has started and listens; from any thread."""
        return self._table.is_seen(worker.number) if worker.takes_tasks else worker.listens

    def _wait(self) -> None:
        descriptors: list[int] = [self._wake]
        for worker in self._workers:
            if worker.descriptor is not None and worker.number not in self._due:
                descriptors.append(worker.descriptor)
            if worker.line is not None:
                descriptors.append(worker.line.fileno())
        busy = bool(self._starting or self._due)
        waiting = select.poll()
        for descriptor in descriptors:
            waiting.register(descriptor, select.POLLIN)
        waiting.poll(1000 * (_STARTING_TURN_SECONDS if busy else _TURN_SECONDS))

    def _turn(self, now: float) -> None:
        for worker in self._workers:
            worker.listen()
            if worker.number in self._due:
                if now >= self._due[worker.number] and self._all_know(worker, now):
                    self._replace(worker)
            elif worker.has_ended():
                if self.restarts_them:
                    self._bury(worker, now)
            elif worker.number in self._starting:
                if self.is_there(worker) and worker.call():
                    self._starting.discard(worker.number)
                    self._tell_others(worker, "joined")
                    for number in self._due:  # it may have met them before there was a line to it
                        worker.tell("lost", number)
            elif worker.line is None:
                worker.call()
            elif worker.said == worker.heard:
                if now - worker.asked_at >= _SIGN_SECONDS:
                    worker.tell()
            elif (silent := worker.silent_seconds(now)) >= _SIGN_SECONDS and worker.takes_tasks:
                self._table.call_busy(worker.number, now + silent)
        if now - self._cleared >= _CLEAR_SECONDS:
            self._clear(now)

    def _bury(self, worker: Watched, now: float) -> None:
        """A worker is dead: nothing more is placed there, and the others hear of it."""
        if worker.takes_tasks:
            self._table.leave(worker.number)
        _LOG.warning("%s has ended (%s); it is started again", worker.name, worker.process.returncode)
        self._starting.discard(worker.number)
        self._due[worker.number] = now + worker.bury()
        self._died[worker.number] = now
        # Those who have been sent something of it may not have opened it yet.
        self._leftovers.append((now + _CLEAR_SECONDS, f"w{worker.number}-{worker.epoch}-"))
        self._tell_others(worker, "lost")

    def _all_know(self, worker: Watched, now: float) -> bool:
        """Whether all others have heard that a worker is gone; one that gives no sign is not waited for for long."""
        if now - self._died[worker.number] > _MOST_WAIT_FOR_SIGNS_SECONDS:
            return True
        return all(other.said == other.heard for other in self._workers if other is not worker)

    def _replace(self, worker: Watched) -> None:
        worker.spawn()
        self.restarts += 1
        del self._due[worker.number]
        self._starting.add(worker.number)

    def _tell_others(self, worker: Watched, news: str) -> None:
        for other in self._workers:
            if other is not worker:
                other.tell(news, worker.number)

    def _clear(self, now: float) -> None:
        """Remove what dead workers and dead clients have left in shared memory."""
        self._cleared = now
        directory = self._settings.memory_directory
        for _, prefix in [each for each in self._leftovers if each[0] <= now]:
            clear_files(directory, prefix)
        self._leftovers = [each for each in self._leftovers if each[0] > now]
        owners = {path.name.split("-")[0] for path in directory.glob("c*-*")}
        for owner in owners:
            if owner[1:].isdecimal() and not Path(f"/proc/{owner[1:]}").exists():
                clear_files(directory, f"{owner}-")
