"""One plan at a time for the service: the simulations in processes that let others go first, news on the event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field
from typing import Any

from anyio import to_thread

from fairway.errors import FairwayError, InputError
from fairway.service.http.problems import ProblemError
from fairway.sim.comparison import Pool, Watcher

_NICE = 10
_SECONDS_BETWEEN_NEWS = 0.25


class _NotWantedError(FairwayError):
    """The client that asked has gone."""


@dataclass
class PlanProgress(Watcher):
    """Counts the runs that are over; lets the plan end early when the client has gone."""

    done: int = 0
    gone: threading.Event = field(default_factory=threading.Event)

    def advanced(self, run: int, jobs_ended: int, now: float) -> None:  # noqa: ARG002 - as every watcher hears it
        """A run has come further."""
        if self.gone.is_set():
            raise _NotWantedError("the client has gone")

    def ended(self, run: int, record: Any) -> None:  # noqa: ARG002 - as every watcher hears it
        """A run is over."""
        self.done += 1
        self.advanced(run, 0, 0.0)


@dataclass
class Planning:
    """Makes plans, one at a time."""

    _busy: bool = False

    async def made(self, work: Callable[[Pool, Watcher], dict[str, Any]]) -> AsyncGenerator[tuple[str, dict[str, Any]]]:
        """Events of a plan that is made: `progress` with the runs that are over, then `plan`, or `failed`."""
        if self._busy:
            raise ProblemError(429, "busy", "another plan is being made; try again when it is done")
        self._busy = True
        progress = PlanProgress()
        try:
            task = asyncio.create_task(to_thread.run_sync(_in_pool, work, progress))
            task.add_done_callback(_looked_at)
            told = -1
            try:
                while not task.done():
                    await asyncio.wait([task], timeout=_SECONDS_BETWEEN_NEWS)
                    if progress.done != told and not task.done():
                        told = progress.done
                        yield "progress", {"done": told}
                yield "plan", task.result()
            except InputError as error:
                yield "failed", {"code": "bad-input", "detail": str(error)}
            except FairwayError as error:
                yield "failed", {"code": "failed", "detail": str(error)}
            finally:
                progress.gone.set()
        finally:
            self._busy = False


def _looked_at(task: asyncio.Task[Any]) -> None:
    """A plan whose client has gone ends with an error that is none."""
    if not task.cancelled():
        task.exception()


def _in_pool(work: Callable[[Pool, Watcher], dict[str, Any]], progress: PlanProgress) -> dict[str, Any]:
    with Pool(nice=_NICE) as pool:
        return work(pool, progress)
