"""Tells listeners what happens to jobs: one task asks the store a few times a second, for all of them together.

It runs while there are listeners. Listeners of all jobs are told of changes of state, those of one job also of its
progress. Each has room for so many events that it has not taken; who falls further behind is dropped, and told so. A
listener whose token was revoked is let go within a second or so.

Ids of events grow: they are the microseconds since 1970 of the newest change, or one more than the last. Who comes back
with the last id it saw is told the state of everything that changed since, once more if in doubt.
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Collection
from dataclasses import dataclass, field

from anyio import to_thread
from sqlalchemy import Connection

from fairway.errors import FairwayError
from fairway.service.http.problems import ProblemError
from fairway.service.page_news import NEWS_SECONDS, PageNews
from fairway.service.representation import JobForm, Terms, job_forms
from fairway.store import Store
from fairway.store.changes import Change, change_of, changes_since, jobs_named, jobs_numbered
from fairway.store.records import JobRecord
from fairway.store.states import ACTIVE
from fairway.store.tokens import Token, all_tokens
from fairway.wall_clock import MachineClock, WallClock

_LOG = logging.getLogger(__name__)

POLL_SECONDS = 0.25
ROOM = 1000
MOST_LISTENERS = 1000

_LOOK_BACK_SECONDS = 5.0
_SWEEP_BACK_SECONDS = 60.0
_SWEEP_EVERY_SECONDS = 15.0
"""Changes become durable in another order than that of the times that they carry, seldom by more than a few moments."""

_TOKENS_EVERY_SECONDS = 0.5
_AT_ONCE = 200


def event_text(kind: str, data: str, number: int | None = None) -> bytes:
    """One event as it goes over the wire."""
    identity = "" if number is None else f"id: {number}\n"
    return f"{identity}event: {kind}\ndata: {data}\n\n".encode()


@dataclass(eq=False)
class Listener:
    """A client that wants to hear of all jobs, those of one team or one job.

    Of one job it is first told how it stands, then of changes, and with `progress` of that too; with `until_end` it is
    let go when the job has ended. `pages` are told how the system stands, and what of its history changed, too.
    """

    token: Token
    team: str | None = None
    job: str | None = None
    progress: bool = False
    until_end: bool = False
    pages: bool = False
    told: tuple[Change, _Progress] | None = None
    events: deque[bytes] = field(default_factory=deque)
    ended: bool = False
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    def put(self, event: bytes) -> None:
        """Add an event; drops the listener if there is no room for it."""
        if self.ended:
            return
        if len(self.events) >= ROOM:
            self.events.clear()
            self.end("dropped", f"you fell more than {ROOM} events behind; connect again with the last id you saw")
            return
        self.events.append(event)
        self._news.set()

    def end(self, kind: str | None = None, detail: str = "") -> None:
        """Let the listener go, after what it has not taken yet and a last event that says why."""
        if not self.ended:
            if kind is not None:
                self.events.append(event_text(kind, json.dumps({"detail": detail})))
            self.ended = True
        self._news.set()

    async def take(self, patience: float) -> list[bytes] | None:
        """The events that came, none if none came in time; None when there will be no more."""
        if not self.events and not self.ended:
            try:
                async with asyncio.timeout(patience):
                    await self._news.wait()
            except TimeoutError:
                return []
        self._news.clear()
        if not self.events and self.ended:
            return None
        taken = list(self.events)
        self.events.clear()
        return taken


@dataclass(frozen=True, slots=True)
class _Progress:
    """What tells one report of a job's progress from another."""

    steps_left: float | None
    checkpoint_steps_left: float | None
    steps_per_second: float | None


@dataclass(frozen=True, slots=True)
class _Standing:
    """A job as it stands."""

    record: JobRecord
    form: JobForm

    @property
    def facts(self) -> tuple[Change, _Progress]:
        form = self.form
        progress = _Progress(form.steps_left, form.checkpoint_steps_left, form.steps_per_second)
        return change_of(self.record), progress


class Watch:
    """All listeners, and the task that asks for them. Used on the event loop only."""

    def __init__(
        self, store: Store, terms: Callable[[], Terms], *, machine: MachineClock = time, news: PageNews | None = None
    ) -> None:
        self._store, self._news = store, news
        self._clock = WallClock(machine)
        self._terms = terms
        self._listeners: set[Listener] = set()
        self._task: asyncio.Task[None] | None = None
        self._beginning = asyncio.Lock()
        self._closed = False
        self._sees_all = False
        self._seen: dict[int, Change] = {}
        self._last_event = 0
        self._looked = self._clock.today()
        self._swept = self._checked = self._told_pages = -math.inf
        self._jobs_changed = False

    async def add(self, listener: Listener) -> None:
        """Tell a listener from now on: nothing that becomes visible after this returns is missed."""
        if len(self._listeners) >= MOST_LISTENERS:
            raise ProblemError(503, "too-many-listeners", f"{MOST_LISTENERS} listen already; try again later")
        async with self._beginning:
            if listener.job is None and not self._sees_all:
                await self._look_around()
            if listener.pages and self._news is not None and not any(other.pages for other in self._listeners):
                self._news.begin()
            self._listeners.add(listener)
        if self._closed:
            self._let_go(listener)
        elif self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run())

    def remove(self, listener: Listener) -> None:
        """Tell a listener nothing any more."""
        self._listeners.discard(listener)
        if all(other.job is not None for other in self._listeners):
            self._sees_all = False

    def close(self) -> None:
        """Let all listeners go, since the service stops."""
        self._closed = True
        for listener in list(self._listeners):
            self._let_go(listener)

    async def replay(self, after: int, team: str | None) -> AsyncIterator[bytes]:
        """How everything stands that changed since an event, or shortly before it."""
        since = self._clock.earliest_since(after / 1e6) - _LOOK_BACK_SECONDS
        changes = await to_thread.run_sync(self._store.read, changes_since, since)
        for start in range(0, len(changes), _AT_ONCE):
            numbers = [change.number for change in changes[start : start + _AT_ONCE]]
            for one in await self._standing_of(numbers):
                if team in {None, one.record.team}:
                    yield event_text("job", one.form.model_dump_json(), _microseconds(one.record.changed_at))

    async def _run(self) -> None:
        while self._listeners and not self._closed:
            try:
                await self._poll()
                await self._tell_pages()
            except FairwayError as error:
                _LOG.warning("events wait for the store: %s", error)
            except Exception:
                _LOG.exception("events could not be told; they are asked for again")
            await asyncio.sleep(POLL_SECONDS)

    async def _look_around(self) -> None:
        """Note how things stand, without telling any listener."""
        today, self._swept = self._clock.today(), self._clock.seconds()
        changes = await to_thread.run_sync(self._store.read, changes_since, today - _SWEEP_BACK_SECONDS)
        self._seen = {change.number: change for change in changes}
        self._looked = today
        self._sees_all = True

    async def _poll(self) -> None:
        """Ask once for all listeners."""
        now, today = self._clock.seconds(), self._clock.today()
        everything, present = self._sees_all, list(self._listeners)
        sweeps = everything and now - self._swept >= _SWEEP_EVERY_SECONDS
        back = _SWEEP_BACK_SECONDS if sweeps else _LOOK_BACK_SECONDS
        since = self._clock.earliest_since(self._looked) - back if everything else None
        watched = {listener.job for listener in present if listener.job is not None}
        checks = now - self._checked >= _TOKENS_EVERY_SECONDS
        changes, named, valid = await to_thread.run_sync(self._ask, since, watched, checks)
        if everything:
            self._looked = today
            await self._tell_all([change for change in changes if self._seen.get(change.number) != change])
        if sweeps:
            self._swept, oldest = now, today - 2 * _SWEEP_BACK_SECONDS
            self._seen = {number: change for number, change in self._seen.items() if change.changed_at >= oldest}
        if checks:
            self._checked = now
            for listener in present:  # who came meanwhile may have a token that was made meanwhile
                if listener.token.id not in valid:
                    listener.end("revoked", "the token that you came with was revoked, or has expired")
        self._tell_of_one(named)

    def _ask(
        self, since: float | None, watched: Collection[str], checks: bool
    ) -> tuple[list[Change], dict[str, _Standing], frozenset[str]]:
        changes = [] if since is None else self._store.read(changes_since, since)
        named = self._store.read(self._named, sorted(watched)) if watched else {}
        tokens, now = self._store.read(all_tokens) if checks else [], self._clock.today()
        return changes, named, frozenset(token.id for token in tokens if token.is_valid(now))

    async def _tell_pages(self) -> None:
        """Tell pages what else is new, now and then."""
        pages = [listener for listener in self._listeners if listener.pages]
        now = self._clock.seconds()
        if self._news is None or not pages or now - self._told_pages < NEWS_SECONDS:
            return
        self._told_pages, changed, self._jobs_changed = now, self._jobs_changed, False
        teams = {listener.team for listener in pages}
        news = await to_thread.run_sync(lambda: self._news.next(teams, changed=changed))  # type: ignore[union-attr]
        events = {team: [event_text(kind, data) for kind, data in told] for team, told in news.items()}
        for listener in pages:
            for event in events.get(listener.team, ()):
                listener.put(event)

    async def _tell_all(self, changes: list[Change]) -> None:
        self._jobs_changed |= bool(changes)
        for start in range(0, len(changes), _AT_ONCE):
            some = changes[start : start + _AT_ONCE]
            for one in await self._standing_of([change.number for change in some]):
                self._last_event = max(self._last_event + 1, _microseconds(one.record.changed_at))
                event = event_text("job", one.form.model_dump_json(), self._last_event)
                for listener in list(self._listeners):
                    if listener.job is None and listener.team in {None, one.record.team}:
                        listener.put(event)
                self._seen[one.record.number] = change_of(one.record)

    async def _standing_of(self, numbers: list[int]) -> list[_Standing]:
        standing = await to_thread.run_sync(self._store.read, self._numbered, numbers)
        return sorted(standing, key=lambda one: (one.record.changed_at, one.record.number))

    def _tell_of_one(self, named: dict[str, _Standing]) -> None:
        for listener in list(self._listeners):
            standing = named.get(listener.job) if listener.job is not None else None
            if standing is None:
                continue
            facts, form = standing.facts, standing.form
            if listener.told is None or listener.told[0] != facts[0]:
                self._last_event = max(self._last_event + 1, _microseconds(form.changed_at))
                listener.put(event_text("job", form.model_dump_json(), self._last_event))
            elif listener.progress and listener.told[1] != facts[1]:
                listener.put(event_text("progress", form.model_dump_json(include=_OF_PROGRESS)))
            listener.told = facts
            if listener.until_end and form.state not in ACTIVE:
                listener.end()

    def _numbered(self, connection: Connection, numbers: list[int]) -> list[_Standing]:
        return self._standing(connection, jobs_numbered(connection, numbers))

    def _named(self, connection: Connection, names: list[str]) -> dict[str, _Standing]:
        standing = self._standing(connection, list(jobs_named(connection, names).values()))
        return {one.record.id: one for one in standing}

    def _standing(self, connection: Connection, records: list[JobRecord]) -> list[_Standing]:
        forms = job_forms(connection, records, self._terms())
        return [_Standing(record, form) for record, form in zip(records, forms, strict=True)]

    @staticmethod
    def _let_go(listener: Listener) -> None:
        listener.end("closing", "the service stops; connect again later")


_OF_PROGRESS = {"id", "steps", "steps_left", "checkpoint_steps_left", "steps_per_second", "accelerator", "emulated"}


def _microseconds(seconds: float) -> int:
    return int(seconds * 1e6)
