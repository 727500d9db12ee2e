"""Does several runs at once, one per core, and gives their records in the order asked for: of training and of serving.

A run is described in a few words, and the process that runs it builds its workload itself: nothing large travels to it.
Processes are spawned, not forked, since what the solvers keep in memory is not meant to be forked. With one run, or one
core, everything stays in this process. An interrupt ends all of them at once. A `Pool` keeps its processes for several
comparisons, since a new process takes a second until it can begin.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import stat
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from multiprocessing.process import BaseProcess
from multiprocessing.queues import SimpleQueue
from pathlib import Path
from typing import Any, Protocol, Self, TypeVar

from fairway.allocate.policy import Policy
from fairway.cluster import Cluster
from fairway.errors import FairwayError
from fairway.report.training.record import TrainingRecord
from fairway.sim.submissions import Progress, TrainingOptions
from fairway.sim.training import simulate_training
from fairway.sim.workload import Workload

_SECONDS_BETWEEN_NEWS = 0.2

News = tuple[int, int, float]
"""The position of a run, how many of its jobs have ended, and the virtual time."""

Record_co = TypeVar("Record_co", covariant=True)


class Simulation(Protocol[Record_co]):
    """A run that can be done here or in another process."""

    @property
    def files(self) -> tuple[str, ...]:
        """The files that it reads."""
        ...

    def __call__(self, progress: Progress | None = None) -> Record_co:
        """Do it, here and now."""
        ...


@dataclass(frozen=True, slots=True)
class TrainingRun:
    """One policy on one workload. `settings` go into the record: what is needed to repeat the run."""

    workload: Workload
    cluster: Cluster
    policy: str | Policy
    options: TrainingOptions
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def files(self) -> tuple[str, ...]:
        """The files that it reads."""
        return () if self.workload.trace is None else (self.workload.trace,)

    def __call__(self, progress: Progress | None = None) -> TrainingRecord:
        """Do it, here and now."""
        record = simulate_training(
            self.workload.submissions(self.cluster),
            self.cluster,
            self.policy,
            self.options,
            table=self.workload.table(),
            settings=dict(self.settings),
            progress=progress,
        )
        trace = self.workload.read_trace()
        if trace is None:
            return record
        return replace(record, skipped_rows=len(trace.skipped), unreadable_rows=trace.unreadable)


class Watcher:
    """Is told how the runs go, by their positions; does nothing by itself."""

    def advanced(self, run: int, jobs_ended: int, now: float) -> None:
        """So many jobs of a run have ended by this virtual time."""

    def ended(self, run: int, record: Any) -> None:
        """A run is over."""


def compare(
    runs: Sequence[Simulation[Record_co]], *, processes: int | None = None, watcher: Watcher | None = None
) -> list[Record_co]:
    """Do all runs, on as many processes as there are cores unless told otherwise; one that fails ends them all."""
    with Pool(min(processes or usable_cores(), len(runs))) as pool:
        return pool.compare(runs, watcher=watcher)


def usable_cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _is_read_once(path: str) -> bool:
    """Whether a trace comes through a pipe, which only the process that has read it knows."""
    return not stat.S_ISREG(Path(path).stat().st_mode)


def _one_by_one(runs: Sequence[Simulation[Record_co]], watcher: Watcher) -> list[Record_co]:
    records: list[Record_co] = []
    for position, run in enumerate(runs):
        records.append(run(_seldom(partial(watcher.advanced, position))))
        watcher.ended(position, records[-1])
    return records


class Pool:
    """Processes that do the runs of several comparisons, one after the other; they start when the first needs them."""

    def __init__(self, processes: int | None = None, *, nice: int = 0) -> None:
        """So many processes, one per core unless given; `nice` lets others on the machine go first."""
        self._most, self._nice = processes or usable_cores(), nice
        self._executor: ProcessPoolExecutor | None = None
        self._news: SimpleQueue[News] | None = None
        self._children: set[BaseProcess] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:  # the results of the other runs are of no use
            for child in self._children:
                child.terminate()
        if self._executor is not None:
            self._executor.shutdown(wait=True, cancel_futures=True)

    def compare(self, runs: Sequence[Simulation[Record_co]], *, watcher: Watcher | None = None) -> list[Record_co]:
        """Do all runs; with one run, or one process, in this process. One that fails is raised."""
        watcher = watcher or Watcher()
        if min(self._most, len(runs)) <= 1 or any(_is_read_once(file) for run in runs for file in run.files):
            return _one_by_one(runs, watcher)
        try:
            return self._at_once(runs, watcher)
        except BrokenProcessPool:
            raise _killed() from None

    def _at_once(self, runs: Sequence[Simulation[Record_co]], watcher: Watcher) -> list[Record_co]:
        if self._executor is None or self._news is None:
            context = multiprocessing.get_context("spawn")
            self._news = context.SimpleQueue()
            self._executor = ProcessPoolExecutor(self._most, context, _start_worker, (self._news, self._nice))
        others = set(multiprocessing.active_children()) - self._children
        with _interrupts_ignored():  # by the new processes too, which inherit that: it is for this one to end them
            positions = {self._executor.submit(_work, position, run): position for position, run in enumerate(runs)}
        self._children = set(multiprocessing.active_children()) - others
        return _collect(positions, self._children, self._news, watcher)


def _collect(
    positions: Mapping[Future[Record_co], int],
    children: Iterable[BaseProcess],
    news: SimpleQueue[News],
    watcher: Watcher,
) -> list[Record_co]:
    pending = set(positions)
    while pending:
        finished, pending = wait(pending, timeout=_SECONDS_BETWEEN_NEWS, return_when=FIRST_COMPLETED)
        while not news.empty():
            watcher.advanced(*news.get())
        for future in sorted(finished, key=positions.__getitem__):
            watcher.ended(positions[future], future.result())
        # The pool notices this as well, but sometimes only when the next run is over.
        if pending and any(child.exitcode is not None for child in children):
            raise _killed()
    return [future.result() for future in positions]


def _killed() -> FairwayError:
    return FairwayError("a run was killed from outside, most likely for want of memory; use fewer processes")


@contextmanager
def _interrupts_ignored() -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():  # the only one that may, and that is interrupted
        yield
        return
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler if handler is not None else signal.SIG_DFL)


_NEWS: SimpleQueue[News]
"""In a worker process: the way back to the process that asked."""


def _start_worker(news: SimpleQueue[News], nice: int) -> None:
    global _NEWS  # noqa: PLW0603
    _NEWS = news
    os.nice(nice)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_leave_with_parent, daemon=True).start()


def _leave_with_parent() -> None:
    """End this process when the one that asked is gone, however it went; its result would be of no use."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _work(position: int, run: Simulation[Record_co]) -> Record_co:
    return run(_seldom(lambda jobs_ended, now: _NEWS.put((position, jobs_ended, now))))


def _seldom(progress: Progress) -> Progress:
    """The same, but only a few times a second: telling must not slow a run down."""
    due = 0.0

    def told(jobs_ended: int, now: float) -> None:
        nonlocal due
        if time.monotonic() >= due:
            progress(jobs_ended, now)
            due = time.monotonic() + _SECONDS_BETWEEN_NEWS

    return told
