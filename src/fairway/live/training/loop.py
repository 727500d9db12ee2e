"""The work of a controller, on its event loop: takes in what happens, commits, and has commands carried out, for ever.

What was decided is carried out only after it is durable. A command that does not arrive is not repeated: when the
backend is there again it says what it knows, and is asked for what it missed. After any failure, of the store or of the
scheduling itself, a new session is begun from what the store holds; jobs that run run on. The states that all this
passes through are in `loop_state`.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace

from fairway.back_off import BackOff
from fairway.errors import FairwayError, InputError
from fairway.fault_points import reached
from fairway.live.backend.accelerators import Accelerator
from fairway.live.backend.answers import BackendGoneError, RefusedError, SupersededError
from fairway.live.backend.commands import RunCommand
from fairway.live.backend.protocol import Backend
from fairway.live.backend.reports import AcceleratorsChanged, BackendReport, Connected, Disconnected, Superseded
from fairway.live.backend.status import BackendStatus
from fairway.live.training import reports
from fairway.live.training.inbox import Inbox
from fairway.live.training.loop_state import Course, State
from fairway.live.training.places import devices_of
from fairway.live.training.scheduler import Change
from fairway.live.training.session import Session, Surroundings, write_all
from fairway.store import counters
from fairway.store.errors import StoreError

_LOG = logging.getLogger(__name__)

_FLUSH_SECONDS = 1.0
_TRIM_SECONDS = 60.0
_FIRST_CONTACT_SECONDS = 120.0
"""A backend of many machines may have to wait for a minute until what it has lost is certain to have ended."""
_MOST_AT_ONCE = 64
"""Commands that are given before the first of them is answered."""

_CLOSING_SECONDS = 20.0
"""How long a backend or a store that fails may hold up the end; runs go on, and the next controller adopts them."""
_BACK_OFF = BackOff(1.0, 60.0)

_LATE_SECONDS = 10.0
"""How late a turn of the loop, or a round, may be before the controller counts as unhealthy; a turn takes a second."""


class Work:
    """The loop of a controller; all of it runs on the loop's own thread."""

    def __init__(self, around: Surroundings, backend: Backend, inbox: Inbox) -> None:
        self._around, self._backend, self._inbox = around, backend, inbox
        self._epoch = 0
        self._session: Session | None = None
        self._status: BackendStatus | None = None
        self._sick: set[str] = set()
        self._why_gone = "it is silent"
        self._why_failed = ""
        self._gone_since = 0.0
        self.closed_in_vain: str | None = None
        self._begun_with: Sequence[Accelerator] = ()
        self._course = Course()
        self._promises: list[Future[None]] = []
        self._flushed = self._trimmed = self._turned = self._now()

    def _now(self) -> float:
        """Seconds of the machine's monotonic clock."""
        return self._around.clock.seconds()

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
    def accelerators(self) -> Sequence[Accelerator]:
        """What the backend had when it last said so."""
        return () if self._status is None else self._status.accelerators

    @property
    def healthy(self) -> bool:
        """Whether all that it needs to work is there, and it works: by the time of its last turn and its last round.

        Another thread asks, so this does not depend on what the loop itself would say, which may be stuck.
        """
        if self._course.state is not State.ATTACHED or self._around.statistics.undecided is not None:
            return False
        due = self.session.scheduler.round_due
        return self._now() < min(self._turned, math.inf if due is None else due) + _LATE_SECONDS

    @property
    def caveats(self) -> tuple[str, ...]:
        """What the backend says that it does not offer."""
        return () if self._status is None else self._status.caveats

    @property
    def trouble(self) -> str | None:
        """Why it is not healthy; None while it is."""
        match self._course.state:
            case State.ATTACHED:
                return None
            case State.DETACHED:
                return self._why_gone
            case State.FAILED:
                return self._why_failed
        return f"the controller is {self._course.state.value}"

    # What the controller asks of it

    def stop(self) -> None:
        """Let this be the end; whatever runs runs on."""
        if self._course.schedules:
            self.session.scheduler.save_standing()
        self._course.to(State.OVER)

    def close(self) -> None:
        """Stop everything that runs, then end together with the backend."""
        if self._course.schedules:
            self.session.scheduler.close()
        elif self._course.state is State.FAILED:
            self.session.scheduler.closing = True  # and the session that follows closes, too
        else:
            self._course.to(State.WAITING_TO_CLOSE)

    def look_for_jobs(self) -> None:
        """The store has something new."""
        if self._course.schedules:
            self.session.look_for_jobs()

    def cancel(self, job: str) -> None:
        """A job was taken back, which the store knows."""
        if self._course.schedules:
            self.session.scheduler.cancel(job)

    def drain(self, workers: Sequence[tuple[str, int]], done: Future[None], *, on: bool) -> None:
        """Let workers be used no more, or again, and say when that is durable."""
        self._promises.append(done)
        if self._course.schedules:
            self.session.drain(workers, on=on)
        else:
            self._break_promises(StoreError("nothing can be changed at the moment; try again later"))

    # The loop

    async def run(self, ready: Callable[[], None]) -> None:
        """Begin, say that it is ready, and work until the end."""
        self._inbox.open()
        self._epoch = self._around.store.write_vital(counters.take, counters.EPOCHS, 1)
        keeping = asyncio.create_task(self._keep_in_touch())
        try:
            await self._first_contact(keeping)
            if self._goes_on():
                await self._begin()
            ready()
            failures = 0
            while self._goes_on():
                try:
                    await self._step()
                    failures = 0
                except SupersededError:
                    raise
                except Exception as error:
                    failures += 1
                    await self._begin_anew(error, _BACK_OFF.seconds(failures))
            if self._closed():
                await self._backend.shut_down()
        except SupersededError:
            raise  # what runs the jobs belongs to the other controller
        except BaseException:
            if not self.begun:  # nothing was scheduled, so what was started for it must not stay behind
                await self._backend.shut_down()
            raise
        finally:
            self._course.to(State.OVER)
            keeping.cancel()
            with suppress(asyncio.CancelledError):
                await keeping

    async def _first_contact(self, keeping: asyncio.Task[None]) -> None:
        """Wait until the backend is there."""
        deadline = self._now() + _FIRST_CONTACT_SECONDS
        while self._status is None and self._goes_on():
            if keeping.done():
                await keeping
            if self._now() > deadline:
                raise FairwayError(f"the backend does not answer: {self._why_gone}")
            await self._inbox.wait(0.1)
            self._take_actions()

    async def _begin(self) -> None:
        """Begin a session, and bring it together with what the backend knows."""
        closing = self._course.state is State.WAITING_TO_CLOSE or (self.begun and self.session.scheduler.closing)
        self._course.to(State.BEGINNING)
        status: BackendStatus | None = None
        with suppress(BackendGoneError):
            status = await self._backend.status()
        assert self._status is not None
        if status is None:
            self._detach()
        self._status = self._completed(status) if status is not None else self._status
        last_lease, machines = self._status.last_lease, self._status.machines
        session = Session(self._around, self.accelerators, last_lease, machines, goes_on=self.begun)
        if status is not None:
            session.reconcile(status)
        if closing:
            session.scheduler.close()
        self._drain_the_sick(session)
        self._session, self._begun_with = session, self.accelerators
        await self._commit(session)
        self._turned = self._now()
        if self._course.state is State.BEGINNING:
            self._course.to(State.ATTACHED)

    async def _begin_anew(self, error: Exception, wait: float) -> None:
        """Something failed, so that the engine may know what the store does not: begin from what that holds."""
        said, began = None, self._now()
        while self._goes_on():
            self._course.to(State.FAILED)
            self._why_failed = f"nothing is decided until this is over: {error}"
            self._break_promises(error)
            if str(error) != said:
                said = str(error)
                trace = None if isinstance(error, StoreError) else error
                _LOG.error("nothing is decided until this is over: %s", error, exc_info=trace)
            until = self._now() + (_BACK_OFF.seconds(1) if isinstance(error, StoreError) else wait)
            while (left := until - self._now()) > 0:
                await self._inbox.wait(left)
                self._take_actions()
                if self.begun and self.session.scheduler.closing and self._now() - began >= _CLOSING_SECONDS:
                    self.closed_in_vain = str(error)  # a store that is gone must not hold up the end for ever
                    self._course.to(State.OVER)
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
        now = self._now()
        if now - self._flushed >= _FLUSH_SECONDS:
            self._flushed = now
            self._around.store.check()
            if not self._around.store.short_of_room:  # what is left is for cancels
                session.scheduler.flush_progress()
            session.look_for_cancels()
            await self._backend.need(session.scheduler.demand())
        if now - self._trimmed >= _TRIM_SECONDS:
            self._trimmed = now
            session.trim()
        await self._commit(session)
        if self._has_other_accelerators() and self._goes_on():
            await self._begin()
        if self._closed():
            self._course.to(State.OVER)
        elif self._closes_in_vain():
            self.closed_in_vain = self._why_gone
            self._course.to(State.OVER)
        self._turned = self._now()

    def _closes_in_vain(self) -> bool:
        """Whether everything is to stop, but the backend has been away for too long to be waited for."""
        away = self._course.state is State.DETACHED and self._now() - self._gone_since >= _CLOSING_SECONDS
        return away and self.session.scheduler.closing

    def _seconds_to_wait(self, session: Session) -> float:
        seconds = self._flushed + _FLUSH_SECONDS - self._now()
        due = session.scheduler.seconds_until_due()
        return seconds if due is None else min(seconds, due)

    def _goes_on(self) -> bool:
        return not self._course.over

    def _has_other_accelerators(self) -> bool:
        """Whether the backend has other accelerators than the session was begun with."""
        if self.accelerators is not self._begun_with and devices_of(self.accelerators) == devices_of(self._begun_with):
            self._begun_with = self.accelerators
        return self.accelerators is not self._begun_with

    def _completed(self, status: BackendStatus) -> BackendStatus:
        return replace(status, accelerators=self._around.settings.completed(status.accelerators))

    def _drain_the_sick(self, session: Session) -> None:
        """Take accelerators out of service that have become sick; they come back when an administrator says so."""
        sick = {one.lasting_name: one for one in self.accelerators if one.sick is not None}
        new = [one for name, one in sick.items() if name not in self._sick]
        self._sick = set(sick)
        workers = [
            (one.type, session.places.of_workers[one.type, one.number])
            for one in new
            if (one.type, one.number) in session.places.of_workers
        ]
        for one in new:
            _LOG.warning("%s is taken out of service: %s", one.description, one.sick)
        if workers:
            session.drain(workers, on=True)

    def _take_actions(self) -> None:
        """Do what has been asked for, up to the end; whatever is asked for after that is answered by the inbox."""
        while self._goes_on() and (action := self._inbox.take()) is not None:
            action()

    def _closed(self) -> bool:
        """Whether all that ran has stopped, as it was asked to."""
        return self.begun and self.session.scheduler.closing and not self.session.scheduler.leases

    async def _commit(self, session: Session) -> None:
        """Make durable what has changed, then have done what follows from it."""
        scheduler = session.scheduler
        while scheduler.changes or scheduler.commands or self._course.state is State.DOUBTFUL:
            if self._course.state is State.DOUBTFUL:
                await self._look_at_backend(session)
            changes, commands = scheduler.take()
            promises, self._promises = self._promises, []
            try:
                ended = await self._written(changes)
            except BaseException:
                self._promises += promises
                raise
            reached("loop.durable")
            for promise in promises:
                promise.set_result(None)
            wanted = session.written(ended, commands)
            for first in range(0, len(wanted), _MOST_AT_ONCE):
                await self._carry_out(session, wanted[first : first + _MOST_AT_ONCE])

    async def _written(self, changes: Sequence[Change]) -> frozenset[str]:
        if not changes:
            return frozenset()
        return await asyncio.wrap_future(self._around.store.begin_vital_write(write_all, self._epoch, changes))

    def _break_promises(self, error: Exception) -> None:
        for promise in self._promises:
            promise.set_exception(error)
        self._promises = []

    # The backend

    async def _carry_out(self, session: Session, commands: Sequence[RunCommand]) -> None:
        """Give commands in their order, without waiting for the answer to one before the next is given."""
        if self._course.state in {State.DETACHED, State.OVER}:
            return
        answers = await asyncio.gather(*map(self._backend.give, commands), return_exceptions=True)
        reached("loop.answered")
        away = any(isinstance(answer, BackendGoneError) for answer in answers)
        for command, answer in zip(commands, answers, strict=True):
            match answer:
                case BackendGoneError():
                    self._detach()  # and nothing is asked of it until it has said what it knows
                case RefusedError():
                    session.refused(command, answer.code, str(answer))
                case BaseException():
                    raise answer
                case _:
                    if session.answered(command, answer) and not away:
                        self._course.to(State.DOUBTFUL)

    async def _look_at_backend(self, session: Session) -> None:
        """Compare what is with what should be; before that, nothing is asked of a backend that was away."""
        try:
            session.reconcile(await self._backend.status())
        except BackendGoneError:
            self._detach()
        else:
            self._course.to(State.ATTACHED)

    def _detach(self) -> None:
        if self._course.state is not State.DETACHED:
            self._gone_since = self._now()
        self._course.to(State.DETACHED)

    async def _keep_in_touch(self) -> None:
        """Keep the backend running, whatever happens to it."""
        while True:
            try:
                await self._backend.run(self._epoch, self._report)
                return
            except Exception as error:
                if isinstance(error, InputError) and self._status is None:
                    raise  # such as an address at which nothing is: it does not help to try again
                _LOG.exception("the backend failed; it is tried again")
                self._report(Disconnected(str(error)))
                await asyncio.sleep(_BACK_OFF.seconds(1))

    def _report(self, report: BackendReport) -> None:
        self._inbox.put(lambda: self._take_in(report))

    def _take_in(self, report: BackendReport) -> None:
        match report:
            case Connected():
                self._connected(report.status)
            case AcceleratorsChanged():
                if self._status is not None:
                    self._status = self._completed(replace(self._status, accelerators=report.accelerators))
                    if self._course.schedules:
                        self._drain_the_sick(self.session)
            case Disconnected():
                if self._course.schedules:
                    self._detach()
                self._why_gone = report.why
                _LOG.warning("%s", report.why)
            case Superseded():
                raise SupersededError(report.why)
            case _:
                if self._course.schedules:
                    reports.happened(self.session.scheduler, report)

    def _connected(self, status: BackendStatus) -> None:
        before, self._status = self._status, self._completed(status)
        if self._course.schedules and before is not None:
            self._around.statistics.agent_restarts_total += before.instance != status.instance
            # What it said on connecting may be old by now, so it is asked again.
            self._course.to(State.DOUBTFUL)
