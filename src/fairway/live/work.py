"""The work of a controller, on its event loop: takes in what happens, commits, and has commands carried out, for ever.

What was decided is carried out only after it is durable. A command that does not arrive is not repeated: when the
backend is there again it says what it knows, and is told what it missed. After any failure, of the store or of the
scheduling itself, a new session is begun from what the store holds; whoever runs runs on.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

from fairway.errors import FairwayError
from fairway.live import runs
from fairway.live.backend import (
    Backend,
    BackendGoneError,
    Connected,
    Gone,
    Happened,
    Report,
    Superseded,
    SupersededError,
)
from fairway.live.inbox import Inbox
from fairway.live.local import agent_messages
from fairway.live.places import devices_of
from fairway.live.scheduler import Change
from fairway.live.session import Session, Surroundings, write_all
from fairway.store import counters
from fairway.store.errors import StoreError

_LOG = logging.getLogger(__name__)

_FLUSH_SECONDS = 1.0
_TRIM_SECONDS = 60.0
_FIRST_CONTACT_SECONDS = 60.0
_FIRST_WAIT_SECONDS, _LONGEST_WAIT_SECONDS = 1.0, 60.0


class Work:
    """The loop of a controller; all of it runs on the loop's own thread."""

    def __init__(self, around: Surroundings, backend: Backend, inbox: Inbox) -> None:
        self._around, self._backend, self._inbox = around, backend, inbox
        self._epoch = 0
        self._session: Session | None = None
        self._status: Mapping[str, Any] | None = None
        self._why_gone = "it is silent"
        self._attached = False
        self._sound = False
        self._over = self._closing = False
        self._renew = self._doubtful = False
        self._promises: list[Future[None]] = []
        self._flushed = self._trimmed = time.monotonic()

    @property
    def begun(self) -> bool:
        """Whether there was a session yet."""
        return self._session is not None

    @property
    def session(self) -> Session:
        """The present session."""
        if self._session is None:
            raise FairwayError("the controller has not started")
        return self._session

    @property
    def accelerators(self) -> Sequence[Mapping[str, Any]]:
        """What the backend had when it last said so."""
        return () if self._status is None else self._status["accelerators"]

    @property
    def healthy(self) -> bool:
        """Whether all that it needs to work is there."""
        return self._sound and self._attached and not self._over

    # What others ask of it

    def stop(self) -> None:
        """Let this be the end; whatever runs runs on."""
        if self._sound:
            self.session.scheduler.save_standing()
        self._over = True

    def close(self) -> None:
        """Stop everything that runs, then end together with the backend."""
        self._closing = True
        if self._sound:
            self.session.scheduler.close()

    def look_for_jobs(self) -> None:
        """The store has something new."""
        if self._sound:
            self.session.look_for_jobs()

    def cancel(self, job: str) -> None:
        """A job was taken back, which the store knows."""
        if self._sound:
            self.session.scheduler.cancel(job)

    def drain(self, workers: Sequence[tuple[str, int]], done: Future[None], *, on: bool) -> None:
        """Let workers be used no more, or again, and say when that is durable."""
        self._promises.append(done)
        if self._sound:
            self.session.drain(workers, on=on)
        else:
            self._break_promises(StoreError("nothing can be changed at the moment; try again later"))

    # The loop

    async def run(self, ready: Callable[[], None]) -> None:
        """Begin, say that it is ready, and work until the end."""
        self._inbox.open()
        self._epoch = self._around.store.write(counters.take, counters.EPOCHS, 1)
        keeping = asyncio.create_task(self._keep_in_touch())
        try:
            await self._first_contact(keeping)
            await self._begin()
            ready()
            wait = _FIRST_WAIT_SECONDS
            while not self._over:
                try:
                    await self._step()
                    wait = _FIRST_WAIT_SECONDS
                except SupersededError:
                    raise
                except Exception as error:
                    await self._begin_anew(error, wait)
                    wait = min(2 * wait, _LONGEST_WAIT_SECONDS)
            if self._closing and self._finished():
                await self._backend.shut_down()
        finally:
            self._sound = False
            keeping.cancel()
            with suppress(asyncio.CancelledError):
                await keeping

    async def _first_contact(self, keeping: asyncio.Task[None]) -> None:
        """Wait until the backend is there."""
        deadline = time.monotonic() + _FIRST_CONTACT_SECONDS
        while self._status is None:
            if keeping.done():
                await keeping
            if time.monotonic() > deadline:
                log = self._around.settings.agent_directory / "agent.log"
                raise FairwayError(f"no agent answers: {self._why_gone}; see {log}")
            await self._inbox.wait(0.1)
            self._take_actions()

    async def _begin(self) -> None:
        """Begin a session, and bring it together with what the backend knows."""
        self._sound = self._renew = self._doubtful = False
        status: Mapping[str, Any] | None = None
        with suppress(BackendGoneError):
            status = await self._backend.ask(agent_messages.Status())
        assert self._status is not None
        self._attached = status is not None
        self._status = {**self._status, **(status or {})}
        session = Session(self._around, self.accelerators, self._status.get("last_lease", 0))
        self._session = session
        if status is not None:
            session.reconcile(status)
        if self._closing:
            session.scheduler.close()
        await self._commit(session)
        self._sound = True

    async def _begin_anew(self, error: Exception, wait: float) -> None:
        """Something failed, so that the engine may know what the store does not: begin from what that holds."""
        self._sound = False
        said = None
        while self._goes_on():
            self._break_promises(error)
            if str(error) != said:
                said = str(error)
                trace = None if isinstance(error, StoreError) else error
                _LOG.error("nothing is decided until this is over: %s", error, exc_info=trace)
            until = time.monotonic() + (_FIRST_WAIT_SECONDS if isinstance(error, StoreError) else wait)
            while (left := until - time.monotonic()) > 0:
                await self._inbox.wait(left)
                self._take_actions()
                if not self._goes_on():
                    return
            try:
                self._around.statistics.recoveries_total += 1
                await self._begin()
                return
            except SupersededError:
                raise
            except Exception as again:
                error = again

    async def _step(self) -> None:
        """Wait until something happens or is due, and do all that follows from it."""
        session = self.session
        await self._inbox.wait(self._seconds_to_wait(session))
        self._take_actions()
        session.scheduler.tick()
        now = time.monotonic()
        if now - self._flushed >= _FLUSH_SECONDS:
            self._flushed = now
            session.scheduler.flush_progress()
            session.look_for_cancels()
        if now - self._trimmed >= _TRIM_SECONDS:
            self._trimmed = now
            session.trim()
        await self._commit(session)
        if self._renew:
            await self._begin()
        self._over |= self._closing and self._finished()

    def _seconds_to_wait(self, session: Session) -> float:
        seconds = self._flushed + _FLUSH_SECONDS - time.monotonic()
        due = session.scheduler.next_due()
        return seconds if due is None else min(seconds, due - self._around.clock.today())

    def _goes_on(self) -> bool:
        return not self._over

    def _take_actions(self) -> None:
        while (action := self._inbox.take()) is not None:
            action()

    def _finished(self) -> bool:
        return not self.session.scheduler.leases

    async def _commit(self, session: Session) -> None:
        """Make durable what has changed, then have done what follows from it."""
        scheduler = session.scheduler
        while scheduler.changes or scheduler.commands or self._doubtful:
            if self._doubtful:
                self._doubtful = False
                await self._look_at_backend(session)
            changes, commands = scheduler.take()
            promises, self._promises = self._promises, []
            try:
                ended = await self._written(changes)
            except BaseException:
                self._promises += promises
                raise
            for promise in promises:
                promise.set_result(None)
            for command in session.written(ended, commands):
                await self._carry_out(session, command)

    async def _written(self, changes: Sequence[Change]) -> frozenset[str]:
        if not changes:
            return frozenset()
        return await asyncio.wrap_future(self._around.store.begin_write(write_all, self._epoch, changes))

    def _break_promises(self, error: Exception) -> None:
        for promise in self._promises:
            promise.set_exception(error)
        self._promises = []

    # The backend

    async def _carry_out(self, session: Session, command: agent_messages.Command) -> None:
        if not self._attached:
            return
        try:
            answer = await self._backend.ask(command)
        except BackendGoneError:
            self._attached = False  # and nothing is asked of it until it has said what it knows
        except agent_messages.RefusedError as refused:
            session.refused(command, refused.code, str(refused))
        else:
            self._doubtful |= session.answered(command, answer)

    async def _look_at_backend(self, session: Session) -> None:
        """Compare what is with what should be; before that, nothing is asked of a backend that was away."""
        self._attached = False
        with suppress(BackendGoneError):
            session.reconcile(await self._backend.ask(agent_messages.Status()))
            self._attached = True

    async def _keep_in_touch(self) -> None:
        """Keep the backend running, whatever happens to it."""
        while True:
            try:
                await self._backend.run(self._epoch, self._report)
                return
            except Exception as error:
                _LOG.exception("the backend failed; it is tried again")
                self._report(Gone(str(error)))
                await asyncio.sleep(_FIRST_WAIT_SECONDS)

    def _report(self, report: Report) -> None:
        self._inbox.put(lambda: self._take_in(report))

    def _take_in(self, report: Report) -> None:
        match report:
            case Connected():
                self._connected(report.status)
            case Happened():
                if self._sound:
                    runs.happened(self.session.scheduler, report.event)
            case Gone():
                self._attached = False
                self._why_gone = report.why
                _LOG.warning("%s", report.why)
            case Superseded():
                raise SupersededError(report.why)

    def _connected(self, status: Mapping[str, Any]) -> None:
        before, self._status = self._status, status
        if self._sound and before is not None:
            self._around.statistics.agent_restarts_total += before.get("pid") != status.get("pid")
            self._renew |= devices_of(before["accelerators"]) != devices_of(self.accelerators)
            # What it said on connecting may be old by now, so it is asked again.
            self._doubtful = True
