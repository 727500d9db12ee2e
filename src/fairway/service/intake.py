"""Takes submissions in together: while some are being written, others wait, and are then written at once.

The store makes what many ask for durable with one commit anyway, but every statement costs the writing thread a wait
for its turn among Python's threads; a hundred submissions in one call are three statements, one by one they are two
hundred. What would fail alone fails alone here too.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import islice

from sqlalchemy import Connection

from fairway.errors import FairwayError
from fairway.store import Store, counters
from fairway.store.records import JobRecord
from fairway.store.submissions import Submission, submit

_MOST = 500


@dataclass(frozen=True, slots=True)
class Taken:
    """A job that is stored; not `new` if it was stored before, under the same key."""

    job: JobRecord
    new: bool


@dataclass(frozen=True, slots=True)
class _Waiting:
    submissions: Sequence[Submission]
    answer: asyncio.Future[list[Taken]] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


class Intake:
    """Where submissions wait. Used on the event loop only."""

    def __init__(self, store: Store, now: Callable[[], float] = time.time) -> None:
        self._store, self._now = store, now
        self._waiting: list[_Waiting] = []
        self._task: asyncio.Task[None] | None = None

    async def take(self, submissions: Sequence[Submission]) -> list[Taken]:
        """Store jobs, all of them or none; when this returns they are durable."""
        waiting = _Waiting(submissions)
        self._waiting.append(waiting)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._write())
        return await waiting.answer

    async def _write(self) -> None:
        while self._waiting:
            count = self._how_many()
            some, self._waiting = self._waiting[:count], self._waiting[count:]
            try:
                await self._write_together(some)
            except FairwayError as error:
                if len(some) == 1:
                    _refuse(some[0], error)
                else:
                    await asyncio.gather(*(self._write_alone(one) for one in some))
            except Exception as error:
                for one in some:
                    _refuse(one, error)

    def _how_many(self) -> int:
        """How many of those that wait are written next: as many as make so many jobs, one at the least."""
        jobs = 0
        for count, waiting in enumerate(self._waiting):
            jobs += len(waiting.submissions)
            if count and jobs > _MOST:
                return count
        return len(self._waiting)

    async def _write_together(self, some: list[_Waiting]) -> None:
        submissions = [submission for waiting in some for submission in waiting.submissions]
        last, jobs = await asyncio.wrap_future(self._store.begin_write(_submitted, submissions, at=self._now()))
        seen: set[int] = set()
        stored = iter(jobs)
        for waiting in some:
            taken: list[Taken] = []
            for job in islice(stored, len(waiting.submissions)):
                taken.append(Taken(job, job.number > last and job.number not in seen))
                seen.add(job.number)
            if not waiting.answer.done():  # the client may have gone
                waiting.answer.set_result(taken)

    async def _write_alone(self, one: _Waiting) -> None:
        try:
            await self._write_together([one])
        except Exception as error:
            _refuse(one, error)


def _submitted(connection: Connection, submissions: Sequence[Submission], *, at: float) -> tuple[int, list[JobRecord]]:
    """Take jobs in; also says the highest number of a job before, so that those are recognised that are new."""
    last = counters.last(connection, counters.JOBS)
    return last, submit(connection, submissions, at=at)


def _refuse(waiting: _Waiting, error: Exception) -> None:
    if not waiting.answer.done():
        waiting.answer.set_exception(error)
