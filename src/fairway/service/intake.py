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
    submission: Submission
    answer: asyncio.Future[Taken] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


class Intake:
    """Where submissions wait. Used on the event loop only."""

    def __init__(self, store: Store, now: Callable[[], float] = time.time) -> None:
        self._store, self._now = store, now
        self._waiting: list[_Waiting] = []
        self._task: asyncio.Task[None] | None = None

    async def take(self, submission: Submission) -> Taken:
        """Store a job; when this returns it is durable."""
        waiting = _Waiting(submission)
        self._waiting.append(waiting)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._write())
        return await waiting.answer

    async def _write(self) -> None:
        while self._waiting:
            some, self._waiting = self._waiting[:_MOST], self._waiting[_MOST:]
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

    async def _write_together(self, some: list[_Waiting]) -> None:
        last, jobs = await asyncio.wrap_future(
            self._store.begin_write(_submitted, [waiting.submission for waiting in some], at=self._now())
        )
        seen: set[int] = set()
        for waiting, job in zip(some, jobs, strict=True):
            if not waiting.answer.done():  # the client may have gone
                waiting.answer.set_result(Taken(job, job.number > last and job.number not in seen))
            seen.add(job.number)

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
